// The program: which block at which level of detail, and what the panel shows of a node.

const program = { index: 0, block: 0, level: null, graph: null, uses: null, choices: null };

const levelTitles = { blocks: "Blocks", chains: "Overview", layers: "Layers", operators: "Operators" };

function currentBlock() {
  return data.programs[program.index].blocks[program.block];
}

function showProgram(section) {
  program.graph = new Graph((node) => (node === null ? closePanel() : openNode(node)));
  program.choices = make("div", { class: "toolbar" });
  program.status = make("p", { class: "status", role: "status" });
  program.legend = make("div", { class: "legend", "aria-hidden": "true" });
  const zoom = [["+", "Zoom in", () => program.graph.zoom(1.25)], ["−", "Zoom out", () => program.graph.zoom(0.8)], ["fit", "fit all", () => program.graph.fit()]]
    .map(([text, label, click]) => make("button", { type: "button", "aria-label": label, title: label, click }, text));
  program.graph.above = make("div", { class: "over" }, program.choices, program.status);
  program.graph.below = make("div", { class: "over below" }, make("div", { class: "group" }, zoom), program.legend);
  section.append(program.graph.above, program.graph.element, program.graph.below);
  chooseBlock(program.index, 0);
  return filterNodes;
}

function chooseBlock(index, block, level = null) {
  program.index = index;
  program.block = block;
  const levels = Object.keys(currentBlock().levels);
  program.level = level || (levels.includes(program.level) ? program.level : null) || ["layers", "chains", "blocks", "operators"].find((name) => currentBlock().levels[name]?.nodes.length <= 80) || levels[0];
  const one = data.programs[index];
  program.choices.replaceChildren(...[
    data.programs.length > 1 && makeChoice("Program", data.programs.map((each) => each.name), index, (chosen) => chooseBlock(chosen, 0)),
    one.blocks.length > 1 && makeChoice("Block", one.blocks.map((each) => `block ${each.index}${each.index ? ` in ${each.parent}` : ""}`), block, (chosen) => chooseBlock(index, chosen)),
    make("div", { class: "group", role: "group", "aria-label": "Level of detail" }, levels.map((name) => make("button", {
      type: "button", "aria-pressed": String(name === program.level), click: () => chooseBlock(index, block, name),
    }, `${levelTitles[name]} ${currentBlock().levels[name].nodes.length}`))),
  ].filter(Boolean));
  closePanel();
  const shown = currentBlock().levels[program.level], kinds = new Set(shown.nodes.map((node) => node[5]));
  program.legend.replaceChildren(...["input", "layer", "operator", "gradient", "update", "output"].filter((kind) => kinds.has(kind)).map((kind) => makeKey(kind, `node-${kind}`)));
  const present = new Set(shown.nodes.filter((node) => node[5] !== "input" && node[5] !== "output").map((node) => findFamily(node[3])));
  program.legend.append(...families.map(([name]) => name).filter((name) => present.has(name)).map((name) => makeKey(name, `family-${name}`)));
  program.graph.show(shown, currentBlock().variables);
  filterNodes(shell.filter.value);
}

/** Return a part of the legend: a name beside its color, a variable of the style sheet. */
function makeKey(name, color) {
  const key = make("span", { class: `key ${color.split("-")[0]}` }, name);
  key.style.setProperty("--key", `var(--${color})`);
  return key;
}

function makeChoice(label, titles, chosen, change) {
  return make("select", { "aria-label": label, change: (event) => change(event.target.selectedIndex) },
    titles.map((title, index) => make("option", { selected: index === chosen }, title)));
}

/** Dim the nodes whose texts, operators and variables do not hold the words. */
function filterNodes(filter) {
  const { graph } = program, block = currentBlock(), match = makeMatcher(filter);
  const fits = (node) => match(node[3], node[4], ...node[6].flatMap((index) => listTexts(block.operators[index])));
  const found = filter.trim() ? graph.level.nodes.map((node, index) => (fits(node) ? index : -1)).filter((index) => index >= 0) : null;
  graph.matches = found && new Set(found);
  const all = `${formatCount(block.operators.length, "operator")} of ${data.programs[program.index].name}`;
  program.status.textContent = !block.operators.length ? "This block has no operators."
    : found ? `${found.length} of ${formatCount(graph.level.nodes.length, "node")} ${found.length === 1 ? "fits" : "fit"}${found.length ? "; Enter shows the next one" : ""}` : all;
  graph.draw();
}

function listTexts(operator) {
  return [operator.type, ...Object.values(operator.inputs).flat(), ...Object.values(operator.outputs).flat()];
}

/** Choose the next node that fits the filter. */
function nextMatch() {
  const { graph } = program;
  if (!graph?.matches?.size) return;
  const found = [...graph.matches];
  graph.pick(found.find((index) => index > (graph.chosen ?? -1)) ?? found[0]);
}

function openNode(index) {
  const [, , , label, , kind, operators] = program.graph.level.nodes[index], block = currentBlock();
  const shown = make("div");
  const rest = showSome(shown, operators, (each) => makeOperator(each, block.operators[each], operators.length === 1), 30);
  const variable = kind === "input" && !operators.length ? block.variables[label] : null;
  const carried = (which, end) => program.graph.links[index][which].map((each) => program.graph.level.edges[each])
    .map((edge) => make("li", null, makeLink(program.graph.level.nodes[edge[end]][3], () => program.graph.pick(edge[end])), make("span", { class: "muted" }, ` ${edge[2].slice(0, 3).join(", ")}${edge[2].length > 3 ? ", …" : ""}`)));
  const [from, to] = [carried("before", 0), carried("after", 1)];
  openPanel(label,
    makeFacts([["kind", kind], ["type", variable?.[1]], ["shape", variable && formatShape(variable[2])], ["operators", operators.length > 1 ? operators.length : ""]]),
    program.level === "blocks" && /^\d+ x /.test(label) && make("p", null, makeLink("Open what this block repeats", () => openBlock(operators[0]))),
    ...(from.length ? [make("h3", null, "From"), make("ul", { class: "links" }, from.slice(0, 30))] : []),
    ...(to.length ? [make("h3", null, "To"), make("ul", { class: "links" }, to.slice(0, 30))] : []),
    ...(operators.length ? [make("h3", null, operators.length === 1 ? "Operator" : "Operators"), shown, rest] : []));
}

/** Show the layers or operators that a node of repeated blocks stands for, from the first one. */
function openBlock(index) {
  chooseBlock(program.index, program.block, currentBlock().levels.layers ? "layers" : "operators");
  goToOperator({ program: program.index, block: program.block, index });
}

function makeOperator(index, operator, open) {
  const slots = (which) => Object.entries(which).map(([slot, names]) => make("div", { class: "slot" }, make("span", { class: "muted" }, slot),
    make("span", null, names.map((name, place) => [place ? ", " : "", describesVariable(name) ? makeLink(name, () => openVariable(name)) : name]))));
  const attributes = Object.entries(currentBlock().attrs[operator.attrs]);
  return make("details", { class: `operator role-${operator.role}`, open }, make("summary", null, make("b", null, operator.type), make("span", { class: "muted" }, ` ${index}${operator.role === "forward" ? "" : ` ${operator.role}`}`)),
    make("h4", null, "reads"), slots(operator.inputs), make("h4", null, "writes"), slots(operator.outputs),
    operator.blocks.map((block) => makeLink(`runs block ${block}`, () => chooseBlock(program.index, block))),
    attributes.length ? make("details", null, make("summary", null, formatCount(attributes.length, "attribute")), makeFacts(attributes)) : null);
}

/** Return where a variable is written and read: [{program, block, index, type}]; and how a program declares it. */
function findUses(name) {
  if (!program.uses) {
    program.uses = new Map();
    const at = (key) => program.uses.get(key) || program.uses.set(key, { writes: [], reads: [], declared: null }).get(key);
    data.programs.forEach((one, place) => one.blocks.forEach((block, number) => {
      for (const [key, facts] of Object.entries(block.variables)) at(key).declared ||= facts;
      block.operators.forEach((operator, index) => {
        for (const [what, slots] of [["writes", operator.outputs], ["reads", operator.inputs]]) {
          for (const key of new Set(Object.values(slots).flat())) at(key)[what].push({ program: place, block: number, index, type: operator.type });
        }
      });
    }));
  }
  return program.uses.get(name) || { writes: [], reads: [], declared: null };
}

function describesVariable(name) {
  return variables.by.has(name) || findUses(name).declared;
}

function goToOperator({ program: place, block, index }) {
  openTab("program");
  if (place !== program.index || block !== program.block) chooseBlock(place, block);
  const node = program.graph.level.nodes.findIndex((one) => one[6].includes(index));
  if (node >= 0) program.graph.pick(node);
  program.graph.canvas.focus({ preventScroll: true });
}
