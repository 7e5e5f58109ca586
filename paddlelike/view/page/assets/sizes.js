// Sizes as a treemap: the area of a tile is the size of a variable.

const mostTiles = 300;

function showSizes(section) {
  const status = make("p", { class: "status", role: "status" });
  const map = make("div", { class: "treemap", role: "group", "aria-label": "Sizes of variables" });
  section.append(status, map);
  let tiles = [];
  map.addEventListener("keydown", (event) => {
    const place = tiles.indexOf(event.target);
    const next = { ArrowRight: place + 1, ArrowDown: place + 1, ArrowLeft: place - 1, ArrowUp: place - 1, Home: 0, End: tiles.length - 1 }[event.key];
    if (place < 0 || next === undefined || !tiles[next]) return;
    tiles[place].tabIndex = -1;
    tiles[next].tabIndex = 0;
    tiles[next].focus();
    event.preventDefault();
  });

  function list() {
    const match = makeMatcher(shell.filter.value);
    const found = data.variables.filter((one) => one.nbytes > 0 && match(one.name, one.role, one.dtype, one.flags.join(" ")));
    found.sort((one, other) => other.nbytes - one.nbytes);
    const total = found.reduce((sum, one) => sum + one.nbytes, 0);
    const items = found.slice(0, mostTiles);
    const rest = found.slice(mostTiles);
    if (rest.length) items.push({ name: `${rest.length} others`, role: "temporary", nbytes: rest.reduce((sum, one) => sum + one.nbytes, 0), others: true });
    items.sort((one, other) => other.nbytes - one.nbytes);
    status.textContent = found.length ? `${formatCount(found.length, "variable")}, ${formatSize(total)}; the area of a tile is its size` : "No variable has a size.";
    const width = map.clientWidth, height = map.clientHeight;
    tiles = placeTiles(items.map((one) => one.nbytes), width, height).map((tile, index) => makeTile(items[index], tile, total, index === 0));
    const focused = map.contains(document.activeElement) ? document.activeElement.title : null;
    map.replaceChildren(...tiles);
    const again = focused && tiles.find((tile) => tile.title === focused);
    if (again) { // the panel has made the map narrower: the keyboard stays where it was
      tiles[0].tabIndex = -1;
      again.tabIndex = 0;
      again.focus();
    }
  }
  new ResizeObserver(list).observe(map);
  list();
  return list;
}

function makeTile(one, [x, y, width, height], total, first) {
  const share = `${((100 * one.nbytes) / total).toFixed(1)} %`;
  const tile = make("button", {
    type: "button", class: `tile ${roleClass(one.role)}${width < 16 || height < 10 ? " tiny" : ""}`, tabindex: first ? "0" : "-1", title: `${one.name}: ${formatSize(one.nbytes)}, ${share}`,
    "aria-label": `${one.name} ${formatSize(one.nbytes)} · ${share}`, click: () => !one.others && openVariable(one.name),
  }, width > 46 && height > 18 ? make("span", { class: "name" }, one.name, " ") : null, width > 60 && height > 36 ? make("span", null, `${formatSize(one.nbytes)} · ${share}`) : null);
  Object.assign(tile.style, { left: `${x}px`, top: `${y}px`, width: `${Math.max(width - 2, 1)}px`, height: `${Math.max(height - 2, 1)}px` });
  return tile;
}

/** Return [x, y, width, height] for sizes that fall: the squarified treemap of Bruls, Huizing and van Wijk (2000). */
function placeTiles(sizes, width, height) {
  const total = sizes.reduce((sum, one) => sum + one, 0);
  if (!total || !width || !height) return [];
  const areas = sizes.map((one) => (one / total) * width * height);
  const tiles = [];
  let left = 0, top = 0, right = width, bottom = height, begin = 0;
  const worst = (sum, small, large, side) => Math.max((side * side * large) / (sum * sum), (sum * sum) / (side * side * small));
  while (begin < areas.length) {
    const side = Math.min(right - left, bottom - top);
    let end = begin + 1, sum = areas[begin];
    while (end < areas.length && worst(sum + areas[end], areas[end], areas[begin], side) <= worst(sum, areas[end - 1], areas[begin], side)) {
      sum += areas[end];
      end += 1;
    }
    const thick = side > 0 ? sum / side : 0;
    const across = right - left >= bottom - top; // a column at the left, or a row at the top
    let at = across ? top : left;
    for (let index = begin; index < end; index += 1) {
      const long = thick > 0 ? areas[index] / thick : 0;
      tiles.push(across ? [left, at, thick, long] : [at, top, long, thick]);
      at += long;
    }
    if (across) left += thick; else top += thick;
    begin = end;
  }
  return tiles;
}
