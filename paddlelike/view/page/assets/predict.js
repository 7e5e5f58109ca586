// The page to try a model: a field for each input, a run, and its outputs.

const token = new URLSearchParams(location.search).get("token") || "";
const rows = make("input", { type: "number", min: "1", max: "100000", value: "1", id: "rows", "aria-label": "Rows" });
const fields = data.feeds.map((feed) => ({ feed, text: make("textarea", { id: `feed-${feed.name}`, rows: "6", spellcheck: "false", "aria-label": feed.name }) }));
const outputs = make("div", { id: "outputs", role: "status" });
const button = make("button", { type: "submit", class: "main" }, "Run");

/** Return nested lists of a shape; unknown dims are the number of rows at first, and 1 behind it. */
function build(shape, element) {
  const dims = shape.map((dim, index) => (dim >= 0 ? dim : index ? 1 : Number(rows.value) || 1));
  const level = (depth) => depth === dims.length ? element() : Array.from({ length: dims[depth] }, () => level(depth + 1));
  return level(0);
}

function fillField({ feed, text }, kind) {
  const whole = /int|bool/.test(feed.dtype);
  const element = { zeros: () => 0, ones: () => 1, random: () => (whole ? Math.floor(Math.random() * 2) : Number((Math.random() * 2 - 1).toFixed(4))) }[kind];
  const values = build(feed.shape, element);
  const value = feed.lod ? { values, lengths: [[Number(rows.value) || 1]] } : values;
  text.value = JSON.stringify(value).replace(/\],\[/g, "],\n [");
}

async function predict(event) {
  event.preventDefault();
  let inputs;
  try {
    inputs = Object.fromEntries(fields.map(({ feed, text }) => {
      try { return [feed.name, JSON.parse(text.value)]; } catch (error) { throw new Error(`${feed.name} is no JSON: ${error.message}`); }
    }));
  } catch (error) {
    return showProblem(error.message);
  }
  button.disabled = true;
  try {
    const answer = await fetch("/predict", { method: "POST", headers: { Authorization: `Bearer ${token}`, "Content-Type": "application/json" }, body: JSON.stringify({ inputs }) });
    const value = await answer.json();
    if (!answer.ok) return showProblem(value.error, value.hint);
    outputs.replaceChildren(make("p", { class: "good" }, `Computed in ${(1000 * value.seconds).toFixed(1)} ms.`), ...Object.entries(value.outputs).map(([name, one]) => showOutput(name, one)));
  } catch (error) {
    showProblem(`The server does not answer: ${error.message}`);
  } finally {
    button.disabled = false;
  }
}

function showProblem(text, hint) {
  outputs.replaceChildren(make("p", { class: "problem" }, text), hint ? make("p", { class: "muted" }, hint) : "");
}

function showOutput(name, one) {
  const matrix = one.shape.length === 2 && one.shape[1] > 1 && one.shape[1] <= 100000 && one.values.length;
  const text = JSON.stringify(one.values).replace(/\],\[/g, "],\n [");
  return make("section", { class: "output" }, make("h3", null, make("span", { class: "name" }, name), ` ${one.dtype} ${formatShape(one.shape)}`, one.lengths ? `, lengths ${JSON.stringify(one.lengths)}` : ""),
    matrix ? showLargest(one.values) : null,
    make("pre", { class: "values" }, text.length > 20000 ? `${text.slice(0, 20000)} …` : text));
}

/** Return the largest elements of the first rows: of a classifier, its classes. */
function showLargest(values) {
  const lines = values.slice(0, 10).map((row, index) => {
    const best = row.map((value, place) => [value, place]).filter(([value]) => typeof value === "number").sort((one, other) => other[0] - one[0]).slice(0, 3);
    const top = Math.max(...best.map(([value]) => Math.abs(value)), 1e-30);
    return [String(index), best.map(([value, place]) => make("div", { class: "best" }, make("span", null, `${place}: ${formatNumber(value)}`), makeBar(value / top)))];
  });
  return makeTable(["row", "largest elements"], lines, { label: "Largest elements" });
}

const example = JSON.stringify({ inputs: Object.fromEntries(data.feeds.map((feed) => [feed.name, "…"])) });
document.body.append(
  make("header", null, make("div", { class: "title" }, make("h1", null, data.name), make("p", { class: "muted" }, `${formatCount(data.operators, "operator")}, computes ${data.fetches.map((one) => one.name).join(", ")}`), make("p", { class: "muted path" }, data.path))),
  make("main", { class: "predict" },
    make("form", { submit: predict, keydown: (event) => event.key === "Enter" && (event.ctrlKey || event.metaKey) && predict(event) },
      make("p", { class: "group spaced" }, make("label", { for: "rows" }, "Rows to fill"), rows),
      fields.map((field) => make("fieldset", null, make("legend", null, make("span", { class: "name" }, field.feed.name), ` ${field.feed.dtype} ${formatShape(field.feed.shape)}${field.feed.lod ? `, ${formatCount(field.feed.lod, "level")} of sequences` : ""}`),
        make("div", { class: "group" }, ["zeros", "ones", "random"].map((kind) => make("button", { type: "button", click: () => fillField(field, kind) }, kind))), field.text)),
      button, make("span", { class: "muted" }, " Ctrl + Enter")),
    make("div", null, make("h2", null, "Outputs"), outputs,
      make("details", null, make("summary", null, "From a program"), make("pre", { class: "values" },
        `curl -H 'Authorization: Bearer TOKEN' \\\n  -H 'Content-Type: application/json' \\\n  -d '${example}' \\\n  ${location.origin}/predict`)))));
for (const field of fields) fillField(field, "zeros");
