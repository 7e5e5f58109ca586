"""A program as a graph in Graphviz's language, and as a picture where Graphviz is installed."""

from __future__ import annotations

import itertools
import math
import os
import shutil
import subprocess
from dataclasses import dataclass
from typing import Final

from paddlelike.core.dtypes import VarType
from paddlelike.errors import ExtraMissingError, GraphError, UnsupportedError
from paddlelike.framework.graph.block import Block
from paddlelike.framework.graph.operator import Operator
from paddlelike.framework.graph.program import Program
from paddlelike.framework.graph.variable import Variable
from paddlelike.inspection.flow import COLUMNS, Flow, FlowNode, find_producer
from paddlelike.inspection.layers import get_role
from paddlelike.inspection.layout import Box, Layout, place_nodes

__all__ = ["COLORS", "Drawing", "draw", "format_dot"]

#: Fill colours by kind; dark text is readable on each.
COLORS: Final = {
    "operator": "#dbe9f6",
    "gradient": "#f6e3db",
    "update": "#e4dbf6",
    "parameter": "#cfe8cf",
    "persistable": "#e9e4b8",
    "temporary": "#f2f2f2",
    "feed": "#f9d7e3",
}
_VARIABLES: Final = ("parameter", "persistable", "temporary", "feed")
_PLACED: Final = "  // the nodes are placed: neato -n2 -Tsvg draws this at once"

PATIENCE: Final = 10.0  # seconds that a notebook waits for a picture
_LARGE: Final = 300  # edges: Graphviz takes seconds to place so many, and minutes for three times as many
_CHARACTER: Final = 5.6  # points: the mean width in Helvetica of 10 points
_INCH: Final = 72.0
_DPI: Final = 96.0
_MOST_PIXELS: Final = 16_000.0  # of a side of a PNG
_ARROW: Final = 9.0  # points: the length of its head
_PICTURES: Final = ("svg", "png", "pdf")


@dataclass(frozen=True, repr=False)
class Drawing:
    """A graph in Graphviz's language, which notebooks show as a picture where Graphviz is installed."""

    dot: str
    size: tuple[float, float] | None = None  # points, of a graph whose text says positions

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a file: ``.dot``, or a picture, ``.svg``, ``.png`` or ``.pdf``.

        Raises
        ------
        UnsupportedError
            The path ends otherwise.
        ExtraMissingError
            A picture is wanted, and Graphviz is not installed.
        """
        kind = os.path.splitext(path)[1][1:].lower()
        if kind not in ("dot", *_PICTURES):
            raise UnsupportedError(f"{os.fspath(path)}: a picture is .dot, .svg, .png or .pdf")
        data = self.dot.encode() + b"\n" if kind == "dot" else self._render(kind)
        with open(path, "wb") as file:
            file.write(data)

    def _repr_svg_(self) -> str | None:
        """Return the picture for a notebook; None, so that it shows the repr, if there is no picture.

        There is none without Graphviz, and where Graphviz needs more than ten seconds.
        """
        if shutil.which("dot") is None:
            return None
        try:
            text = self._render("svg", PATIENCE).decode()
        except subprocess.TimeoutExpired:
            return None
        return text[text.index("<svg") :]

    def _render(self, kind: str, seconds: float | None = None) -> bytes:
        dot = shutil.which("dot")
        if dot is None:
            raise ExtraMissingError(
                f"a .{kind} needs Graphviz, and there is no program dot",
                hint="apt-get install graphviz; or write a .dot",
            )
        command = [dot, f"-T{kind}"]
        if self.size is not None:  # take the positions of the text
            command += ["-Kneato", "-n2"]
            longest = max(self.size) / _INCH
            if kind == "png" and longest * _DPI > _MOST_PIXELS:
                command.append(f"-Gdpi={_MOST_PIXELS / longest:.1f}")
        graph = self.dot.encode()
        done = subprocess.run(command, input=graph, stdout=subprocess.PIPE, check=True, timeout=seconds)  # noqa: S603
        return done.stdout

    def __repr__(self) -> str:
        remark = "" if shutil.which("dot") else "; no picture without Graphviz (apt-get install graphviz)"
        return f"<Drawing: {self.dot.count(' -> ')} edges{remark}>"


def draw(
    program: Program,
    path: str | os.PathLike[str] | None = None,
    block: int = 0,
    *,
    only_operators: bool = False,
) -> Drawing:
    """Return a block of a program as a graph, and write it to ``path``; see :func:`format_dot`.

    Raises GraphError where there is no such block, otherwise as :meth:`Drawing.save`.
    """
    if not 0 <= block < len(program.blocks):
        raise GraphError(f"the program has {len(program.blocks)} blocks, there is no block {block}")
    drawing = _format(_collect(program.blocks[block], only_operators=only_operators), label=only_operators)
    if path is not None:
        drawing.save(path)
    return drawing


def format_dot(program: Program, block: int = 0, *, only_operators: bool = False) -> str:
    """Return a block of a program in DOT: operators as boxes, variables as ellipses, coloured by kind.

    With ``only_operators``, an edge leads from an operator to those that read what it wrote, and is labelled
    with the variable. A graph of more than 300 edges has positions, which ``neato -n2`` draws in seconds,
    where Graphviz's own take minutes; its edges have no labels.

    Raises
    ------
    GraphError
        There is no such block.

    >>> import paddlelike as fluid
    >>> main = fluid.Program()
    >>> with fluid.program_guard(main, fluid.Program()):
    ...     y = fluid.layers.relu(fluid.data("x", [None, 4]))
    >>> format_dot(main).count("->")
    2
    """
    return draw(program, None, block, only_operators=only_operators).dot


def _format(graph: Flow, *, label: bool) -> Drawing:
    place = _place(graph) if len(graph.edges) > _LARGE else None
    lines = [
        "digraph program {",
        '  node [fontname="Helvetica", fontsize=10, style=filled, color="#666666"]; edge [color="#666666"];',
    ]
    if place is not None:
        lines.append(_PLACED)
    for index, node in enumerate(graph.nodes):
        shape = "ellipse" if node.kind in _VARIABLES else "box"
        at = "" if place is None else _format_place(place, index, _measure(node))
        lines.append(
            f'  n{index} [shape={shape}, label={_quote(node.label)}, fillcolor="{COLORS[node.kind]}"{at}];'
        )
    for index, ((source, target), names) in enumerate(graph.edges.items()):
        facts = f"label={_quote(', '.join(names))}, fontsize=8" if label else ""
        if place is not None:
            facts = f'pos="{_format_path(place, index, source)}"'
        lines.append(f"  n{source} -> n{target} [{facts}];")
    return Drawing("\n".join([*lines, "}"]), None if place is None else (place.width, place.height))


def _collect(block: Block, *, only_operators: bool) -> Flow:
    """Return the operators of a block, and its variables, in the order of the program."""
    nodes: list[FlowNode] = []
    edges: dict[tuple[int, int], dict[str, None]] = {}
    variables: dict[str, int] = {}  # without their nodes: the operators that wrote them last
    writers: dict[str, int] = {}
    wanted = {}

    def add_variable(name: str, role: str) -> int:
        if name not in variables:
            variable = block._find_var_recursive(name)
            facts = (
                (name, "temporary") if variable is None else (_label(variable), _kind_of_variable(variable))
            )
            nodes.append(FlowNode(facts[0], "", facts[1], (), role))
            variables[name] = len(nodes) - 1
        return variables[name]

    for op in block.ops:
        role = get_role(op)
        read, written = dict.fromkeys(op.input_arg_names), dict.fromkeys(op.output_arg_names)
        if not only_operators:
            for name in read:
                add_variable(name, role)
        here = len(nodes)
        nodes.append(FlowNode(op.type, "", _kind_of_op(op), (), role))
        producer = find_producer(op, writers) if role == "backward" else None
        if producer is not None:
            wanted[here] = producer
        for name in read:
            if name in variables:
                edges.setdefault((variables[name], here), {})[name] = None
        for name in written:
            writers[name] = here
            if only_operators:
                variables[name] = here
            else:
                edges.setdefault((here, add_variable(name, role)), {})[name] = None
    return Flow(tuple(nodes), {edge: tuple(names) for edge, names in edges.items()}, wanted)


def _place(graph: Flow) -> Layout:
    boxes = [Box(*_measure(node), COLUMNS[node.role]) for node in graph.nodes]
    return place_nodes(boxes, list(graph.edges), graph.ranks)


def _measure(node: FlowNode) -> tuple[float, float]:
    """Return the width and the height of a node in points, as Graphviz makes them for Helvetica."""
    lines = node.label.split("\n")
    wide = 1.42 if node.kind in _VARIABLES else 1.0  # an ellipse around its text
    return wide * (16 + _CHARACTER * max(map(len, lines))), wide * (10 + 12 * len(lines))


def _format_place(place: Layout, index: int, size: tuple[float, float]) -> str:
    x, y = place.centers[index]
    width, height = (side / _INCH for side in size)
    return f', pos="{x:.1f},{-y:.1f}", width={width:.2f}, height={height:.2f}, fixedsize=true'


def _format_path(place: Layout, index: int, source: int) -> str:
    """Return an edge as cubic curves, of which Graphviz wants 3 n + 1 points, after the tip of its arrow."""
    points = [(x, -y) for x, y in place.paths[index]]
    (x, y), (tip_x, tip_y) = points[0], points[-1]
    sideways = y == -place.centers[source][1]
    back = math.copysign(_ARROW, tip_x - x if sideways else tip_y - points[-2][1])
    points[-1] = (tip_x - back, tip_y) if sideways else (tip_x, tip_y - back)
    text = f"e,{tip_x:.1f},{tip_y:.1f} {x:.1f},{y:.1f}"
    for (x, y), (to_x, to_y) in itertools.pairwise(points):
        bend = (x + to_x) / 2, (y + to_y) / 2
        first, second = ((bend[0], y), (bend[0], to_y)) if sideways else ((x, bend[1]), (to_x, bend[1]))
        text += "".join(f" {px:.1f},{py:.1f}" for px, py in (first, second, (to_x, to_y)))
    return text


def _kind_of_op(op: Operator) -> str:
    return {"forward": "operator", "backward": "gradient", "update": "update"}[get_role(op)]


def _kind_of_variable(variable: Variable) -> str:
    if variable.type in (VarType.FEED_MINIBATCH, VarType.FETCH_LIST) or getattr(variable, "is_data", False):
        return "feed"
    if variable.persistable:
        return "parameter" if getattr(variable, "trainable", False) else "persistable"
    return "temporary"


def _label(variable: Variable) -> str:
    if variable.type not in (VarType.LOD_TENSOR, VarType.SELECTED_ROWS):
        return variable.name
    return f"{variable.name}\n{variable.dtype.name} {list(variable.shape)}"


def _quote(text: str) -> str:
    """Return text as a string of DOT, whatever it holds."""
    clean = "".join(one if one.isprintable() or one == "\n" else "?" for one in text)
    return '"' + clean.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'
