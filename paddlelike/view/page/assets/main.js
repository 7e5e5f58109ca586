// The shell of a page with tabs, which `addTabs` adds, and its keys.

const keys = [["/", "filter"], ["1 … 7", "tabs"], ["arrows", "rows, tiles, nodes along edges"], ["Enter", "open; in the filter: the next node"],
  ["Esc", "close"], ["?", "show these keys"], ["+ − 0", "zoom, show all"], ["Shift + arrows", "move the graph"]];

function start() {
  addTabs();
  const tabs = make("nav", { role: "tablist", "aria-label": "Views", keydown: moveInTabs }, shell.tabs.map((tab) => tab.button));
  document.body.append(
    make("header", null, make("div", { class: "title" }, make("h1", null, data.name), make("p", { class: "muted" }, data.title), make("p", { class: "muted path" }, data.path)), shell.filter, tabs),
    make("div", { class: "columns" }, make("main", null, shell.tabs.map((tab) => tab.section)), panel),
    make("footer", null, make("details", null, make("summary", null, "Keys"), makeFacts(keys))));
  const head = document.querySelector("header");
  new ResizeObserver(() => document.body.style.setProperty("--head", `${head.offsetHeight}px`)).observe(head);
  shell.filter.addEventListener("input", () => shell.chosen.filter(shell.filter.value));
  shell.filter.addEventListener("keydown", (event) => event.key === "Enter" && shell.chosen.id === "program" && nextMatch());
  document.addEventListener("keydown", pressKey);
  addEventListener("hashchange", () => openTab(location.hash.slice(1)));
  openTab(location.hash.slice(1)) || openTab("summary");
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
  if (event.key === "Escape") {
    if (typing && shell.filter.value) {
      shell.filter.value = "";
      shell.chosen.filter("");
    } else if (!panel.hidden) closePanel();
    else if (typing) event.target.blur();
  } else if (!typing && event.key === "/") {
    shell.filter.focus();
    event.preventDefault();
  } else if (!typing && event.key === "?") {
    const keyList = document.querySelector("footer details");
    keyList.open = !keyList.open;
    keyList.scrollIntoView();
  } else if (!typing && /^[1-7]$/.test(event.key) && shell.tabs[event.key - 1]) {
    openTab(shell.tabs[event.key - 1].id).button.focus({ preventScroll: true });
  }
}

start();
