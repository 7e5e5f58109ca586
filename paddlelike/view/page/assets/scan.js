// The page of a scan: which scripts and files stop where, and what is known.

data.title = `${formatCount(data.scripts.length, "script")}, ${formatCount(data.files.length, "other file")}, read without running them`;
const verdicts = { stops: ["stops", "bad"], "may stop": ["may stop", "warn"], runs: ["nothing found", "mild"] };

function addTabs() {
  addTab("summary", "Summary", showSummary);
  addTab("scripts", "Scripts", showScripts);
  addTab("names", "Names", showNames);
  if (data.files.length) addTab("files", "Models and files", showFiles);
}

function countVerdict(verdict) {
  return data.scripts.filter((one) => one.verdict === verdict).length;
}

function makeCard(title, number, text, tab, style = "") {
  return make("button", { type: "button", class: `card ${style}`, click: () => openTab(tab) },
    make("span", { class: "muted" }, title), make("span", { class: "big" }, number.toLocaleString("en")), make("span", { class: "muted" }, text));
}

function showSummary(section) {
  const stopped = data.files.filter((one) => one.stops).length;
  const absent = Object.keys(data.packages).filter((name) => !data.packages[name]);
  section.append(make("div", { class: "cards" },
    makeCard("Scripts that stop", countVerdict("stops"), "run without arguments", "scripts", countVerdict("stops") ? "bad" : ""),
    makeCard("Scripts that may stop", countVerdict("may stop"), "by arguments or data", "scripts"),
    makeCard("Scripts without a finding", countVerdict("runs"), "", "scripts"),
    makeCard("Names of Paddle", Object.keys(data.names).length, "known and used", "names"),
    data.files.length > 0 && makeCard("Files that stop", stopped, `of ${data.files.length}`, "files", stopped ? "bad" : "")));
  const reasons = new Map();
  for (const script of data.scripts) {
    for (const one of script.findings.filter((each) => each.kind !== "unseen")) {
      const known = reasons.get(one.name) || { ...one, scripts: new Set() };
      reasons.set(one.name, known);
      known.scripts.add(script.path);
    }
  }
  const common = [...reasons.values()].sort((one, other) => other.scripts.size - one.scripts.size).slice(0, 20);
  if (common.length) {
    section.append(make("h2", null, "What stops most scripts"), makeTable(["name", "scripts", "why", "next step"],
      common.map((one) => [make("code", null, one.name), one.scripts.size, one.why, one.step]), { right: [1], label: "What stops most scripts", hide: [3], stack: true }));
  } else section.append(make("p", { class: "good" }, "Nothing that stops was found."));
  if (absent.length) section.append(make("h2", null, "Packages that are imported and not installed"), make("p", null, absent.join(", ")));
  section.append(make("h2", null, "What cannot be seen without running"), make("p", { class: "muted" },
    "What data hold; what numpy refuses of values (\"%.2f\" % array); names that are put together; what other packages do."));
  return () => {};
}

function showScripts(section) {
  const list = make("div");
  section.append(list);
  return (filter) => {
    const matches = makeMatcher(filter);
    list.replaceChildren();
    for (const [verdict, [title, style]] of Object.entries(verdicts)) {
      const shown = data.scripts.filter((one) => one.verdict === verdict && matches(one.path, ...one.findings.map((each) => `${each.name} ${each.why}`)));
      if (!shown.length) continue;
      const place = make("div");
      list.append(make("h2", null, `${formatCount(shown.length, "script")}: ${title}`), place);
      place.after(showSome(place, shown, (one) => makeScript(one, style), 100));
    }
  };
}

function makeScript(script, style) {
  const findings = [...script.findings].sort((one, other) => other.certain - one.certain);
  if (!findings.length) return make("p", null, make("code", null, script.path));
  return make("details", { class: "operator" }, make("summary", null, make("code", null, script.path), ` ${formatCount(findings.length, "finding")}`),
    make("ul", { class: "findings" }, findings.map((one) => make("li", { class: one.kind === "unseen" ? "mild" : one.certain ? style : "warn" },
      make("span", { class: "flag" }, one.kind === "unseen" ? "not seen" : one.certain ? "stops" : "may stop"),
      make("p", null, make("code", null, `${one.file}:${one.line}`), " ", make("code", null, one.name)),
      make("p", null, one.why), one.step && make("p", { class: "muted" }, one.step)))));
}

function showNames(section) {
  const place = make("div");
  section.append(place);
  return (filter) => {
    const matches = makeMatcher(filter);
    const names = Object.entries(data.names).filter(([name]) => matches(name)).sort((one, other) => other[1] - one[1]);
    place.replaceChildren(makeTable(["name that is known here", "uses"], names.map(([name, count]) => [make("code", null, name), count]), { right: [1], label: "Names of Paddle" }));
  };
}

function showFiles(section) {
  const place = make("div");
  section.append(place);
  return (filter) => {
    const matches = makeMatcher(filter);
    const shown = data.files.filter((one) => matches(one.path, one.title, one.stops)).sort((one, other) => Boolean(other.stops) - Boolean(one.stops));
    place.replaceChildren(makeTable(["file", "what it is", "what stops"], shown.map((one) => [make("code", null, one.path), one.title,
      one.stops ? make("span", { class: "problem" }, `${one.stops}: ${one.step}`) : make("span", { class: "good" }, "known")]), { label: "Models and files", stack: true }));
  };
}
