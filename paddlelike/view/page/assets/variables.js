// The table of variables, and what the panel shows of one.

const roles = ["parameter", "optimizer state", "learning rate", "counter", "state", "temporary"];
const variables = { by: new Map(data.variables?.map((one) => [one.name, one]) || []), hidden: new Set(), order: "name", down: false, rows: [] };

const columns = [
  ["name", "variable", (one) => one.name],
  ["role", "kind", (one) => one.role],
  ["dtype", "type", (one) => one.dtype],
  ["shape", "shape", (one) => one.shape.reduce((product, dim) => product * dim, 1)],
  ["nbytes", "size", (one) => one.nbytes],
  ["mean", "mean", (one) => one.mean],
  ["std", "std", (one) => one.std],
  ["min", "min", (one) => one.min],
  ["max", "max", (one) => one.max],
  [null, "values", null],
];

function roleClass(role) {
  return `role role-${roles.includes(role) ? role.replace(" ", "-") : "temporary"}`;
}

function showVariables(section) {
  const counts = new Map();
  for (const one of data.variables) counts.set(one.role, (counts.get(one.role) || 0) + 1);
  const status = make("p", { class: "status", role: "status" });
  const chips = [...counts].map(([role, count]) => make("button", {
    type: "button", class: `chip ${roleClass(role)}`, "aria-pressed": "true",
    click: (event) => {
      const off = !variables.hidden.delete(role);
      if (off) variables.hidden.add(role);
      event.currentTarget.setAttribute("aria-pressed", String(!off));
      list();
    },
  }, `${role} ${count}`));
  const heads = columns.map(([key, title]) => make("th", { scope: "col", class: key ? headClass(key) : "wide" }, key ? make("button", {
    type: "button", click: () => {
      variables.down = variables.order === key && !variables.down;
      variables.order = key;
      list();
    },
  }, title) : title));
  const body = make("tbody");
  const place = make("div");
  section.append(make("div", { class: "chips" }, chips), status, make("div", { class: "scroll" }, make("table", { class: "variables", "aria-label": "Variables" }, make("thead", null, make("tr", null, heads)), body)), place);
  section.addEventListener("keydown", (event) => moveInRows(event, body));

  function list() {
    const match = makeMatcher(shell.filter.value);
    const value = columns.find(([key]) => key === variables.order)[2];
    const found = data.variables.filter((one) => !variables.hidden.has(one.role)
      && match(one.name, one.role, one.dtype, formatShape(one.shape), one.flags.join(" "), one.problem ? "problem" : "", one.file || ""));
    found.sort((one, other) => compareValues(value(one), value(other)) * (variables.down ? -1 : 1));
    heads.forEach((head, index) => {
      const key = columns[index][0];
      if (key) head.setAttribute("aria-sort", key !== variables.order ? "none" : variables.down ? "descending" : "ascending");
    });
    const bytes = found.reduce((sum, one) => sum + one.nbytes, 0);
    status.textContent = found.length === data.variables.length
      ? `${formatCount(found.length, "variable")}, ${formatSize(bytes)}`
      : `${found.length.toLocaleString("en")} of ${formatCount(data.variables.length, "variable")}, ${formatSize(bytes)}`;
    body.replaceChildren();
    place.replaceChildren(showSome(body, found, makeRow));
    const first = body.querySelector("tr");
    if (first) first.tabIndex = 0;
  }
  list();
  return list;
}

function flagClass(flag) {
  return flag === "in no file" || flag === "all zero" ? "flag mild" : "flag";
}

function headClass(key) {
  const wide = ["mean", "std", "min", "max", "dtype"].includes(key) ? "wide" : "";
  return `${wide} ${["nbytes", "mean", "std", "min", "max"].includes(key) ? "right" : ""}`.trim() || null;
}

function compareValues(one, other) {
  const missing = (value) => (value === null || value === undefined || typeof value === "number" ? 0 : 1);
  if (typeof one === "number" && typeof other === "number") return one - other;
  if (typeof one === "string" && typeof other === "string") return one.localeCompare(other, "en", { numeric: true });
  return (one === null || one === undefined) - (other === null || other === undefined) || missing(one) - missing(other);
}

function makeRow(one) {
  const flags = [...one.flags, ...(one.problem ? ["cannot be read"] : [])];
  const cells = [
    [null, [make("span", { class: "name" }, one.name), flags.map((flag) => make("span", { class: flagClass(flag) }, flag))]],
    ["role", make("span", { class: roleClass(one.role) }, one.role)],
    ["dtype", one.dtype], [null, formatShape(one.shape)], ["nbytes", formatSize(one.nbytes)],
    ["mean", formatNumber(one.mean)], ["std", formatNumber(one.std)], ["min", formatNumber(one.min)], ["max", formatNumber(one.max)],
    ["dtype", one.histogram ? makeSpark(one.histogram) : ""],
  ];
  return make("tr", { tabindex: "-1", class: "row", click: () => openVariable(one.name) },
    cells.map(([key, content]) => make("td", { class: key ? headClass(key) : null }, content)));
}

/** Move with the arrows from row to row, and open a row with Enter or Space. */
function moveInRows(event, body) {
  const row = event.target.closest("tr.row");
  if (!row || !body.contains(row)) return;
  const next = { ArrowDown: row.nextElementSibling, ArrowUp: row.previousElementSibling, Home: body.firstElementChild, End: body.lastElementChild }[event.key];
  if (next) {
    row.tabIndex = -1;
    next.tabIndex = 0;
    next.focus();
    event.preventDefault();
    if (!panel.hidden) next.click();
  } else if (event.key === "Enter" || event.key === " ") {
    row.click();
    event.preventDefault();
  }
}

/** Return a histogram of a few pixels. */
function makeSpark({ counts }) {
  const top = Math.max(...counts);
  if (counts.length === 1) return draw("svg", { class: "spark", viewBox: "0 0 60 14", width: 60, height: 14, "aria-hidden": "true" }, draw("rect", { x: 29, width: 2, height: 14 }));
  const bars = counts.map((count, index) => count && draw("rect", {
    x: (index * 60) / counts.length, width: Math.max(60 / counts.length, 1), y: 14 - Math.max((14 * count) / top, 0.7), height: Math.max((14 * count) / top, 0.7),
  })).filter(Boolean);
  return draw("svg", { class: "spark", viewBox: "0 0 60 14", width: 60, height: 14, "aria-hidden": "true" }, bars);
}

function makeHistogram({ low, high, counts }) {
  const top = Math.max(...counts), width = 320, height = 120, step = width / counts.length;
  const edge = (index) => formatNumber(low + ((high - low) * index) / counts.length);
  const lone = counts.length === 1; // all elements are equal
  const bars = counts.map((count, index) => draw("rect", {
    class: "bar", x: lone ? width / 2 - 4 : index * step + 0.5, width: lone ? 8 : Math.max(step - 1, 1), y: height - (count ? Math.max((height * count) / top, 1) : 0), height: count ? Math.max((height * count) / top, 1) : 0,
  }, draw("title", null, low === high ? `${formatNumber(low)}: ${count}` : `${edge(index)} to ${edge(index + 1)}: ${count}`)));
  const zero = low < 0 && high > 0 ? (-low / (high - low)) * width : null;
  return make("figure", { class: "histogram" },
    draw("svg", { viewBox: `0 0 ${width} ${height + 2}`, role: "img", "aria-label": `Histogram of ${counts.length} bins from ${formatNumber(low)} to ${formatNumber(high)}` },
      bars, zero !== null && draw("line", { class: "zero", x1: zero, x2: zero, y1: 0, y2: height })),
    make("figcaption", null, make("span", null, formatNumber(low)), make("span", null, `most in a bin: ${top.toLocaleString("en")}`), make("span", null, formatNumber(high))));
}

/** Show a variable in the panel: of files, or of a block of a program alone. */
function openVariable(name) {
  const one = variables.by.get(name);
  const uses = findUses(name);
  const declared = uses.declared;
  if (!one && !declared) return;
  const facts = one ? [
    ["kind", make("span", { class: roleClass(one.role) }, one.role)],
    ["type", one.dtype], ["shape", formatShape(one.shape)],
    ["rows of the whole", one.height], ["LoD levels", one.lod || ""],
    ["elements", one.shape.reduce((product, dim) => product * dim, 1).toLocaleString("en")], ["size", formatSize(one.nbytes)],
    ["file", one.file || "none: the program wants it, and no file here holds it"],
    ["mean", formatNumber(one.mean)], ["standard deviation", formatNumber(one.std)],
    ["minimum", formatNumber(one.min)], ["maximum", formatNumber(one.max)],
    ["zeros", one.zeros || ""], ["NaN", one.nan || ""], ["infinite", one.inf || ""],
  ] : [["kind", make("span", { class: roleClass(declared[0]) }, declared[0])], ["type", declared[1]], ["shape", formatShape(declared[2])]];
  openPanel(name,
    one?.problem && make("p", { class: "problem" }, one.problem),
    one?.flags.length ? make("p", null, one.flags.map((flag) => make("span", { class: flagClass(flag) }, flag))) : null,
    makeFacts(facts),
    one?.histogram ? makeHistogram(one.histogram) : null,
    one?.sample ? makeHeatMap(one) : null,
    ...["writes", "reads"].map((what) => uses[what].length ? [make("h3", null, what === "writes" ? "Written by" : "Read by"),
      make("ul", { class: "links" }, uses[what].slice(0, 50).map((use) => make("li", null, makeLink(`${use.type} (${use.index})`, () => goToOperator(use)))),
        uses[what].length > 50 && make("li", null, `and ${uses[what].length - 50} more`))] : null).flat().filter(Boolean));
}

/** Return sampled values as rows of numbers. */
function readSample({ rows, columns, values }) {
  const bytes = Uint8Array.from(atob(values), (one) => one.charCodeAt(0)), wide = bytes.length > 4 * rows.length * columns.length;
  const flat = wide ? new Float64Array(bytes.buffer) : new Float32Array(bytes.buffer);
  return rows.map((_, row) => [...flat.subarray(row * columns.length, (row + 1) * columns.length)]);
}

/** Return values of a variable as a heat map, blue below zero and orange above, and as a table. */
function makeHeatMap({ sample, shape }) {
  const { rows, columns } = sample, values = readSample(sample), side = Math.max(3, Math.min(14, Math.floor(330 / columns.length)));
  const largest = Math.max(...values.flat().filter(Number.isFinite).map(Math.abs), 1e-30);
  const cells = values.flatMap((line, row) => line.map((value, column) => {
    const share = Number.isFinite(value) ? Math.abs(value) / largest : 1;
    const name = !Number.isFinite(value) ? "odd" : value < 0 ? "below" : "above";
    return draw("rect", { x: column * side, y: row * side, width: side, height: side, class: `heat-${name}`, "fill-opacity": Math.max(share, 0.04) },
      draw("title", null, `[${rows[row]}, ${columns[column]}] ${formatNumber(value)}`));
  }));
  const all = shape.reduce((product, dim) => product * dim, 1), shown = rows.length * columns.length;
  const text = `${shown < all ? `${shown.toLocaleString("en")} of ` : ""}${formatCount(all, "value")}, rows by columns; ${largest > 1e-30 ? `at most ${formatNumber(largest)} from zero` : "all are zero"}`;
  return make("figure", { class: "heat" },
    draw("svg", { width: columns.length * side, height: rows.length * side, role: "img", "aria-label": `Heat map: ${text}` }, cells),
    make("figcaption", { class: "muted" }, text),
    make("details", null, make("summary", null, "Values as a table"), makeTable(["", ...columns.map(String)],
      values.map((line, row) => [make("b", null, String(rows[row])), ...line.map(formatNumber)]), { right: columns.map((_, index) => index + 1), label: "Values" })));
}

function makeLink(text, action) {
  return make("button", { type: "button", class: "link", click: action }, text);
}
