"""Programs in Graphviz's language."""

from __future__ import annotations

import re
import shutil
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

import paddlelike as fluid
from paddlelike.errors import ExtraMissingError, GraphError, UnsupportedError
from paddlelike.inspection.drawing import format_dot


def make_program(name: str) -> fluid.Program:
    main = fluid.Program()
    with fluid.unique_name.guard(), fluid.program_guard(main, fluid.Program()):
        loss = fluid.layers.mean(fluid.layers.fc(fluid.data(name, [None, 4]), 3))
        fluid.optimizer.SGD(0.1).minimize(loss)
    return main


def test_edges_match_the_operators() -> None:
    main = make_program("x")
    text = format_dot(main)
    wanted = sum(
        len(set(op.input_arg_names)) + len(set(op.output_arg_names)) for op in main.global_block().ops
    )
    assert text.count(" -> ") == wanted
    assert text.count("shape=box") == len(main.global_block().ops)


def test_names_are_escaped_in_dot_files() -> None:
    text = format_dot(make_program('x"]; evil [label="\x1b'))
    labels = re.findall(r'label=("(?:[^"\\]|\\.)*")', text)
    assert any("evil" in label for label in labels)
    assert not re.search(r"^\s*evil", text, re.MULTILINE)
    assert "\x1b" not in text


def test_an_unknown_block_is_refused() -> None:
    with pytest.raises(GraphError, match="block 3 does not exist"):
        format_dot(make_program("x"), 3)


needs_graphviz = pytest.mark.skipif(shutil.which("dot") is None, reason="Graphviz is not installed")


def test_a_plot_is_written_as_dot(tmp_path: Path) -> None:
    main = make_program("x")
    drawing = main.plot(tmp_path / "net.dot", only_operators=True)
    assert (tmp_path / "net.dot").read_text() == drawing.dot + "\n"
    assert drawing.dot == format_dot(main, only_operators=True)
    with pytest.raises(GraphError, match="block 5 does not exist"):
        main.plot(block=5)


@needs_graphviz
def test_notebooks_show_a_picture_of_every_operator() -> None:
    name = "x<script>&lt;i&gt;"
    main = make_program(name)
    picture = ET.fromstring(main.plot()._repr_svg_())
    assert not [one for one in picture.iter() if one.tag.endswith(("script", "}i"))]
    texts = [one.text for one in picture.iter("{http://www.w3.org/2000/svg}text")]
    assert [op.type for op in main.global_block().ops if op.type not in texts] == []
    assert any(text and "<script>" in text for text in texts)


@needs_graphviz
def test_the_file_extension_selects_the_picture_format(tmp_path: Path) -> None:
    for kind, begin in {"png": b"\x89PNG", "pdf": b"%PDF", "svg": b"<?xml"}.items():
        make_program("x").plot(tmp_path / f"net.{kind}")
        assert (tmp_path / f"net.{kind}").read_bytes().startswith(begin)


def test_without_graphviz_an_svg_is_written_and_a_png_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    main = make_program('x<script>&"\x1b')
    drawing = main.plot(tmp_path / "net.svg")
    picture = ET.parse(tmp_path / "net.svg").getroot()
    texts = [one.text for one in picture.iter("{http://www.w3.org/2000/svg}text")]
    assert [op.type for op in main.global_block().ops if op.type not in texts] == []
    assert 'x<script>&"?' in texts
    assert not [one for one in picture.iter() if one.tag.endswith("script")]
    assert drawing._repr_svg_() == (tmp_path / "net.svg").read_text()
    with pytest.raises(ExtraMissingError, match="apt-get install graphviz"):
        drawing.save(tmp_path / "net.png")
    assert not (tmp_path / "net.png").exists()
    with pytest.raises(UnsupportedError, match=r"\.dot, \.svg, \.png or \.pdf"):
        drawing.save(tmp_path / "net.gif")


def test_a_notebook_does_not_wait_for_graphviz(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "dot").write_text("#!/bin/sh\nexec /bin/sleep 60\n")
    (tmp_path / "dot").chmod(0o755)
    drawing = make_program("x").plot()
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr("paddlelike.inspection.drawing.PATIENCE", 0.1)
    assert drawing._repr_svg_() == drawing._format_svg()


def make_large_program() -> fluid.Program:
    main = fluid.Program()
    with fluid.unique_name.guard(), fluid.program_guard(main, fluid.Program()):
        x = fluid.data("x", [None, 4])
        for _ in range(40):
            x = fluid.layers.elementwise_add(x, fluid.layers.fc(x, 4, act="relu"))
        fluid.optimizer.Adam(0.1).minimize(fluid.layers.mean(x))
    return main


@needs_graphviz
def test_a_large_program_is_laid_out_before_graphviz_draws_it(tmp_path: Path) -> None:
    main = make_large_program()
    drawing = main.plot(level="variables", path=tmp_path / "net.svg")
    own = ET.parse(tmp_path / "net.svg")
    picture = ET.fromstring(drawing._render("svg"))
    space = "{http://www.w3.org/2000/svg}"
    groups = [one.get("class") for one in picture.iter(f"{space}g")]
    variables = {name for op in main.global_block().ops for name in op.input_arg_names + op.output_arg_names}
    assert groups.count("node") == len(main.global_block().ops) + len(variables)
    assert groups.count("edge") == drawing.dot.count(" -> ")
    # Graphviz kept the positions: it has shifted all of them alike, by less than the rounding of its numbers
    wanted = re.findall(r'(n\d+) \[shape=ellipse.* pos="(-?[\d.]+),(-?[\d.]+)"', drawing.dot)
    ellipses = {
        one.find(f"{space}title").text: one.find(f"{space}ellipse")
        for one in picture.iter(f"{space}g")
        if one.find(f"{space}ellipse") is not None
    }
    assert len(wanted) == len(variables)
    centers = {(one.get("cx"), str(-float(one.get("cy")))) for one in own.iter(f"{space}ellipse")}
    assert {(x, y) for _, x, y in wanted} == centers
    across = [float(ellipses[name].get("cx")) - float(x) for name, x, _ in wanted]
    down = [float(ellipses[name].get("cy")) + float(y) for name, _, y in wanted]
    assert max(across) - min(across) < 0.2
    assert max(down) - min(down) < 0.2


def test_a_large_program_is_shown_as_its_layers(tmp_path: Path) -> None:
    main = make_large_program()
    drawing = main.plot(tmp_path / "net.svg")
    assert len(drawing.graph.nodes) <= 80
    layers = main.plot(level="layers").graph.nodes
    assert sum(len(node.operators) for node in layers) == len(main.global_block().ops)
    folded = [node.label for node in main.plot(level="blocks").graph.nodes]
    assert [label.partition(" x ")[0] for label in folded if " x " in label] == ["40"]
    with pytest.raises(GraphError, match="no level 'rows', its levels are variables, operators, blocks"):
        main.plot(level="rows")
