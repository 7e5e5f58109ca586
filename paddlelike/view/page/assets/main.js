// The shell of a page with tabs, which `addTabs` adds, and its keys.

const keys = [["/", "filter"], ["1 … 9", "tabs"], ["arrows", "rows, tiles, nodes along edges"], ["Enter", "open; in the filter: the next node, or what is chosen of what was found"],
  ["Esc", "close"], ["?", "show these keys"], ["+ − 0", "zoom, show all"], ["Shift + arrows", "move the graph"]];

function start() {
  addTabs();
  const tabs = make("nav", { role: "tablist", "aria-label": "Views", keydown: moveInTabs }, shell.tabs.map((tab) => tab.button));
  document.body.append(
    make("header", null, make("div", { class: "title" }, make("h1", null, data.name), make("p", { class: "muted" }, data.title), make("p", { class: "muted path" }, data.path)), make("div", { class: "search" }, shell.filter, results), tabs),
    make("div", { class: "columns" }, make("main", null, shell.tabs.map((tab) => tab.section)), panel),
    make("footer", null, make("details", null, make("summary", null, "Keys"), makeFacts(keys))));
  const head = document.querySelector("header");
  new ResizeObserver(() => document.body.style.setProperty("--head", `${head.offsetHeight}px`)).observe(head);
  shell.filter.addEventListener("input", () => { shell.chosen.filter(shell.filter.value); showResults(); });
  shell.filter.addEventListener("keydown", pressInFilter);
  shell.filter.addEventListener("blur", () => { results.hidden = true; });
  document.addEventListener("keydown", pressKey);
  addEventListener("hashchange", () => openTab(location.hash.slice(1)));
  openTab(location.hash.slice(1)) || openTab(data.opens || shell.tabs[0].id);
}

const results = make("ul", { id: "results", role: "listbox", "aria-label": "Found anywhere", hidden: true });
let offered = [], active = -1;

/** List below the filter what it finds in all tabs. */
function showResults() {
  const text = shell.filter.value.trim();
  offered = text && shell.search ? shell.search(makeMatcher(text), 8) : [];
  results.replaceChildren(...offered.map(([kind, name], index) => make("li", { role: "option", id: `result-${index}`, pointerdown: (event) => { event.preventDefault(); chooseResult(index); } },
    make("span", { class: "muted" }, `${kind} `), name)));
  results.hidden = !offered.length;
  activate(-1);
}

function activate(index) {
  active = index;
  [...results.children].forEach((one, place) => one.setAttribute("aria-selected", String(place === index)));
  shell.filter.setAttribute("aria-expanded", String(!results.hidden));
  if (index < 0) shell.filter.removeAttribute("aria-activedescendant");
  else shell.filter.setAttribute("aria-activedescendant", `result-${index}`);
}

function chooseResult(index) {
  results.hidden = true;
  activate(-1);
  offered[index][2]();
}

function pressInFilter(event) {
  if (event.key === "Enter") {
    if (active >= 0) chooseResult(active);
    else if (shell.chosen.id === "program") nextMatch();
    else if (shell.chosen.id === "summary" && offered.length) chooseResult(0);
  } else if ((event.key === "ArrowDown" || event.key === "ArrowUp") && !results.hidden) {
    activate((active + (event.key === "ArrowDown" ? 1 : offered.length)) % offered.length);
    event.preventDefault();
  }
}

function moveInTabs(event) {
  const place = shell.tabs.indexOf(shell.chosen), last = shell.tabs.length - 1;
  const next = { ArrowRight: place < last ? place + 1 : 0, ArrowLeft: place ? place - 1 : last, Home: 0, End: last }[event.key];
  if (next === undefined) return;
  openTab(shell.tabs[next].id).button.focus();
  event.preventDefault();
}

function pressKey(event) {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const typing = event.target.matches("input, select, textarea");
  const keyList = document.querySelector("footer details");
  if (event.key === "Escape") {
    if (keyList.open) keyList.open = false;
    else if (typing && shell.filter.value) {
      shell.filter.value = "";
      shell.chosen.filter("");
      showResults();
      event.target.blur();
    } else if (!panel.hidden) closePanel();
    else if (typing) event.target.blur();
  } else if (!typing && event.key === "/") {
    shell.filter.focus();
    event.preventDefault();
  } else if (!typing && event.key === "?") {
    keyList.open = !keyList.open;
    keyList.scrollIntoView();
  } else if (!typing && /^[1-9]$/.test(event.key) && shell.tabs[event.key - 1]) {
    openTab(shell.tabs[event.key - 1].id).button.focus({ preventScroll: true });
  }
}

start();
