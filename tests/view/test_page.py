"""The page of a path: what it holds, and that nothing in a file can leave its place."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import shutil
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import paddlelike as fluid
from paddlelike.cli.app import app
from paddlelike.inspection.statistics import count_bins, summarize
from paddlelike.view.page import collect_contents, format_page
from paddlelike.view.page.document import encode_json
from paddlelike.view.page.graphs import collect_program

FIT = Path(__file__).parents[1] / "golden" / "fit_a_line"


class Reader(HTMLParser):
    """The elements of a page, and the text of its scripts and styles."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.texts: dict[str, str] = {}
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, text: str) -> None:
        tag, attrs = self.tags[-1] if self.tags else ("", {})
        self.texts.setdefault(attrs.get("type") or tag, text)


def read_page(text: str) -> tuple[Reader, Any]:
    reader = Reader(text)
    return reader, json.loads(reader.texts["application/json"])


def test_a_page_refers_to_nothing_outside_of_it() -> None:
    reader, _ = read_page(format_page(FIT / "inference"))
    for tag, attrs in reader.tags:
        assert "src" not in attrs
        assert attrs.get("href", "data:,") == "data:,", tag
    assert not re.search(
        r"https?://(?!www\.w3\.org/2000/svg)", reader.texts["script"] + reader.texts["style"]
    )


def test_the_security_policy_allows_only_the_script_and_style_of_the_page() -> None:
    reader, _ = read_page(format_page(FIT / "inference"))
    (policy,) = [attrs["content"] for tag, attrs in reader.tags if "http-equiv" in attrs]
    rules = dict(one.strip().split(" ", 1) for one in (policy or "").split(";"))
    for kind in ("script", "style"):
        digest = hashlib.sha256(reader.texts[kind].encode()).digest()
        assert rules[f"{kind}-src"] == f"'sha256-{base64.b64encode(digest).decode()}'"
    assert rules["default-src"] == rules["connect-src"] == rules["form-action"] == "'none'"


def test_names_from_files_are_escaped_in_the_page(tmp_path: Path) -> None:
    names = [
        "</script><script>alert(1)</script>",
        "<!--<script>",
        "a\u2028b",
        '"><img src=x onerror=alert(1)>',
        "]]>&lt;",
    ]
    np.savez(tmp_path / "<b>&.npz", **{name: np.zeros(1, "f4") for name in names})
    text = format_page(tmp_path / "<b>&.npz")
    reader, data = read_page(text)
    assert [tag for tag, _ in reader.tags].count("script") == 2
    # a browser ends a script also at "</script " and counts "<!--<script": no such sign is left
    assert not set("<>&") & set(reader.texts["application/json"])
    assert not {"img", "b"} & {tag for tag, _ in reader.tags}
    assert {one["name"] for one in data["variables"]} == set(names)


def test_the_json_of_a_page_contains_only_valid_numbers() -> None:
    text = encode_json({"a": [float("nan"), float("-inf"), 1.5], 3: "\ud800"})
    assert json.loads(text, parse_constant=pytest.fail) == {"a": ["nan", "-inf", 1.5], "3": "\ud800"}


def test_histograms_match_numpy() -> None:
    values = np.random.default_rng(0).normal(size=300_000).astype("f4")  # more than one piece
    values[:7] = np.nan
    found = count_bins(values, summarize(values))
    assert found is not None
    finite = values[np.isfinite(values)].astype("f8")
    assert list(found.counts) == np.histogram(finite, 40)[0].tolist()
    assert (found.low, found.high) == (finite.min(), finite.max())


def test_histograms_of_few_or_no_numbers_are_valid() -> None:
    assert count_bins(np.full(3, np.nan), summarize(np.full(3, np.nan))) is None
    same = np.full(5, 2.0)
    assert count_bins(same, summarize(same)) == (2.0, 2.0, (5,))
    flags = np.array([True, False, True])
    assert count_bins(flags, summarize(flags)) == (-0.5, 1.5, (1, 2))
    widest = np.float64([-1.7e308, 1.7e308])
    assert count_bins(widest, summarize(widest)) is None


def test_a_page_contains_the_operators_and_their_positions() -> None:
    _, data = read_page(format_page(FIT / "inference"))
    (program,) = data["programs"]
    (block,) = program["blocks"]
    assert [one["type"] for one in block["operators"]] == ["feed", "mul", "elementwise_add", "scale", "fetch"]
    for level in block["levels"].values():
        assert sorted(index for node in level["nodes"] for index in node[6]) == list(range(5))
        for source, target, names, points in level["edges"]:
            assert names
            assert (points is None) == (source + 1 == target)  # the edges of a chain are straight
            for node, x, y in ((source, *points[:2]), (target, *points[-2:])) if points else ():
                here = level["nodes"][node]
                assert abs(x - here[0]) <= here[2] / 2 + 1  # both are rounded to pixels
                assert abs(y - here[1]) <= level["row"] / 2 + 1


def test_a_program_without_files_lists_the_variables_it_needs() -> None:
    contents = collect_contents(FIT / "programs" / "main_train.pb")
    found = {one["name"]: (one["shape"], one["flags"]) for one in contents["variables"]}
    assert found["fc_0.w_0"] == ([13, 1], ["in no file"])


def test_the_plan_and_the_difference_match_the_library(tmp_path: Path) -> None:
    shutil.copytree(FIT / "persistables", tmp_path / "d")
    (tmp_path / "d" / "fc_0.w_0").rename(tmp_path / "d" / "fc_1.w_0")
    contents = collect_contents(
        tmp_path / "d", program=str(FIT / "programs" / "main_train.pb"), against=str(FIT / "persistables")
    )
    assert contents["plan"]["proposals"] == [["fc_1.w_0", "fc_0.w_0"]]
    assert [row["variable"] for row in contents["plan"]["rows"] if row["problem"]] == ["fc_0.w_0"]
    assert contents["difference"]["renamed"] == (("fc_0.w_0", "fc_1.w_0"),)


def test_damaged_files_are_shown_on_the_page(tmp_path: Path) -> None:
    shutil.copytree(FIT / "persistables", tmp_path / "d")
    (tmp_path / "d" / "fc_0.w_0").write_bytes(b"\0" * 9)
    contents = collect_contents(tmp_path / "d", against=str(FIT / "persistables"))
    assert any(one["level"] != "note" and "fc_0.w_0" in one["what"] for one in contents["findings"])
    assert "error" in contents["difference"] or "fc_0.w_0" in contents["difference"]["removed"]


def test_the_block_of_a_loop_is_shown_on_the_page(tmp_path: Path) -> None:
    main = fluid.Program()
    with fluid.unique_name.guard(), fluid.program_guard(main, fluid.Program()):
        i = fluid.layers.fill_constant([1], "int64", 0)
        n = fluid.layers.fill_constant([1], "int64", 3)
        fluid.layers.while_loop(lambda i: fluid.layers.less_than(i, n), lambda i: [i + 1], [i])
    (tmp_path / "main.pb").write_bytes(main.desc.serialize_to_string())
    blocks = collect_contents(tmp_path / "main.pb")["programs"][0]["blocks"]
    assert [block["parent"] for block in blocks] == [-1, 0]
    assert [op["blocks"] for op in blocks[0]["operators"] if op["type"] == "while"] == [[1]]


def run(*arguments: object) -> Any:
    return CliRunner().invoke(app, ["view", *map(str, arguments)])


def test_the_command_writes_a_page_and_replaces_only_pages(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(FIT / "inference").stdout == "inference.html\n"
    assert run(FIT / "inference").exit_code == 0
    (tmp_path / "mine.html").write_text("<p>mine")
    refused = run(FIT / "inference", "-o", "mine.html")
    assert (refused.exit_code, (tmp_path / "mine.html").read_text()) == (2, "<p>mine")
    assert "--force" in refused.stderr
    assert run(FIT / "inference", "-o", "mine.html", "--force").exit_code == 0
    assert (tmp_path / "mine.html").read_text() == (tmp_path / "inference.html").read_text()


def test_a_page_that_cannot_be_written_is_reported_in_one_line(tmp_path: Path) -> None:
    target = tmp_path / "nowhere" / "page.html"
    result = run(FIT / "inference", "-o", target)
    assert (result.exit_code, result.stderr) == (2, f"paddlelike: {target}: No such file or directory\n")


def test_the_command_prints_the_contents_as_json() -> None:
    result = run(FIT / "persistables", "--headers", "--json")
    assert {one["name"] for one in json.loads(result.stdout)["variables"]} >= {"fc_0.w_0", "fc_0.b_0"}
    assert run(FIT / "nothing").exit_code == 2


def find_luminance(color: str) -> float:
    parts = [int(color[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    red, green, blue = [
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts
    ]
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def test_texts_have_enough_contrast_in_both_themes() -> None:
    """The contrast is 4.5 or more, as the Web Content Accessibility Guidelines 2.2 have it (1.4.3)."""
    style = read_page(format_page(FIT / "inference"))[0].texts["style"]
    light, dark = (
        dict(re.findall(r"--([\w-]+): (#\w{6})", block))
        for block in re.findall(r":root \{(.*?)\}", style, re.DOTALL)[:2]
    )
    for theme in (light, {**light, **dark}):
        pairs = [
            (text, ground)
            for text in ("text", "muted", "accent", "bad", "good")
            for ground in ("ground", "raised")
        ]
        pairs += [
            ("bad", "bad-ground"),
            ("warn", "warn-ground"),
            ("muted", "temporary"),
            ("raised", "accent"),
        ]
        nodes = [name for name in theme if name.startswith("node-") and name != "node-edge"]
        pairs += [(text, name) for text in ("text", "muted") for name in nodes]
        pairs += [("text", name) for name in ("parameter", "optimizer-state", "learning-rate", "counter")]
        assert len(nodes) == 6
        for text, ground in pairs:
            low, high = sorted(find_luminance(theme[name]) for name in (text, ground))
            assert (high + 0.05) / (low + 0.05) >= 4.5, (text, ground)


def test_a_page_of_two_paths_shows_their_differences(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", w=np.zeros(3, "f4"))
    np.savez(tmp_path / "b.npz", w=np.ones(3, "f4"), v=np.ones(1, "f4"))
    result = CliRunner().invoke(app, ["view", str(tmp_path / "a.npz"), str(tmp_path / "b.npz"), "--json"])
    found = json.loads(result.stdout)
    assert (found["opens"], found["path"]) == ("difference", str(tmp_path / "b.npz"))
    assert (found["difference"]["added"], found["difference"]["changed"][0]["elements"]) == (["v"], 3)


def test_equal_blocks_are_drawn_as_one_node() -> None:
    main = fluid.Program()
    with fluid.program_guard(main, fluid.Program()), fluid.unique_name.guard():
        x = fluid.layers.conv2d(fluid.data("x", [None, 3, 16, 16]), 4, 5, stride=2, padding=2)
        for _ in range(3):
            y = fluid.layers.conv2d(x, 4, 3, padding=1, act="relu")
            x = fluid.layers.elementwise_add(x, fluid.layers.conv2d(y, 4, 1, groups=2))
    (block,) = collect_program("p", main)["blocks"]
    details = [node[4] for node in block["levels"]["operators"]["nodes"]]
    assert [one.rpartition(" ")[0] for one in details if "x" in one] == [
        "5x5 s2 p2",
        *["3x3 p1", "1x1 g2"] * 3,
    ]
    folded = [(node[3], len(node[6])) for node in block["levels"]["blocks"]["nodes"]]
    assert folded[-1][0].startswith("3 x conv2d_1 … ")
    assert sum(count for _, count in folded) == len(block["operators"])


def test_a_chain_of_saves_is_shown_as_a_history(tmp_path: Path) -> None:
    main, startup = fluid.Program(), fluid.Program()
    with fluid.program_guard(main, startup), fluid.unique_name.guard():
        fluid.layers.fc(fluid.data("x", [None, 4]), 3)
    exe = fluid.Executor()
    checkpoints = fluid.io.Checkpoints(tmp_path, keep_last=None)
    with fluid.scope_guard(fluid.Scope()):
        exe.run(startup)
        for step in (1, 2, 3):
            checkpoints.save(exe, main, step, metric=step / 2)
            if step == 2:
                bias = fluid.global_scope().find_var("fc_0.b_0").get_tensor()
                bias.set(np.ones(3, "f4"), fluid.CPUPlace())
    found = collect_contents(tmp_path)["history"]
    assert [(one["step"], one["metric"], one["files"], one["changed"]) for one in found] == [
        (1, 0.5, 2, 2),
        (2, 1.0, 2, 0),
        (3, 1.5, 2, 1),
    ]
    assert collect_contents(FIT / "persistables")["history"] == []
