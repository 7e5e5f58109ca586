// The tabs of the page of a path, and those without a file of their own: summary, load plan, difference, files.

function addTabs() {
  const wrong = data.findings.filter((one) => one.level !== "note").length;
  if (data.programs.length) addTab("program", "Program", showProgram);
  addTab("summary", wrong ? ["Summary", make("span", { class: "flag" }, formatCount(wrong, "finding"))] : "Summary", showSummary);
  if (data.variables.length) addTab("variables", "Variables", showVariables);
  if (data.variables.length) addTab("sizes", "Sizes", showSizes);
  if (data.plan) addTab("plan", "Load plan", showPlan);
  if (data.difference) addTab("difference", "Difference", showDifference);
  if (data.history.length) addTab("history", "History", showHistory);
  addTab("files", "Files", showFiles);
}

/** Show the saves below the directory on a line of time, and in a table. */
function showHistory(section) {
  const saves = data.history, times = saves.map((one) => Date.parse(one.time) || 0);
  const first = Math.min(...times), span = Math.max(...times) - first, width = 900, edge = 20;
  const at = (index) => edge + (width - 2 * edge) * (span ? (times[index] - first) / span : index / (saves.length - 1));
  const largest = Math.max(...saves.map((one) => one.changed / Math.max(one.files, 1)), 1e-9);
  section.append(make("p", { class: "muted" }, `${formatCount(saves.length, "save")}; a bar is as high as the share of files that changed since the one before.`),
    make("div", { class: "scroll" }, draw("svg", { viewBox: `0 0 ${width} 90`, width, height: 90, role: "img", class: "timeline", "aria-label": `Line of time from ${saves[0].time} to ${saves[saves.length - 1].time}` },
      draw("path", { d: `M${edge} 70H${width - edge}` }),
      saves.map((one, index) => draw("rect", { x: at(index) - 3, width: 6, height: 4 + (50 * one.changed) / Math.max(one.files, 1) / largest, y: 66 - (50 * one.changed) / Math.max(one.files, 1) / largest },
        draw("title", null, `${one.name}, ${one.time}: ${one.changed} of ${formatCount(one.files, "file")} changed`))))));
  const [metric, counted] = ["metric", "step"].map((name) => saves.some((one) => one[name] !== null));
  const titles = ["save", "time", ...(counted ? ["step"] : []), ...(metric ? ["metric"] : []), "files", "changed", "size"], place = make("div");
  section.append(place, make("p", { class: "muted" }, "paddlelike view EARLIER LATER shows what changed between two of them."));
  return (filter) => {
    const match = makeMatcher(filter), found = saves.filter((one) => match(one.name, one.time)).reverse();
    place.replaceChildren(makeRows(titles, found, (one) => [make("span", { class: "name" }, one.name), one.time.replace("T", " ").replace("Z", ""), ...(counted ? [one.step ?? ""] : []),
      ...(metric ? [formatNumber(one.metric)] : []), one.files, one.changed, formatSize(one.nbytes)], { right: titles.map((_, index) => index).slice(2), stack: true }));
  };
}

/** Return what a search finds anywhere: [kind, text, what a choice does], variables first. */
shell.search = (match, count) => {
  const found = [];
  const add = (kind, text, go) => found.length < count && found.push([kind, text, go]);
  for (const one of data.variables) if (match(one.name)) add("variable", one.name, () => { openTab("variables"); openVariable(one.name); });
  data.programs.forEach((one, place) => one.blocks.forEach((block, number) => block.operators.forEach((operator, index) => {
    if (found.length < count && match(...listTexts(operator))) add("operator", `${operator.type} ${Object.values(operator.outputs).flat()[0] || ""}`, () => goToOperator({ program: place, block: number, index }));
  })));
  for (const [name, , title] of data.files) if (match(name, title)) add("file", name, () => openTab("files"));
  return found;
};

function showSummary(section) {
  const bytes = data.variables.reduce((sum, one) => sum + one.nbytes, 0);
  const operators = data.programs.map((one) => one.blocks.reduce((sum, block) => sum + block.operators.length, 0));
  const flagged = data.variables.filter((one) => one.problem || one.flags.some((flag) => flag === "NaN" || flag === "Inf"));
  section.append(make("div", { class: "cards" },
    makeCard("Variables", data.variables.length.toLocaleString("en"), formatSize(bytes), "variables"),
    ...data.programs.map((one, index) => makeCard("Operators", operators[index].toLocaleString("en"), one.name, "program")),
    makeCard("Files", data.files.length.toLocaleString("en"), formatSize(data.files.reduce((sum, one) => sum + one[3], 0)), "files"),
    flagged.length > 0 && makeCard("Flagged", String(flagged.length), "NaN, infinite or unreadable", "variables", "bad")));
  if (data.findings.length) {
    const order = { error: "bad", warning: "warn", note: "mild" };
    section.append(make("h2", null, "Findings"), make("ul", { class: "findings" }, data.findings.map((one) => make("li", { class: order[one.level] },
      make("span", { class: "flag" }, one.level), make("p", null, one.what), one.advice && make("p", { class: "muted" }, one.advice), one.paddle && make("p", { class: "muted" }, `Paddle: ${one.paddle}`)))));
  } else if (data.checked) section.append(make("p", { class: "good" }, "Nothing is wrong."));
  if (data.variables.length) section.append(make("h2", null, "Variables by kind"), makeKinds());
  for (const one of data.programs) section.append(...describeProgram(one));
  if (data.calls.length) {
    section.append(make("h2", null, "How to open it"), makeTable(["with", "call"], data.calls.map(([who, call]) => [who, make("code", null, call)]), { label: "Calls", stack: true }));
  }
  if (data.saved) section.append(make("p", { class: "muted" }, `Saved ${data.saved} by paddlelike ${data.library}.`));
  return () => {};
}

function makeCard(title, number, text, tab, style = "") {
  return make("button", { type: "button", class: `card ${style}`, click: () => openTab(tab) },
    make("span", { class: "muted" }, title), make("span", { class: "big" }, number), make("span", { class: "muted" }, text));
}

/** Return a line for every kind of variables: how many there are, and a bar of their size. */
function makeKinds() {
  const kinds = new Map();
  for (const one of data.variables) {
    const sum = kinds.get(one.role) || { count: 0, nbytes: 0 };
    kinds.set(one.role, { count: sum.count + 1, nbytes: sum.nbytes + one.nbytes });
  }
  const largest = Math.max(...[...kinds.values()].map((one) => one.nbytes), 1);
  return makeTable(["kind", "count", "size", ""], [...kinds].sort((one, other) => other[1].nbytes - one[1].nbytes).map(([role, one]) =>
    [make("span", { class: roleClass(role) }, role), one.count.toLocaleString("en"), formatSize(one.nbytes), makeBar(one.nbytes / largest)]), { right: [1, 2], label: "Variables by kind" });
}

function describeProgram(one) {
  const counts = new Map();
  for (const operator of one.blocks.flatMap((block) => block.operators)) counts.set(operator.type, (counts.get(operator.type) || 0) + 1);
  const common = [...counts].sort((left, right) => right[1] - left[1]);
  return [make("h2", null, `Program ${one.name}`),
    makeFacts([["feeds", one.feeds.join(", ")], ["fetches", one.fetches.join(", ")], ["blocks", one.blocks.length > 1 ? one.blocks.length : ""],
      ["operators", common.slice(0, 12).map(([type, count]) => `${type} ${count}`).join(", ") + (common.length > 12 ? `, and ${common.length - 12} more types` : "")]])];
}

function showPlan(section) {
  const { plan } = data;
  section.append(make("p", { class: "muted" }, `A load of ${data.path} into the program of ${plan.program}.`));
  if (plan.error) return section.append(make("p", { class: "problem" }, plan.error)) || (() => {});
  section.append(make("p", { class: plan.fits ? "good" : "problem" }, plan.fits ? "The load would succeed." : "The load would be refused, and change nothing."));
  if (plan.hint) section.append(make("p", null, plan.hint));
  if (plan.proposals.length) section.append(make("h2", null, "Proposed renames"), makeTable(["file", "variable"], plan.proposals, { label: "Proposed renames" }));
  const place = make("div");
  section.append(place);
  const named = [...plan.rows].sort((one, other) => compareValues(one.variable || one.file, other.variable || other.file));
  const rows = [...named.filter((row) => row.problem), ...named.filter((row) => !row.problem)];
  return (filter) => {
    const match = makeMatcher(filter);
    const found = rows.filter((row) => match(row.variable || "", row.file || "", row.what, row.why));
    place.replaceChildren(makeRows(["", "variable", "file", "program wants", "file has", "why"], found, (row) => [
      make("span", { class: row.problem ? "flag" : "flag mild" }, row.what), row.variable || "", row.file === row.variable ? make("span", { class: "muted" }, "same name") : row.file || "", row.wants, row.has,
      [row.why, row.hint && make("span", { class: "muted" }, ` ${row.hint}`)]], { hide: [3, 4], stack: true }));
  };
}

/** Return a table that shows its first rows. */
function makeRows(titles, items, render, options) {
  const scroll = makeTable(titles, [], options);
  const body = scroll.querySelector("tbody"), shape = (item) => makeTable([], [render(item)], options).querySelector("tbody tr");
  return make("div", null, make("p", { class: "status" }, formatCount(items.length, "row")), scroll, showSome(body, items, shape));
}

function showDifference(section) {
  const one = data.difference;
  section.append(make("p", { class: "muted" }, `From ${one.left} to ${one.right}.`));
  if (one.error) return section.append(make("p", { class: "problem" }, `They cannot be compared: ${one.error}`)) || (() => {});
  section.append(make("p", { class: one.differs ? "" : "good" }, one.differs
    ? `${one.changed.length} changed, ${one.added.length} added, ${one.removed.length} removed, ${one.renamed.length} renamed; ${one.same} are equal bit for bit.`
    : `All ${one.same} variables are equal bit for bit.`));
  const place = make("div");
  section.append(place);
  const largest = Math.max(...one.changed.map((each) => (typeof each.relative === "number" ? each.relative : 0)), 1e-30);
  const items = [
    ...[...one.changed].sort((left, right) => (right.relative ?? Infinity) - (left.relative ?? Infinity)).map((each) => ({ what: each.what, name: each.name, each })),
    ...one.added.map((name) => ({ what: "added", name })), ...one.removed.map((name) => ({ what: "removed", name })),
    ...one.renamed.map(([from, to]) => ({ what: "renamed", name: to, from })),
  ];
  const describe = ({ what, from, each }) => {
    if (!each) return from ? `was ${from}; same type, shape and bytes` : "";
    return what === "values" ? `${formatCount(each.elements, "element")}, largest ${formatNumber(each.largest)}` : `${each.left} to ${each.right}`;
  };
  const list = (filter) => {
    const match = makeMatcher(filter);
    place.replaceChildren(makeRows(["", "variable", "change over norm", "", "how"], items.filter((item) => match(item.name, item.what, item.from || "")), (item) => [
      make("span", { class: item.what === "values" ? "flag mild" : "flag" }, item.what), variables.by.has(item.name) ? makeLink(item.name, () => openVariable(item.name)) : item.name,
      item.each ? formatNumber(item.each.relative) : "", typeof item.each?.relative === "number" ? makeBar(item.each.relative / largest) : "", describe(item)], { right: [2], hide: [3], stack: true }));
  };
  if (one.operators.length) {
    section.append(make("h2", null, "Operators"), make("pre", { class: "diff", tabindex: "0" }, one.operators.slice(0, 500).map((line) => make("span", { class: line.startsWith("+") ? "plus" : "minus" }, `${line}\n`)),
      one.operators.length > 500 && `and ${one.operators.length - 500} more lines`));
  }
  return list;
}

function showFiles(section) {
  const place = make("div");
  section.append(place);
  return (filter) => {
    const match = makeMatcher(filter);
    place.replaceChildren(makeRows(["file", "kind", "what it is", "size"], data.files.filter((one) => match(one[0], one[1], one[2])), ([name, kind, title, size, problem]) =>
      [name, kind, [title, problem && make("span", { class: "problem" }, ` ${problem}`)], formatSize(size)], { right: [3], hide: [1], stack: true }));
  };
}
