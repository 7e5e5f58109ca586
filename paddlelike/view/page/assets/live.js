// The page of a running training: it asks its server for what is new, about once a second.

const token = new URLSearchParams(location.search).get("token") || "";
const live = { state: null, version: -1, wait: 1000, logarithmic: false };

async function ask(path) {
  const answer = await fetch(path, { headers: { Authorization: `Bearer ${token}` }, cache: "no-store" });
  const value = await answer.json();
  if (!answer.ok) throw new Error(value.error);
  return value;
}

async function follow() {
  try {
    const found = await ask(`/state?version=${live.version}`);
    live.wait = 1000;
    live.now = found.now;
    if (found.logs) {
      live.state = found;
      live.version = found.version;
      show();
    }
    showStatus();
  } catch (error) {
    live.wait = Math.min(live.wait * 1.5, 10000);
    status.className = "problem";
    status.textContent = `The server does not answer (${error.message}); what is shown is old.`;
  }
  setTimeout(follow, live.wait);
}

const status = make("p", { class: "status", role: "status" }, "Waiting for the server.");
const cards = make("div", { class: "cards" });
const charts = make("div", { class: "charts" });
const saves = make("div");

function showStatus() {
  status.className = "status";
  if (!live.state) return;
  const logs = live.state.logs;
  const changed = Math.max(...logs.map((log) => log.changed), 0);
  status.textContent = logs.length ? `The log was last written ${formatAge(live.now - changed)} ago.`
    : "There is no log yet: a file of fluid.io.TrainingLog that ends in .jsonl, below the directory or named with --log.";
}

function formatAge(seconds) {
  if (seconds < 90) return `${Math.max(0, Math.round(seconds))} s`;
  return seconds < 5400 ? `${Math.round(seconds / 60)} min` : `${(seconds / 3600).toFixed(1)} h`;
}

function show() {
  const { logs, saves: landed } = live.state;
  const named = logs.flatMap((log) => Object.entries(log.curves).map(([name, curve]) => ({ log, name: logs.length > 1 ? `${log.name}: ${name}` : name, curve })));
  const step = Math.max(-1, ...named.map(({ curve }) => curve.steps[curve.steps.length - 1]));
  const newest = landed[landed.length - 1];
  const changed = Math.max(...logs.map((log) => log.changed), 0);
  if (live.mark && step > live.mark.step) live.pace = (changed - live.mark.changed) / (step - live.mark.step);
  if (!live.mark || step !== live.mark.step) live.mark = { step, changed };
  cards.replaceChildren(...[
    step >= 0 && makeFigure("Step", step.toLocaleString("en"), `${formatCount(logs.reduce((sum, log) => sum + log.restarts.length, 0), "restart")}`),
    live.pace > 0 && makeFigure("Time a step", live.pace < 1 ? `${formatNumber(Math.round(live.pace * 1e4) / 10)} ms` : `${formatNumber(live.pace)} s`, "since the last look"),
    ...named.slice(0, 4).map(({ name, curve }) => makeFigure(name, formatNumber(curve.last), `${formatNumber(curve.smallest)} to ${formatNumber(curve.largest)}`, typeof curve.last === "number" ? "" : "bad")),
    makeFigure("Saves", String(landed.length), newest ? newest.name : "none has landed"),
  ].filter(Boolean));
  charts.replaceChildren(...named.map(({ log, name, curve }) => makeChart(name, curve, { restarts: log.restarts, saves: landed, logarithmic: live.logarithmic })));
  const [metric, counted] = ["metric", "step"].map((name) => landed.some((one) => one[name] !== null));
  const titles = ["save", "time", ...(counted ? ["step"] : []), ...(metric ? ["metric"] : []), "files", "size", ""], at = titles.indexOf("files");
  saves.replaceChildren(...(landed.length ? [makeTable(titles, landed.slice(-100).reverse().map((one) => [
    make("span", { class: "name" }, one.name), one.time.replace("T", " ").replace("Z", ""), ...(counted ? [one.step ?? ""] : []), ...(metric ? [formatNumber(one.metric)] : []), one.files, formatSize(one.nbytes),
    make("a", { href: `/save?id=${one.id}&token=${encodeURIComponent(token)}`, target: "_blank", rel: "noopener" }, "look into it")]), { label: "Saves", right: titles.map((_, index) => index).slice(2, at + 2), hide: [1, at] })]
    : [make("p", { class: "muted" }, `Waiting for the first save below ${data.directory}: by fluid.io.save_persistables, Checkpoints or another save that writes a manifest.`)]));
}

function makeFigure(title, number, text, style = "") {
  return make("div", { class: `card ${style}` }, make("span", { class: "muted" }, title), make("span", { class: "big" }, number), make("span", { class: "muted name" }, text));
}

const scaleButton = make("button", { type: "button", "aria-pressed": "false", click: () => {
  live.logarithmic = !live.logarithmic;
  scaleButton.setAttribute("aria-pressed", String(live.logarithmic));
  if (live.state) show();
} }, "Logarithmic");

document.body.append(
  make("header", null, make("div", { class: "title" }, make("h1", null, data.name), make("p", { class: "muted path" }, data.directory)), make("div", { class: "group end" }, scaleButton)),
  make("main", null, status, cards, charts, make("h2", null, "Saves"), saves));
follow();
