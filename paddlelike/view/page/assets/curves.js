// A chart of one curve by step: restarts as dotted lines, saves as ticks, and the nearest point under the pointer.

/** `numbers` may hold texts for what is not finite; those points are gaps. */
function makeChart(name, curve, { restarts, saves, logarithmic }) {
  const width = Math.min(640, document.body.clientWidth - 26 || 640), height = 200, bottom = 22, top = 8, right = 8;
  const points = curve.steps.map((step, index) => [step, curve.values[index]]);
  const finite = points.filter(([, value]) => typeof value === "number" && (!logarithmic || value > 0));
  const odd = points.length - points.filter(([, value]) => typeof value === "number").length;
  const title = make("h3", null, name, make("span", { class: "muted" }, ` last ${formatNumber(curve.last)}, from ${formatNumber(curve.smallest)} to ${formatNumber(curve.largest)}, ${formatCount(curve.count, "step")}`),
    odd > 0 && make("span", { class: "flag" }, `${odd} not finite`));
  if (!finite.length) return make("figure", { class: "chart" }, title, make("p", { class: "problem" }, logarithmic ? "No value is positive." : "No value is finite."));
  const scale = logarithmic ? Math.log10 : (value) => value;
  const first = points[0][0], last = points[points.length - 1][0];
  let low = Infinity, high = -Infinity;
  for (const [, value] of finite) { low = Math.min(low, scale(value)); high = Math.max(high, scale(value)); }
  if (low === high) { low -= Math.abs(low) * 0.1 || 0.5; high += Math.abs(high) * 0.1 || 0.5; }
  const lines = [low, (low + high) / 2, high].map((value) => logarithmic ? 10 ** value : value);
  const texts = lines.map((value) => formatNumber(Number(value.toPrecision(3))));
  const left = 14 + 7 * Math.max(...texts.map((text) => text.length)); // the longest text is whole
  const x = (step) => left + ((step - first) / (last - first || 1)) * (width - left - right);
  const y = (value) => top + (1 - (scale(value) - low) / (high - low)) * (height - top - bottom);
  let path = "", open = false;
  for (const [step, value] of points) {
    if (typeof value !== "number" || (logarithmic && value <= 0)) { open = false; continue; }
    path += `${open ? "L" : "M"}${x(step).toFixed(1)} ${y(value).toFixed(1)}`;
    open = true;
  }
  const svg = draw("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": `${name} from step ${first} to ${last}, last ${formatNumber(curve.last)}` },
    lines.map((value, index) => [draw("line", { class: "grid", x1: left, x2: width - right, y1: y(value), y2: y(value) }), draw("text", { x: left - 6, y: y(value) + 4, "text-anchor": "end" }, texts[index])]),
    [first, last].map((step, index) => draw("text", { x: x(step), y: height - 6, "text-anchor": index ? "end" : "start" }, step.toLocaleString("en"))),
    restarts.filter((step) => step >= first && step <= last).map((step) => draw("line", { class: "restart", x1: x(step), x2: x(step), y1: top, y2: height - bottom }, draw("title", null, `restarted at step ${step}`))),
    saves.filter((one) => one.step !== null && one.step >= first && one.step <= last + 1).map((one) => draw("path", { class: "save", d: `M${x(Math.min(one.step, last))} ${height - bottom}l-4 8h8z` }, draw("title", null, `${one.name} at step ${one.step}`))),
    draw("path", { class: "curve", d: path }), finite.length < 40 && finite.map(([step, value]) => draw("circle", { cx: x(step), cy: y(value), r: 2.5 })));
  const marker = draw("circle", { class: "marker", r: 4, visibility: "hidden" }), readout = make("span", { class: "muted readout" });
  svg.append(marker);
  svg.addEventListener("pointermove", (event) => {
    const box = svg.getBoundingClientRect();
    const step = first + (((event.clientX - box.left) / box.width * width - left) / (width - left - right)) * (last - first);
    const [at, value] = finite.reduce((best, one) => (Math.abs(one[0] - step) < Math.abs(best[0] - step) ? one : best));
    marker.setAttribute("cx", x(at));
    marker.setAttribute("cy", y(value));
    marker.setAttribute("visibility", "visible");
    readout.textContent = ` step ${at}: ${formatNumber(value)}`;
  });
  svg.addEventListener("pointerleave", () => { marker.setAttribute("visibility", "hidden"); readout.textContent = ""; });
  title.append(readout);
  return make("figure", { class: "chart" }, title, svg);
}
