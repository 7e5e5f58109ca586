"use strict";
// Elements, texts and the shell of the page. Everything that comes from files is set as text, never as HTML.

const data = JSON.parse(document.getElementById("data").textContent);

/** Return an element; strings among the children become text nodes, and long names may break after . _ / there. */
function make(tag, attributes, ...children) {
  const parts = tag === "option" ? children : children.flat(3).flatMap((one) => (typeof one === "string" && /^\S{16,}$/.test(one)
    ? one.split(/(?<=[._/])(?=[^._/])/).flatMap((part, index) => (index ? [document.createElement("wbr"), part] : [part])) : [one]));
  return fill(document.createElement(tag), attributes, parts);
}

/** Return an element of SVG. */
function draw(tag, attributes, ...children) {
  return fill(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);
}

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes || {})) {
    if (typeof value === "function") element.addEventListener(name, value);
    else if (value === true) element.setAttribute(name, "");
    else if (value !== false && value !== null && value !== undefined) element.setAttribute(name, value);
  }
  element.append(...children.flat(3).filter((one) => one !== null && one !== undefined && one !== false));
  return element;
}

/** Return a number of bytes as foundation/amounts.py does, in powers of 1,000. */
function formatSize(count) {
  const units = ["B", "kB", "MB", "GB", "TB"];
  let size = count, unit = 0;
  while (size >= (unit ? 999.95 : 1000) && unit + 1 < units.length) { size /= 1000; unit += 1; }
  return unit ? `${size.toFixed(1)} ${units[unit]}` : `${count} B`;
}

function formatCount(count, word) {
  return `${count.toLocaleString("en")} ${word}${count === 1 ? "" : "s"}`;
}

/** Return a number with four digits; the server sends what is not finite as text. */
function formatNumber(value) {
  if (typeof value !== "number") return value === null || value === undefined ? "" : String(value);
  if (!Number.isFinite(value)) return String(value).toLowerCase().replace("infinity", "inf"); // as Python prints it
  if (Number.isInteger(value) && Math.abs(value) < 1e7) return String(value);
  return Math.abs(value) < 1e-4 ? value.toExponential(3) : String(Number(value.toPrecision(4)));
}

function formatShape(shape) {
  return `[${shape.join(", ")}]`;
}

/** Return a table; cells are texts or elements, `right` the indices of columns of numbers, `hide` of those left out on
 * a narrow page; with `stack` a row becomes lines there. */
function makeTable(titles, rows, { right = [], label = "", hide = [], stack = false } = {}) {
  const style = (index) => [right.includes(index) && "right", hide.includes(index) && "wide"].filter(Boolean).join(" ") || null;
  const cell = (tag) => (one, index) => make(tag, { class: style(index), scope: tag === "th" ? "col" : null }, one);
  return make("div", { class: "scroll" }, make("table", { "aria-label": label || null, class: stack ? "stack" : null },
    make("thead", null, make("tr", null, titles.map((one, index) => cell(one ? "th" : "td")(one, index)))),
    make("tbody", null, rows.map((row) => make("tr", null, row.map(cell("td")))))));
}

/** Return a list that shows its first entries; a button shows more. */
function showSome(container, items, render, count = 200) {
  let shown = 0;
  const more = make("button", { type: "button", class: "more", click: () => grow() });
  function grow() {
    const next = items.slice(shown, shown + count);
    container.append(...next.map(render));
    shown += next.length;
    more.hidden = shown >= items.length;
    more.textContent = `Show ${Math.min(count, items.length - shown)} more of ${items.length - shown}`;
  }
  grow();
  return more;
}

// ---- the shell: tabs, one filter for all of them, and a panel for what is chosen

const shell = { tabs: [], chosen: null, filter: make("input", {
  type: "search", id: "filter", placeholder: "Filter ( / )", "aria-label": "Filter", autocomplete: "off", spellcheck: "false", role: "combobox", "aria-expanded": "false", "aria-controls": "results", "aria-autocomplete": "list",
}) };

/** Add a tab; `show` fills its section when it is first opened, and returns what to call at each filter. */
function addTab(id, title, show) {
  const button = make("button", { type: "button", role: "tab", id: `tab-${id}`, "aria-controls": `view-${id}`, "aria-selected": "false", tabindex: "-1", click: () => openTab(id) }, title);
  const section = make("section", { id: `view-${id}`, role: "tabpanel", "aria-labelledby": `tab-${id}`, hidden: true });
  shell.tabs.push({ id, button, section, show, filter: null });
}

function openTab(id) {
  const tab = shell.tabs.find((one) => one.id === id);
  if (!tab) return null;
  for (const one of shell.tabs) {
    one.section.hidden = one !== tab;
    one.button.setAttribute("aria-selected", String(one === tab));
    one.button.tabIndex = one === tab ? 0 : -1;
  }
  shell.chosen = tab;
  if (!tab.section.hasChildNodes()) tab.filter = tab.show(tab.section) || (() => {});
  tab.filter(shell.filter.value);
  tab.button.scrollIntoView({ block: "nearest", inline: "nearest" });
  return tab;
}

/** Return a function that tells whether texts hold all words of a filter. */
function makeMatcher(filter) {
  const words = filter.toLowerCase().split(/\s+/).filter(Boolean);
  return (...texts) => {
    const text = texts.join(" ").toLowerCase();
    return words.every((word) => text.includes(word));
  };
}

const panel = make("aside", { id: "panel", "aria-label": "Details", tabindex: "-1", hidden: true });

function openPanel(title, ...children) {
  panel.replaceChildren(
    make("div", { class: "bar" }, make("h2", null, title),
      make("button", { type: "button", class: "close", "aria-label": "Close", click: closePanel }, "✕")),
    ...children.flat().filter(Boolean));
  panel.hidden = false;
  panel.scrollTop = 0;
  document.body.classList.add("with-panel");
}

function closePanel() {
  panel.hidden = true;
  document.body.classList.remove("with-panel");
}

/** Return a list of names and values; pairs without a value are left out. */
function makeFacts(pairs) {
  return make("dl", null, pairs.filter(([, value]) => value !== null && value !== undefined && value !== "")
    .map(([name, value]) => [make("dt", null, name), make("dd", null, value)]));
}

/** Return a bar of a share from 0 to 1. */
function makeBar(share) {
  const bar = make("span", { class: "meter" }, make("span"));
  bar.firstChild.style.width = `${Math.max(100 * Math.min(share, 1), share > 0 ? 1 : 0)}%`;
  return bar;
}
