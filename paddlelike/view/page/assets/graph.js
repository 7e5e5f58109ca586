// A drawing of nodes and edges on a canvas, to zoom, to pan and to walk through. Only what is visible is drawn.

const farAway = 500; // pixels

/** Kinds of operators by the beginning of their type; each has a colour, `--family-NAME`. */
const families = [
  ["loss", /(loss|cross_entropy|accuracy|auc|square_error)/i],
  ["matrix", /^(depthwise_)?(conv|mul$|matmul|bmm|fc|deformable|dense|gemm)/i],
  ["embedding", /^(lookup|embedding|sparse_embedding|gather|one_hot)/i],
  ["recurrent", /^(lstm|gru|rnn|dynamic_|while|recurrent|conditional|sequence)/i],
  ["normalization", /^(batch_norm|layer_norm|group_norm|instance_norm|sync_batch|norm|lrn|dropout)/i],
  ["activation", /^(relu|leaky|sigmoid|tanh|softmax|gelu|swish|elu|selu|prelu|hard_|exp$|log$)/i],
  ["pooling", /^(pool|adaptive_pool|reduce|mean|sum$|max$|arg|top_k)/i],
  ["shape", /^(reshape|transpose|concat|split|slice|squeeze|unsqueeze|flatten|stack|expand|pad|cast|assign|fill|shape)/i],
];

/** Return the name of the kind that an operator or layer is of, or "". */
function findFamily(label) {
  return families.find(([, pattern]) => pattern.test(label))?.[0] || "";
}

class Graph {
  /** `choose(index or null)` is called when the user chooses a node. */
  constructor(choose) {
    this.choose = choose;
    this.level = { nodes: [], edges: [], width: 0, height: 0, row: 40 };
    this.near = this.far = [];
    this.chosen = null;
    this.matches = null; // indices of the nodes that fit the filter; null: there is no filter
    this.view = { x: 0, y: 0, scale: 1 };
    this.canvas = make("canvas", { class: "graph", tabindex: "0", role: "application", "aria-label": "Graph of the program. Arrows walk along edges, plus and minus zoom, 0 shows all." });
    this.map = make("canvas", { class: "minimap", "aria-hidden": "true" });
    this.element = make("div", { class: "graph-box" }, this.canvas, this.map);
    this.pointers = new Map();
    this.waiting = false;
    new ResizeObserver(() => this.resize()).observe(this.element);
    for (const type of ["pointerdown", "pointermove", "pointerup", "pointercancel"]) this.canvas.addEventListener(type, (event) => this.point(event));
    this.canvas.addEventListener("wheel", (event) => this.wheel(event), { passive: false });
    this.canvas.addEventListener("keydown", (event) => this.press(event));
    this.map.addEventListener("pointerdown", (event) => this.jump(event));
    this.map.addEventListener("pointermove", (event) => event.buttons && this.jump(event));
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.draw());
    addEventListener("beforeprint", () => this.print());
    addEventListener("afterprint", () => this.element.nextSibling?.classList.contains("printed") && this.element.nextSibling.remove());
  }

  /** `variables` has [kind, type, shape] of the names that edges carry. */
  show(level, variables = {}) {
    this.level = level;
    this.shapes = level.nodes.map(() => "");
    for (const edge of level.edges) {
      const [source, target, names] = edge, [x, y] = level.nodes[source], [toX, toY] = level.nodes[target];
      const shape = variables[names[0]]?.[2], down = toY > y, border = (down ? level.row : -level.row) / 2;
      edge[3] ||= [x, y + border, toX, toY - border];
      if (shape && down) this.shapes[source] ||= shape.map((dim) => (dim < 0 ? "?" : dim)).join("×");
    }
    this.chosen = null;
    this.matches = null;
    this.links = level.nodes.map(() => ({ before: [], after: [] }));
    level.edges.forEach(([source, target], index) => {
      this.links[source].after.push(index);
      this.links[target].before.push(index);
    });
    const isFar = ([, , , points]) => Math.abs(points[points.length - 1] - points[1]) > farAway;
    this.far = level.edges.filter(isFar);
    this.near = level.edges.filter((edge) => !isFar(edge));
    this.start();
  }

  /** Show the whole width where texts stay readable, and the top. */
  start() {
    const { width: all, height } = this.size(), top = this.above?.offsetHeight || 0, free = height - top - (this.below?.offsetHeight || 0);
    const whole = Math.min(all / (this.level.width + 40), free / (this.level.height + 40), 1.25);
    const width = whole < 0.75 ? all - this.sizeMap()[0] - 12 : all; // beside the map
    const scale = Math.max(whole, Math.min(0.75, width / (this.level.width + 40)), 0.45);
    const hidden = this.level.width * scale - width + 20; // then the first node is near the middle
    const x = hidden > 20 ? Math.min(20, Math.max(-hidden, width / 2 - (this.level.nodes[0]?.[0] || 0) * scale)) : (width - this.level.width * scale) / 2;
    this.view = { scale, x, y: top + (whole === scale ? (free - this.level.height * scale) / 2 : 20) };
    this.opened = Object.values(this.view).join();
    this.draw();
  }

  fit() {
    const { width, height } = this.size(), top = this.above?.offsetHeight || 0, free = height - top - (this.below?.offsetHeight || 0);
    const scale = Math.min(width / (this.level.width + 40), free / (this.level.height + 40), 1.25);
    this.view = { scale, x: (width - this.level.width * scale) / 2, y: top + (free - this.level.height * scale) / 2 };
    this.draw();
  }

  size() {
    return { width: this.canvas.clientWidth || 1, height: this.canvas.clientHeight || 1 };
  }

  resize() {
    const ratio = devicePixelRatio || 1, { width, height } = this.size();
    const fresh = this.canvas.width <= 1 || this.canvas.dataset.empty || (this.chosen === null && this.opened === Object.values(this.view).join());
    this.canvas.width = width * ratio;
    this.canvas.height = height * ratio;
    delete this.canvas.dataset.empty;
    if (width <= 1) this.canvas.dataset.empty = "1";
    if (!fresh && this.chosen !== null) this.reveal(this.chosen);
    if (fresh) this.start(); else this.draw();
  }

  zoom(factor, x = this.size().width / 2, y = this.size().height / 2) {
    const scale = Math.min(Math.max(this.view.scale * factor, 0.01), 4);
    const change = scale / this.view.scale;
    this.view = { scale, x: x - (x - this.view.x) * change, y: y - (y - this.view.y) * change };
    this.draw();
  }

  select(index, { center = true } = {}) {
    this.chosen = index;
    if (index !== null && center) this.reveal(index);
    this.draw();
  }

  /** Move the view so that a node is well inside of it. */
  reveal(index) {
    const [x, y] = this.level.nodes[index], { width } = this.size();
    const covered = !panel.hidden && getComputedStyle(panel).position === "fixed"; // by the panel, on a narrow page
    const below = covered ? panel.getBoundingClientRect().top - this.canvas.getBoundingClientRect().top : this.size().height;
    const height = Math.min(Math.max(below, 60), this.size().height);
    if (this.view.scale < 0.4) this.view.scale = 0.8;
    const at = [this.view.x + x * this.view.scale, this.view.y + y * this.view.scale];
    if (at[0] < 80 || at[0] > width - 160) this.view.x = width / 2 - x * this.view.scale;
    if (at[1] < 30 || at[1] > height - 30) this.view.y = height / 2 - y * this.view.scale;
  }

  draw() {
    if (this.waiting) return;
    this.waiting = true;
    requestAnimationFrame(() => { this.waiting = false; this.paint(); });
  }

  paint() {
    this.paintMap(...this.paintView(this.canvas, this.size(), this.view, document.body, devicePixelRatio || 1));
  }

  /** Put the whole graph behind the box, in pictures of a page each, in the colours of paper. */
  print() {
    if (this.element.clientWidth <= 1) return; // on a tab that is not printed
    const wide = 690, { width, height } = this.level, printed = make("div", { class: "printed light" });
    const scale = Math.min(1, wide / (width + 40), 18000 / (height + 40)), whole = (height + 40) * scale; // at most 20 pages
    this.element.after(printed);
    for (let top = 0, part; top < whole; top += part.height) {
      part = { width: wide, height: Math.min(top ? 900 : 760, whole - top) }; // the page's title is above the first
      const canvas = make("canvas", { width: 2 * wide, height: 2 * part.height });
      this.paintView(canvas, part, { scale, x: (wide - width * scale) / 2, y: 20 * scale - top }, printed, 2);
      printed.append(make("img", { ...part, src: canvas.toDataURL(), alt: "Part of the graph of the program" }));
    }
  }

  /** Draw what a view of that size shows. Return the colours and the part of the graph that is visible. */
  paintView(canvas, { width, height }, { x, y, scale }, colored, ratio) {
    const context = canvas.getContext("2d"), style = getComputedStyle(colored);
    const color = (name) => style.getPropertyValue(`--${name}`).trim();
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.clearRect(0, 0, width, height);
    context.translate(x, y);
    context.scale(scale, scale);
    const window = { left: -x / scale, top: -y / scale, right: (width - x) / scale, bottom: (height - y) / scale };
    const chosen = this.chosen === null ? [] : [...this.links[this.chosen].before, ...this.links[this.chosen].after];
    context.lineWidth = Math.max(1, 0.6 / scale);
    context.strokeStyle = context.fillStyle = color("edge");
    this.paintEdges(context, window, this.near, scale > 0.45);
    context.globalAlpha = 0.2; // what leads far away would hide the rest
    this.paintEdges(context, window, this.far, false);
    context.globalAlpha = 1;
    context.strokeStyle = context.fillStyle = color("accent");
    context.lineWidth = Math.max(2, 1.5 / scale);
    this.paintEdges(context, window, chosen.map((index) => this.level.edges[index]), scale > 0.25);
    this.paintNodes(context, window, color, scale);
    return [color, window];
  }

  paintEdges(context, window, edges, arrows) {
    const tips = [];
    context.beginPath();
    for (const [, , , points] of edges) {
      const last = points.length - 2, [x, y, toX, toY] = [points[0], points[1], points[last], points[last + 1]];
      if (Math.max(y, toY) + this.level.row < window.top || Math.min(y, toY) - this.level.row > window.bottom) continue;
      context.moveTo(x, y);
      for (let index = 2; index < points.length; index += 2) {
        const [fromX, fromY, nextX, nextY] = points.slice(index - 2, index + 2);
        const middle = (fromY + nextY) / 2;
        context.bezierCurveTo(fromX, middle, nextX, middle, nextX, nextY);
      }
      tips.push([toX, toY, Math.sign(toY - points[last - 1])]);
    }
    context.stroke();
    if (!arrows) return;
    context.beginPath();
    for (const [x, y, down] of tips) {
      context.moveTo(x, y);
      context.lineTo(x - 4, y - 7 * down);
      context.lineTo(x + 4, y - 7 * down);
    }
    context.fill();
  }

  paintNodes(context, window, color, scale) {
    const row = this.level.row, colors = {};
    for (const kind of ["input", "output", "layer", "operator", "gradient", "update"]) colors[kind] = color(`node-${kind}`);
    const familyColors = Object.fromEntries(families.map(([name]) => [name, color(`family-${name}`)]));
    const [text, faint, edge, accent] = ["text", "muted", "node-edge", "accent"].map(color);
    context.textAlign = "center";
    context.textBaseline = "middle";
    this.level.nodes.forEach(([x, y, width, label, detail, kind], index) => {
      if (x + width / 2 < window.left || x - width / 2 > window.right || y + row < window.top || y - row > window.bottom) return;
      context.globalAlpha = this.matches && !this.matches.has(index) ? 0.25 : 1;
      context.beginPath();
      if (context.roundRect) context.roundRect(x - width / 2, y - row / 2, width, row, { input: [row / 2, row / 2, 7, 7], output: [7, 7, row / 2, row / 2] }[kind] || 7);
      else context.rect(x - width / 2, y - row / 2, width, row);
      context.fillStyle = colors[kind];
      context.fill();
      const family = kind === "input" || kind === "output" ? "" : findFamily(label), visible = context.globalAlpha;
      if (family) {
        context.fillStyle = familyColors[family];
        context.globalAlpha = 0.22 * visible;
        context.fill();
        context.globalAlpha = visible;
      }
      context.strokeStyle = index === this.chosen ? accent : edge;
      context.lineWidth = index === this.chosen ? Math.max(3, 2 / scale) : 1;
      context.stroke();
      const middle = family ? x + 3 : x;
      if (family) {
        context.fillStyle = familyColors[family];
        context.fillRect(x - width / 2 + 1, y - row / 2 + 6, 5, row - 12);
      }
      if (scale < 0.35) return;
      context.fillStyle = text;
      context.font = "600 12px system-ui, sans-serif";
      context.fillText(label, middle, detail ? y - 7 : y, width - 16);
      context.fillStyle = faint;
      context.font = "11px system-ui, sans-serif";
      if (detail) context.fillText(detail, middle, y + 9, width - 16);
      if (!this.shapes[index] || scale < 0.5) return;
      context.font = "10px system-ui, sans-serif"; // what leaves it, beside the edge
      context.textAlign = "left";
      context.fillText(this.shapes[index], x + 7, y + row / 2 + 8);
      context.textAlign = "center";
    });
    context.globalAlpha = 1;
  }

  /** Draw all nodes small in the corner, and what part is visible; nothing where everything is. */
  paintMap(color, window) {
    const { width, height } = this.level;
    const hidden = this.level.nodes.length < 2 || (window.left <= 0 && window.top <= 0 && window.right >= width && window.bottom >= height);
    this.map.hidden = hidden;
    if (hidden) return;
    const size = this.sizeMap(), scale = size[1] / height, ratio = devicePixelRatio || 1;
    this.map.width = size[0] * ratio;
    this.map.height = size[1] * ratio;
    Object.assign(this.map.style, { width: `${size[0]}px`, height: `${size[1]}px` });
    const context = this.map.getContext("2d"), across = size[0] / width;
    context.setTransform(ratio * across, 0, 0, ratio * scale, 0, 0);
    this.level.nodes.forEach(([x, y, wide, , , kind], index) => {
      context.fillStyle = index === this.chosen ? color("accent") : this.matches && !this.matches.has(index) ? color("line") : color(`map-${kind}`);
      context.fillRect(x - wide / 2, y - 20, wide, Math.max(40, 1.5 / scale));
    });
    context.strokeStyle = color("accent");
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.lineWidth = 1.5;
    context.strokeRect(Math.max(window.left * across, 1), Math.max(window.top * scale, 1), Math.min((window.right - window.left) * across, size[0] - 2), Math.min((window.bottom - window.top) * scale, size[1] - 2));
  }

  sizeMap() {
    const { width, height } = this.level, box = this.size();
    const scale = Math.min(Math.min(120, box.width * 0.16) / width, (box.height - 24) / height);
    return [Math.max(width * scale, 24), height * scale];
  }

  jump(event) {
    const box = this.map.getBoundingClientRect(), { width, height } = this.size();
    this.view.x = width / 2 - ((event.clientX - box.left) / box.width) * this.level.width * this.view.scale;
    this.view.y = height / 2 - ((event.clientY - box.top) / box.height) * this.level.height * this.view.scale;
    this.draw();
  }

  find(x, y) {
    const at = [(x - this.view.x) / this.view.scale, (y - this.view.y) / this.view.scale];
    const found = this.level.nodes.findIndex(([middle, row, width]) => Math.abs(at[0] - middle) <= width / 2 && Math.abs(at[1] - row) <= this.level.row / 2);
    return found < 0 ? null : found;
  }

  point(event) {
    const box = this.canvas.getBoundingClientRect(), at = { x: event.clientX - box.left, y: event.clientY - box.top };
    if (event.type === "pointerdown") {
      this.canvas.setPointerCapture(event.pointerId);
      this.pointers.set(event.pointerId, at);
      if (this.pointers.size === 1) this.moved = 0;
      return;
    }
    const before = this.pointers.get(event.pointerId);
    if (!before) {
      this.canvas.style.cursor = this.find(at.x, at.y) === null ? "grab" : "pointer";
      return;
    }
    if (event.type === "pointermove") {
      const other = [...this.pointers].find(([id]) => id !== event.pointerId)?.[1];
      this.pointers.set(event.pointerId, at);
      this.moved += Math.abs(at.x - before.x) + Math.abs(at.y - before.y);
      if (other) {
        const apart = (one) => Math.hypot(one.x - other.x, one.y - other.y) || 1;
        this.zoom(apart(at) / apart(before), (at.x + other.x) / 2, (at.y + other.y) / 2);
      } else if (this.moved > 4) {
        this.view.x += at.x - before.x;
        this.view.y += at.y - before.y;
        this.draw();
      }
      return;
    }
    this.pointers.delete(event.pointerId);
    if (event.type === "pointerup" && this.moved <= 4) this.pick(this.find(at.x, at.y), false);
  }

  pick(index, center = true) {
    this.select(index, { center });
    this.choose(index);
    if (index !== null) this.select(index); // the panel has opened
  }

  wheel(event) {
    event.preventDefault();
    const box = this.canvas.getBoundingClientRect();
    if (event.shiftKey) { this.view.x -= event.deltaY; this.draw(); return; }
    this.zoom(Math.exp(-Math.max(-120, Math.min(event.deltaY, 120)) / 400), event.clientX - box.left, event.clientY - box.top);
  }

  press(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const pan = { ArrowUp: [0, 60], ArrowDown: [0, -60], ArrowLeft: [60, 0], ArrowRight: [-60, 0] }[event.key];
    if (pan && event.shiftKey) {
      this.view.x += pan[0];
      this.view.y += pan[1];
      this.draw();
    } else if (pan) this.walk(event.key);
    else if (event.key === "+" || event.key === "=") this.zoom(1.25);
    else if (event.key === "-") this.zoom(0.8);
    else if (event.key === "0") this.fit();
    else if (event.key === "Enter" && this.chosen !== null) panel.focus();
    else return;
    event.preventDefault();
  }

  /** Choose a neighbour: along an edge upwards or downwards, or the next node of the row. */
  walk(key) {
    const { nodes, edges } = this.level;
    if (this.chosen === null) { if (nodes.length) this.pick(0); return; }
    const [x, y] = nodes[this.chosen], { before, after } = this.links[this.chosen];
    const joined = [...before.map((index) => edges[index][0]), ...after.map((index) => edges[index][1])];
    const vertical = key === "ArrowUp" || key === "ArrowDown", sign = key === "ArrowDown" || key === "ArrowRight" ? 1 : -1;
    const candidates = vertical ? joined : nodes.map((_, index) => index).filter((index) => Math.abs(nodes[index][1] - y) < 1);
    const ahead = candidates.filter((index) => sign * (vertical ? nodes[index][1] - y : nodes[index][0] - x) > 0);
    ahead.sort((one, other) => Math.hypot(nodes[one][0] - x, nodes[one][1] - y) - Math.hypot(nodes[other][0] - x, nodes[other][1] - y));
    if (ahead.length) this.pick(ahead[0]);
  }
}
