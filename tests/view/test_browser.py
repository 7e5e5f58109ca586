"""Pages in a real browser: what a click shows, the keys, both widths, and that nothing is fetched."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import paddlelike as fluid
from paddlelike.foundation.amounts import format_size
from paddlelike.view.page import format_page
from paddlelike.view.server import (
    Follower,
    LoopbackServer,
    Predictor,
    make_live_routes,
    make_prediction_routes,
)

selenium = pytest.importorskip("selenium", reason="selenium is in the extra 'test-all'")
BROWSER, DRIVER = (shutil.which(one) for one in ("chromium", "chromedriver"))
if BROWSER is None or DRIVER is None:
    pytest.skip("there is no chromium with its chromedriver", allow_module_level=True)

from selenium.common.exceptions import StaleElementReferenceException  # noqa: E402
from selenium.webdriver import Chrome, ChromeOptions, Keys  # noqa: E402
from selenium.webdriver.chrome.service import Service  # noqa: E402
from selenium.webdriver.common.action_chains import ActionChains  # noqa: E402
from selenium.webdriver.common.by import By  # noqa: E402
from selenium.webdriver.support.ui import WebDriverWait  # noqa: E402

pytestmark = pytest.mark.slow

HOSTILE = "<img src=x onerror=hacked=1></script><script>hacked=1</script>"


@pytest.fixture(scope="module")
def driver() -> Iterator[Any]:
    options = ChromeOptions()
    options.binary_location = BROWSER
    for one in ("--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking"):
        options.add_argument(one)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    with Chrome(options=options, service=Service(DRIVER)) as found:
        yield found


class Page:
    """A page in the browser; what the browser logs and fetches is collected."""

    def __init__(self, driver: Any, url: str, width: int = 1280, *, dark: bool = False) -> None:
        self.driver = driver
        driver.get("about:blank")  # so that a page whose anchor alone differs is loaded again
        driver.get_log("performance")
        driver.get_log("browser")
        size = {"width": width, "height": 800, "deviceScaleFactor": 1, "mobile": False}
        driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        theme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [theme]})
        driver.get(url)

    def all(self, selector: str) -> list[Any]:
        return self.driver.find_elements(By.CSS_SELECTOR, selector)

    def one(self, selector: str) -> Any:
        found = WebDriverWait(self.driver, 20).until(lambda _: self.all(selector))
        return found[0]

    def wait(self, condition: Any) -> Any:
        """Wait for a condition; a page that is drawn anew meanwhile is asked again."""
        stale = [StaleElementReferenceException]
        return WebDriverWait(self.driver, 20, ignored_exceptions=stale).until(lambda _: condition())

    def press(self, *keys: str) -> None:
        ActionChains(self.driver).send_keys(*keys).perform()

    def run(self, script: str) -> Any:
        return self.driver.execute_script(f"return {script}")

    def log(self) -> list[str]:
        return [one["message"] for one in self.driver.get_log("browser")]

    def fetched(self) -> list[str]:
        messages = [json.loads(one["message"])["message"] for one in self.driver.get_log("performance")]
        sent = {
            one["params"]["requestId"]: one["params"]["request"]["url"]
            for one in messages
            if one["method"] == "Network.requestWillBeSent"
        }
        for one in messages:
            if one["method"] == "Network.loadingFailed" and one["params"].get("blockedReason") == "csp":
                sent.pop(one["params"]["requestId"], None)  # it never left
        return [url for url in sent.values() if not url.startswith("data:")]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A trained network: its program, all of its values, and values of hostile names."""
    home = tmp_path_factory.mktemp("model")
    main, startup = fluid.Program(), fluid.Program()
    with fluid.unique_name.guard(), fluid.program_guard(main, startup):
        x = fluid.layers.fc(fluid.data("x", [None, 8]), 16, act="relu")
        fluid.optimizer.Adam(0.1).minimize(fluid.layers.mean(fluid.layers.fc(x, 4)))
    exe = fluid.Executor()
    with fluid.scope_guard(fluid.Scope()):
        exe.run(startup)
        fluid.io.save_persistables(exe, str(home / "d"), main)
    (home / "main.pb").write_bytes(main.desc.serialize_to_string())
    np.savez(home / "hostile.npz", **{HOSTILE: np.array([np.nan, 1], "f4")})
    shutil.copytree(home / "d", home / "both")
    shutil.copy(home / "main.pb", home / "both" / "__model__")
    for name in ("both", "hostile.npz"):
        text = format_page(home / name, program=str(home / "main.pb"), against=str(home / "d"))
        (home / f"{name}.html").write_text(text, "utf-8")
    return home


def test_a_click_on_a_variable_shows_its_histogram(driver: Any, model: Path) -> None:
    url = (model / "both.html").as_uri()
    page = Page(driver, f"{url}#variables")
    rows = page.all("tr.row")
    names = {row.find_element(By.CSS_SELECTOR, ".name").text for row in rows}
    assert {"fc_0.w_0", "fc_1.b_0_moment2_0", "learning_rate_0"} <= names
    page.one("#filter").send_keys("fc_0.w_0 [8, 16] param")
    (row,) = page.all("tr.row")
    row.click()
    assert page.one("#panel h2").text == "fc_0.w_0"
    bars = page.all("#panel .histogram .bar title")
    counts = [int(bar.get_attribute("textContent").rpartition(": ")[2]) for bar in bars]
    assert (len(counts), sum(counts)) == (40, 8 * 16)
    assert {"mul", "adam"} <= {one.text.partition(" ")[0] for one in page.all("#panel .links .link")}
    page.press(Keys.ESCAPE)
    assert not page.one("#panel").is_displayed() or page.one("#filter").get_attribute("value") == ""
    assert page.log() == []
    assert page.fetched() == [url]


def test_a_variable_shows_its_values(driver: Any, model: Path) -> None:
    page = Page(driver, f"{(model / 'both.html').as_uri()}#variables")
    page.one("#filter").send_keys("fc_0.w_0 [8, 16] param")
    page.all("tr.row")[0].click()
    cells = [one.get_attribute("textContent") for one in page.all("#panel .heat rect title")]
    with fluid.scope_guard(fluid.Scope()):
        value = fluid.io.load_program_state(str(model / "d"))["fc_0.w_0"]
    shown = {cell.partition("] ")[0]: float(cell.partition("] ")[2]) for cell in cells}
    assert shown.keys() == {f"[{row}, {column}" for row in range(8) for column in range(16)}
    for (row, column), one in np.ndenumerate(value):
        assert shown[f"[{row}, {column}"] == pytest.approx(one, rel=1e-3)
    assert len(page.all("#panel .heat tbody tr")) == 8
    assert page.log() == []


def test_values_that_are_not_finite_look_as_in_python(driver: Any, tmp_path: Path) -> None:
    np.savez(tmp_path / "odd.npz", odd=np.array([[np.nan, np.inf, -np.inf, 0.5]], "float16"))
    (tmp_path / "page.html").write_text(format_page(tmp_path / "odd.npz"))
    page = Page(driver, f"{(tmp_path / 'page.html').as_uri()}#variables")
    page.one("tr.row").click()
    page.one("#panel .heat")
    cells = [one.get_attribute("textContent") for one in page.all("#panel .heat rect title")]
    assert cells == ["[0, 0] nan", "[0, 1] inf", "[0, 2] -inf", "[0, 3] 0.5"]


def test_a_search_works_from_any_tab(driver: Any, model: Path) -> None:
    page = Page(driver, (model / "both.html").as_uri())
    page.press("/")
    page.one("#filter").send_keys("w_0_moment1")
    found = [one.text for one in page.all("#results li")]
    assert "variable fc_0.w_0_moment1_0" in found
    assert any(one.startswith("operator adam") for one in found)
    page.one("#filter").send_keys(Keys.ARROW_DOWN, Keys.ENTER)
    assert page.one("#panel h2").text == found[0].partition(" ")[2]
    assert not page.one("#results").is_displayed()
    page.press(Keys.ESCAPE)
    page.press("?")
    assert page.one("footer dl").is_displayed()
    page.press(Keys.ESCAPE)
    assert not page.one("footer dl").is_displayed()
    assert page.log() == []


def test_everything_is_reachable_by_keyboard(driver: Any, model: Path) -> None:
    page = Page(driver, (model / "both.html").as_uri())
    page.press("2")
    assert page.one("#view-summary").is_displayed()
    page.press("1")
    assert page.one("#view-program").is_displayed()
    page.one("canvas.graph").send_keys(Keys.ARROW_DOWN, Keys.ARROW_DOWN)
    assert page.one("#panel h2").text == "fc_0"
    types = {one.text for one in page.all("#panel .operator summary b")}
    assert {"mul", "relu_grad", "adam"} <= types
    page.press("+", "0", Keys.ARROW_DOWN)
    assert page.one("#panel h2").text == "fc_1"
    page.press("/", "adam", Keys.ENTER)
    assert "fit" in page.one("#view-program .status").text
    page.press(Keys.ESCAPE, Keys.ESCAPE, Keys.ESCAPE, "4")
    assert page.run("document.activeElement.id") == "tab-sizes"
    tiles = page.all(".tile")
    second = tiles[1].get_attribute("title")
    tiles[0].send_keys(Keys.ARROW_RIGHT, Keys.ENTER)
    assert page.one("#panel h2").text == second.partition(":")[0]
    page.wait(lambda: page.run("document.activeElement.title") == second)
    tiles = page.all(".tile")
    area = [tile.size["width"] * tile.size["height"] for tile in tiles[:3]]
    assert area[0] == pytest.approx(area[1], rel=0.1)  # both have 512 bytes; the gaps are two pixels wide
    page.one("#tab-variables").click()
    page.one("tr.row").send_keys(Keys.ARROW_DOWN, Keys.ENTER)
    assert page.one("#panel h2").text == page.all("tr.row .name")[1].text
    assert page.log() == []


def test_a_click_on_a_node_opens_it(driver: Any, model: Path) -> None:
    page = Page(driver, (model / "both.html").as_uri() + "#program")
    place = "(() => { const g = program.graph, n = g.level.nodes.find((one) => one[3] === 'fc_1'); "
    x, y = page.run(place + "return [n[0] * g.view.scale + g.view.x, n[1] * g.view.scale + g.view.y]; })()")
    canvas = page.one("canvas.graph")
    middle = canvas.size["width"] / 2, canvas.size["height"] / 2
    ActionChains(driver).move_to_element_with_offset(
        canvas, round(x - middle[0]), round(y - middle[1])
    ).click().perform()
    assert page.one("#panel h2").text == "fc_1"
    page.one("#panel .operator > summary").click()
    next(one for one in page.all("#panel .operator .link") if one.text == "fc_1.w_0").click()
    assert page.one("#panel .histogram").is_displayed()


def test_a_narrow_page_shows_the_chosen_node_above_the_panel(driver: Any, model: Path) -> None:
    page = Page(driver, (model / "both.html").as_uri() + "#program", 400)
    graph = page.one("canvas.graph")
    for _ in range(4):
        graph.send_keys(Keys.ARROW_DOWN)
    page.wait(lambda: page.one("#panel h2").text == "mean_0")
    find = (
        "(() => { const g = program.graph; return g.level.nodes[g.chosen][1] * g.view.scale + g.view.y; })()"
    )
    assert 0 < page.run(find) < page.one("#panel").rect["y"] - graph.rect["y"]
    page.one("#tab-sizes").click()
    wide = page.run(
        "Math.max(...[...document.querySelectorAll('.tile')].map((one) => one.getBoundingClientRect().right))"
    )
    assert wide <= 400


@pytest.mark.parametrize("width", [400, 1280])
def test_the_graph_opens_first_and_fills_the_window(driver: Any, model: Path, width: int) -> None:
    page = Page(driver, (model / "both.html").as_uri(), width)
    head, footer = (page.one(one).size["height"] for one in ("header", "footer"))
    assert page.one("canvas.graph").size == {
        "width": width,
        "height": pytest.approx(800 - head - footer, abs=6),
    }
    assert page.run("document.documentElement.scrollHeight") <= 806
    first = page.run("program.graph.level.nodes[0]")
    assert (
        page.run("program.graph.view.scale") * first[1] + page.run("program.graph.view.y")
        > page.one("#view-program .status").rect["y"] - head
    )


@pytest.mark.parametrize(("branches", "cover"), [(1, ".below"), (3, ".minimap")], ids=["legend", "map"])
@pytest.mark.parametrize("width", [400, 1280])
def test_controls_over_the_graph_cover_no_node_when_it_opens(
    driver: Any, tmp_path: Path, width: int, branches: int, cover: str
) -> None:
    main, startup = fluid.Program(), fluid.Program()
    exe = fluid.Executor()
    with fluid.unique_name.guard(), fluid.program_guard(main, startup), fluid.scope_guard(fluid.Scope()):
        x = fluid.data("x", [None, 8])
        for _ in range(4 if branches == 1 else 12):
            layers = [fluid.layers.fc(x, 8, act="relu") for _ in range(branches)]
            x = fluid.layers.sums(layers) if branches > 1 else layers[0]
        exe.run(startup)
        fluid.io.save_inference_model(str(tmp_path / "d"), ["x"], [x], exe, main)
    (tmp_path / "page.html").write_text(format_page(tmp_path / "d"), "utf-8")
    page = Page(driver, (tmp_path / "page.html").as_uri(), width)
    if branches > 1:
        page.run("chooseBlock(0, 0, 'operators')")
    count = (
        f"(() => {{ const g = program.graph, cover = document.querySelector({cover!r});"
        "const over = cover.getBoundingClientRect(), box = g.canvas.getBoundingClientRect();"
        "const { x: left, y: top, scale } = g.view;"
        "return g.level.nodes.filter(([x, y, wide]) => {"
        "  const [nodeX, nodeY] = [box.left + left + x * scale, box.top + top + y * scale];"
        "  return nodeX + scale * wide / 2 > over.left && nodeX - scale * wide / 2 < over.right"
        "    && nodeY + 20 * scale > over.top && nodeY - 20 * scale < over.bottom; }).length; })()"
    )
    page.wait(lambda: page.run(count) == 0)
    colors = page.run(
        "[...document.querySelectorAll('.key')]"
        ".map((one) => getComputedStyle(one, '::before').backgroundColor)"
    )
    assert len(set(colors)) == len(colors) > 2, "each kind in the legend has a color of its own"
    assert "rgba(0, 0, 0, 0)" not in colors


def test_a_long_name_breaks_at_its_dots_and_underscores(driver: Any, model: Path) -> None:
    page = Page(driver, (model / "both.html").as_uri() + "#variables", 400)
    parts = page.run(
        "[...document.querySelectorAll('tr.row .name')].map((one) => [one.textContent, one.innerHTML])"
    )
    long = [(text, html) for text, html in parts if len(text) > 16]
    assert long
    for text, html in long:
        assert html.replace("<wbr>", "") == text
        assert all(part[-1] in "._/" for part in html.split("<wbr>")[:-1])
        assert "<wbr>" in html


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", [400, 1280])
def test_every_view_fits_the_window_width(driver: Any, model: Path, width: int, dark: bool) -> None:
    page = Page(driver, (model / "both.html").as_uri(), width, dark=dark)
    for tab in page.all("[role=tab]"):
        tab.click()
        assert page.run("document.documentElement.scrollWidth") <= width
        assert page.one("main section:not([hidden])").text or tab.text == "Program"
    ground = page.run("getComputedStyle(document.body).backgroundColor")
    assert (sum(map(int, ground[4:-1].split(","))) < 200) == dark
    assert page.log() == []


def test_hostile_names_are_shown_and_do_nothing(driver: Any, model: Path) -> None:
    url = (model / "hostile.npz.html").as_uri()
    page = Page(driver, url)
    for tab in page.all("[role=tab]"):
        tab.click()
    page.one("#tab-variables").click()
    assert page.one("tr.row .name").text == HOSTILE
    page.one("tr.row").click()
    assert page.one("#panel h2").text == HOSTILE
    assert page.all("img") == []
    assert page.run("typeof hacked") == "undefined"
    assert (page.log(), page.fetched()) == ([], [url])
    # even an element that got into the page would run nothing, and reach nobody
    page.run("document.body.insertAdjacentHTML('beforeend', '<img src=https://example.invalid/x>')")
    page.run("document.body.append(Object.assign(document.createElement('script'), {text: 'hacked = 1'}))")
    assert page.run("typeof hacked") == "undefined"
    assert page.fetched() == []
    assert all("Content Security Policy" in line for line in page.log())


def test_a_running_training_is_displayed_live(driver: Any, tmp_path: Path) -> None:
    log = fluid.io.TrainingLog(tmp_path / "losses.jsonl")
    main, startup = fluid.Program(), fluid.Program()
    with fluid.unique_name.guard(), fluid.program_guard(main, startup):
        fluid.layers.fc(fluid.data("x", [None, 2]), 1)
    exe = fluid.Executor()
    with LoopbackServer(make_live_routes(Follower(tmp_path))) as server, fluid.scope_guard(fluid.Scope()):
        server.start()
        page = Page(driver, server.url, 400)
        assert "no log yet" in page.wait(
            lambda: "no log" in page.one(".status").text and page.one(".status").text
        )
        log.write(0, **{"<b>loss": 2.0})
        log.write(1, **{"<b>loss": 1.5})
        page.wait(lambda: "1.5" in page.one(".cards").text)
        assert page.one(".chart h3").text.startswith("<b>loss last 1.5, from 1.5 to 2, 2 steps")
        assert len(page.one(".chart .curve").get_attribute("d").split("L")) == 2
        log.write(2, **{"<b>loss": -1.234e-5})
        page.wait(lambda: "3 steps" in page.one(".chart h3").text)
        lefts = "[...document.querySelectorAll('.chart text')].map((one) => one.getBoundingClientRect().left)"
        assert min(page.run(lefts)) >= page.one(".chart svg").rect["x"]
        exe.run(startup)
        fluid.io.save_persistables(exe, str(tmp_path / "saved"), main)
        link = page.wait(lambda: page.all("table a"))[0]
        page.driver.get(link.get_attribute("href"))
        page.one("#tab-variables").click()
        assert page.one("tr.row .name").text == "fc_0.b_0"
        assert page.run("document.documentElement.scrollWidth") <= 400
        assert page.log() == []
        assert {url.split("/")[2] for url in page.fetched()} == {f"127.0.0.1:{server.port}"}


def test_a_model_can_be_run_in_the_page(driver: Any) -> None:
    model = Path(__file__).parents[1] / "golden" / "fit_a_line" / "inference"
    with LoopbackServer(make_prediction_routes(Predictor(model))) as server:
        server.start()
        page = Page(driver, server.url, 400, dark=True)
        field = page.one("textarea")
        assert json.loads(field.get_attribute("value")) == [[0] * 13]
        page.one("button.main").click()
        page.wait(lambda: "Computed" in page.one("#outputs").text)
        b = np.frombuffer((model / "fc_0.b_0").read_bytes()[-4:], "<f4")
        assert json.loads(page.one("#outputs .values").text) == [[b[0].item()]]
        assert page.log() == []
        field.clear()
        field.send_keys("[[1, 2]]", Keys.CONTROL, Keys.ENTER)
        page.wait(lambda: "expected [-1, 13]" in page.one("#outputs").text)
        field.clear()
        page.one("button.main").click()
        page.wait(lambda: "x is not JSON" in page.one("#outputs").text)
        assert page.run("document.documentElement.scrollWidth") <= 400


def test_an_image_can_be_fed_and_classes_have_names(driver: Any, tmp_path: Path) -> None:
    main, startup = fluid.Program(), fluid.Program()
    with fluid.unique_name.guard(), fluid.program_guard(main, startup):
        image = fluid.data("image", [None, 3, 4, 6])
        out = fluid.layers.pool2d(image, global_pooling=True, pool_type="avg")
        out = fluid.layers.reshape(out, [-1, 3])
        with fluid.scope_guard(fluid.Scope()):
            fluid.io.save_inference_model(str(tmp_path / "m"), ["image"], [out], fluid.Executor(), main)
    with LoopbackServer(
        make_prediction_routes(Predictor(tmp_path / "m"), ["red", "green", "blue"])
    ) as server:
        server.start()
        page = Page(driver, server.url)
        page.run(
            "(() => { const c = document.createElement('canvas'); c.width = 6; c.height = 4;"
            "const k = c.getContext('2d'); k.fillStyle = 'rgb(255, 51, 0)'; k.fillRect(0, 0, 6, 4);"
            "c.toBlob((b) => { const t = new DataTransfer(); t.items.add(new File([b], 'a.png'));"
            "const f = document.querySelector('input[type=file]'); f.files = t.files;"
            "f.dispatchEvent(new Event('change')); }); })()"
        )
        page.wait(lambda: "a.png" in (page.one("textarea").get_attribute("placeholder") or ""))
        page.one("button.main").click()
        page.wait(lambda: "Computed" in page.one("#outputs").text)
        assert json.loads(page.one("#outputs .values").text) == [[1.0, pytest.approx(0.2), 0.0]]
        assert page.one("#outputs .best").text.startswith("red: 1")
        page.driver.get(server.url.replace("/?", "/docs?"))
        assert [one.text for one in page.all("h2 .name")] == ["GET /model", "POST /predict"]
        assert page.log() == []


def test_a_single_row_is_entered_in_a_form(driver: Any) -> None:
    model = Path(__file__).parents[1] / "golden" / "fit_a_line" / "inference"
    with LoopbackServer(make_prediction_routes(Predictor(model))) as server:
        server.start()
        page = Page(driver, server.url)
        cell = page.all(".row-form input")[1]
        cell.clear()
        cell.send_keys("2.5")
        assert json.loads(page.one("textarea").get_attribute("value")) == [[0, 2.5, *[0] * 11]]
        page.one("textarea").clear()
        page.one("textarea").send_keys(json.dumps([list(range(13))]))
        assert [one.get_attribute("value") for one in page.all(".row-form input")] == [
            str(n) for n in range(13)
        ]


def test_sizes_match_the_command_line(driver: Any, model: Path) -> None:
    page = Page(driver, (model / "both.html").as_uri())
    sizes = [0, 1, 999, 1000, 1024, 999_949, 999_950, 3 << 20, 10**9 - 1, 10**10, 5 * 10**13]
    found = [page.run(f"formatSize({size})") for size in sizes]
    assert found == [format_size(size) for size in sizes]


#: axe-core's rules for screen readers, keyboards and contrast; the variable names a newer axe.min.js.
AXE_PACKAGE = find_spec("axe_core_python")
AXE = os.environ.get("PADDLELIKE_AXE") or (
    str(Path(AXE_PACKAGE.origin).with_name("axe.min.js")) if AXE_PACKAGE and AXE_PACKAGE.origin else ""
)
ASK_AXE = (
    "const done = arguments[0]; axe.run(document, { resultTypes: ['violations'] }).then((found) => "
    "done(found.violations.map((one) => `${one.id}: ${one.nodes.length} x ${one.nodes[0].html}`)))"
)


def list_findings(page: Page) -> list[str]:
    """Return what axe finds on every tab of a page, each with the tab."""
    page.driver.execute_script(Path(AXE).read_text("utf-8"))
    found = []
    for tab in page.all("[role=tab]") or page.all("body"):
        page.driver.execute_script("arguments[0].click()", tab)
        found += [f"{tab.text[:20]}: {one}" for one in page.driver.execute_async_script(ASK_AXE)]
    return found


@pytest.mark.skipif(not AXE, reason="axe-core-python is in the extra 'test-all'")
@pytest.mark.parametrize(("width", "dark"), [(1440, False), (768, True), (400, False)])
def test_axe_reports_no_accessibility_violations(driver: Any, model: Path, width: int, dark: bool) -> None:
    page = Page(driver, (model / "both.html").as_uri(), width, dark=dark)
    assert list_findings(page) == []
    assert page.run("document.documentElement.scrollWidth <= innerWidth")
    exported = Path(__file__).parents[1] / "golden" / "fit_a_line" / "inference"
    with LoopbackServer(make_prediction_routes(Predictor(exported))) as server:
        server.start()
        page = Page(driver, server.url, width, dark=dark)
        page.one("button.main").click()
        page.wait(lambda: "Computed" in page.one("#outputs").text)
        assert list_findings(page) == []
        assert page.run("document.documentElement.scrollWidth <= innerWidth")
        page = Page(driver, server.url.replace("/?", "/docs?"), width, dark=dark)
        assert list_findings(page) == []
    with LoopbackServer(make_live_routes(Follower(model, []))) as server:
        server.start()
        assert list_findings(Page(driver, server.url, width, dark=dark)) == []


def test_a_printed_page_shows_the_whole_graph_in_colours_for_paper(driver: Any, model: Path) -> None:
    page = Page(driver, f"{(model / 'both.html').as_uri()}#program", dark=True)
    page.one(".graph-box")
    page.driver.execute_script("dispatchEvent(new Event('beforeprint'))")
    page.wait(lambda: page.run("[...document.querySelectorAll('.printed img')].every((one) => one.complete)"))
    heights = page.run("[...document.querySelectorAll('.printed img')].map((one) => one.height)")
    # The widest row fits the width of a page, and the last node is in the last picture, as light as paper.
    found = page.driver.execute_script(
        """
        const { width, height, nodes } = program.graph.level, scale = Math.min(1, 690 / (width + 40));
        const images = document.querySelectorAll(".printed img");
        const last = nodes.reduce((one, other) => (other[1] > one[1] ? other : one));
        const above = [...images].slice(0, -1).reduce((sum, one) => sum + one.height, 0);
        const canvas = document.createElement("canvas"), image = images[images.length - 1];
        [canvas.width, canvas.height] = [image.naturalWidth, image.naturalHeight];
        canvas.getContext("2d").drawImage(image, 0, 0);
        const x = (690 - width * scale) / 2 + (last[0] - last[2] / 2 + 9) * scale;
        const y = (20 + last[1]) * scale - above;
        return [(height + 40) * scale, [...canvas.getContext("2d").getImageData(2 * x, 2 * y, 1, 1).data]];
        """
    )
    assert sum(heights) == pytest.approx(found[0], abs=len(heights))  # each is rounded to a pixel
    assert min(found[1]) > 150
    page.driver.execute_script("dispatchEvent(new Event('afterprint'))")
    assert page.all(".printed") == []
    assert page.log() == []
