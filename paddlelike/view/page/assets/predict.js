// The page to try a model: a field for each input, a run, and its outputs.

const token = new URLSearchParams(location.search).get("token") || "";
const rows = make("input", { type: "number", min: "1", max: "100000", value: "1", id: "rows", "aria-label": "Rows" });
const fields = data.feeds.map((feed) => ({ feed, text: make("textarea", { id: `feed-${feed.name}`, rows: "6", spellcheck: "false", "aria-label": feed.name }) }));
const outputs = make("div", { id: "outputs", role: "status" });
const button = make("button", { type: "submit", class: "main" }, "Run");

/** Return how an input is given: as an image [channels, height, width, channels last], a row of numbers, or JSON. */
function findKind({ shape, lod }) {
  const size = (dim) => (dim > 0 ? dim : 224), isColor = (dim) => dim === 1 || dim === 3;
  if (!lod && shape.length === 4 && isColor(shape[1])) return { image: [shape[1], size(shape[2]), size(shape[3]), false] };
  if (!lod && shape.length === 4 && isColor(shape[3])) return { image: [shape[3], size(shape[1]), size(shape[2]), true] };
  if (!lod && shape.length === 2 && shape[1] > 0 && shape[1] <= 64) return { row: shape[1] };
  return {};
}

const scales = { "0 to 1": (value) => value / 255, "0 to 255": (value) => value, "-1 to 1": (value) => value / 127.5 - 1,
  "ImageNet's mean and deviation": (value, channel) => (value / 255 - [0.485, 0.456, 0.406][channel]) / [0.229, 0.224, 0.225][channel] };

/** Return where an image is dropped or chosen; its pixels become the values of the field. */
function makeImageInput(field, [channels, height, width, last]) {
  const canvas = make("canvas", { width, height, class: "preview", "aria-label": "The image as it is fed" });
  const scale = make("select", { "aria-label": "Scale of the pixels", change: () => shown && use(shown) }, Object.keys(scales).map((name) => make("option", null, name)));
  const file = make("input", { type: "file", accept: "image/*", id: `file-${field.feed.name}`, "aria-label": `Image for ${field.feed.name}`, change: () => file.files[0] && use(file.files[0]) });
  let shown = null;
  async function use(blob) {
    let bitmap;
    try { bitmap = await createImageBitmap(blob); } catch { return showProblem(`${blob.name} is not an image that this browser opens`); }
    shown = blob;
    const context = canvas.getContext("2d", { willReadFrequently: true });
    context.drawImage(bitmap, 0, 0, width, height);
    const pixels = context.getImageData(0, 0, width, height).data, convert = scales[scale.value];
    const at = (row, column, channel) => Number(convert(channels === 1 ? 0.299 * pixels[4 * (row * width + column)] + 0.587 * pixels[4 * (row * width + column) + 1] + 0.114 * pixels[4 * (row * width + column) + 2]
      : pixels[4 * (row * width + column) + channel], channel).toPrecision(6));
    const list = (count, item) => Array.from({ length: count }, (_, index) => item(index));
    field.values = [last ? list(height, (row) => list(width, (column) => list(channels, (channel) => at(row, column, channel))))
      : list(channels, (channel) => list(height, (row) => list(width, (column) => at(row, column, channel))))];
    field.text.value = "";
    field.text.placeholder = `${channels} x ${height} x ${width} values of ${blob.name}; what is written here is used instead`;
  }
  const zone = make("div", { class: "drop", dragover: (event) => event.preventDefault(), drop: (event) => { event.preventDefault(); if (event.dataTransfer.files[0]) use(event.dataTransfer.files[0]); } },
    make("label", { for: file.id }, `Drop an image here, or choose one; it becomes ${channels} x ${height} x ${width}`), file, make("div", { class: "group" }, make("span", { class: "muted" }, "Pixels "), scale), canvas);
  return zone;
}

/** Return a form of the numbers of the first row, which follows the text and is followed by it. */
function makeRowInput(field, count) {
  const whole = /int|bool/.test(field.feed.dtype);
  const cells = Array.from({ length: count }, (_, index) => make("input", { type: "number", step: whole ? "1" : "any", "aria-label": `${field.feed.name} ${index}`, title: String(index), input: () => {
    let values;
    try { values = JSON.parse(field.text.value); } catch { values = [[]]; }
    values[0] = cells.map((cell) => Number(cell.value) || 0);
    field.text.value = JSON.stringify(values).replace(/\],\[/g, "],\n [");
  } }));
  field.follow = () => {
    let row;
    try { row = JSON.parse(field.text.value)[0]; } catch { return; }
    if (Array.isArray(row)) cells.forEach((cell, index) => { cell.value = row[index] ?? ""; });
  };
  field.text.addEventListener("input", field.follow);
  return make("div", { class: "row-form", role: "group", "aria-label": `First row of ${field.feed.name}` }, cells);
}

function makeInput(field) {
  const { image, row } = findKind(field.feed);
  return image ? makeImageInput(field, image) : row ? makeRowInput(field, row) : null;
}

/** Return nested lists of a shape; unknown dims are the number of rows at first, and 1 behind it. */
function build(shape, element) {
  const dims = shape.map((dim, index) => (dim >= 0 ? dim : index ? 1 : Number(rows.value) || 1));
  const level = (depth) => depth === dims.length ? element() : Array.from({ length: dims[depth] }, () => level(depth + 1));
  return level(0);
}

function fillField({ feed, text, follow }, kind) {
  const whole = /int|bool/.test(feed.dtype);
  const element = { zeros: () => 0, ones: () => 1, random: () => (whole ? Math.floor(Math.random() * 2) : Number((Math.random() * 2 - 1).toFixed(4))) }[kind];
  const values = build(feed.shape, element);
  const value = feed.lod ? { values, lengths: [[Number(rows.value) || 1]] } : values;
  text.value = JSON.stringify(value).replace(/\],\[/g, "],\n [");
  follow?.();
}

async function predict(event) {
  event.preventDefault();
  let inputs;
  try {
    inputs = Object.fromEntries(fields.map(({ feed, text, values }) => {
      if (values && !text.value.trim()) return [feed.name, values];
      try { return [feed.name, JSON.parse(text.value)]; } catch (error) { throw new Error(`${feed.name} is not JSON: ${error.message}`); }
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
    make("pre", { class: "values", tabindex: "0" }, text.length > 20000 ? `${text.slice(0, 20000)} …` : text));
}

/** Return the largest elements of the first rows: of a classifier, its classes. */
function showLargest(values) {
  const lines = values.slice(0, 10).map((row, index) => {
    const best = row.map((value, place) => [value, place]).filter(([value]) => typeof value === "number").sort((one, other) => other[0] - one[0]).slice(0, 3);
    const top = Math.max(...best.map(([value]) => Math.abs(value)), 1e-30);
    return [String(index), best.map(([value, place]) => make("div", { class: "best" }, make("span", null, `${data.labels[place] ?? place}: ${formatNumber(value)}`), makeBar(value / top)))];
  });
  return makeTable(["row", "largest elements"], lines, { label: "Largest elements" });
}

const example = JSON.stringify({ inputs: Object.fromEntries(data.feeds.map((feed) => [feed.name, "…"])) });
document.body.append(
  make("header", null, make("div", { class: "title" }, make("h1", null, data.name), make("p", { class: "muted" }, `${formatCount(data.operators, "operator")}, computes ${data.fetches.map((one) => one.name).join(", ")}`), make("p", { class: "muted path" }, data.path), make("p", null, make("a", { href: `/docs?token=${encodeURIComponent(token)}` }, "Interface")))),
  make("main", { class: "predict" },
    make("form", { submit: predict, keydown: (event) => event.key === "Enter" && (event.ctrlKey || event.metaKey) && predict(event) },
      make("p", { class: "group spaced" }, make("label", { for: "rows" }, "Rows to fill"), rows),
      fields.map((field) => make("fieldset", null, make("legend", null, make("span", { class: "name" }, field.feed.name), ` ${field.feed.dtype} ${formatShape(field.feed.shape)}${field.feed.lod ? `, ${formatCount(field.feed.lod, "level")} of sequences` : ""}`),
        make("div", { class: "group" }, ["zeros", "ones", "random"].map((kind) => make("button", { type: "button", click: () => fillField(field, kind) }, kind))), makeInput(field), field.text)),
      button, make("span", { class: "muted" }, " Ctrl + Enter")),
    make("div", null, make("h2", null, "Outputs"), outputs,
      make("details", null, make("summary", null, "From a program"), make("pre", { class: "values", tabindex: "0" },
        `curl -H 'Authorization: Bearer TOKEN' \\\n  -H 'Content-Type: application/json' \\\n  -d '${example}' \\\n  ${location.origin}/predict`)))));
for (const field of fields) fillField(field, "zeros");
