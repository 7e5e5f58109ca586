"""Graphs of operators and variables as text: in Graphviz's language, and as SVG."""

from __future__ import annotations

import html
import itertools
import math
from collections.abc import Iterator, Sequence
from typing import Final

from paddlelike.inspection.flow import COLUMNS, Flow, FlowNode
from paddlelike.inspection.layout import Box, Layout, Point, place_nodes

#: Fill colours by kind; dark text is readable on each.
_COLORS: Final = {
    "operator": "#dbe9f6",
    "layer": "#dbe9f6",
    "input": "#f9d7e3",
    "output": "#f9d7e3",
    "gradient": "#f6e3db",
    "update": "#e4dbf6",
    "parameter": "#cfe8cf",
    "persistable": "#e9e4b8",
    "temporary": "#f2f2f2",
    "feed": "#f9d7e3",
}
_VARIABLES: Final = ("parameter", "persistable", "temporary", "feed")
_PLACED: Final = "  // the nodes are placed: neato -n2 -Tsvg draws this at once"
POINTS_PER_INCH: Final = 72.0
_CHARACTER: Final = 5.6  # points: the mean width in Helvetica of 10 points
_ARROW: Final = 9.0  # points: the length of its head
_MARGIN: Final = 8.0
_STYLE: Final = (
    # of this element alone: a notebook has others
    ".program text{font:10px Helvetica,Arial,sans-serif;text-anchor:middle}"
    ".program rect,.program ellipse{stroke:#666}.program path{fill:none;stroke:#666}"
    ".program marker path{fill:#666}"
)


def place_graph(graph: Flow) -> Layout:
    """Return positions for nodes that are as large as their texts need, in points."""
    boxes = [Box(*_measure(node), COLUMNS[node.role]) for node in graph.nodes]
    return place_nodes(boxes, list(graph.edges), graph.ranks)


def format_graph(graph: Flow, place: Layout | None, *, label_edges: bool = False) -> str:
    """Return a graph in DOT. Without ``place``, Graphviz places the nodes, and edges may have labels."""
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
            f'  n{index} [shape={shape}, label={_quote(node.label)}, fillcolor="{_COLORS[node.kind]}"{at}];'
        )
    for index, ((source, target), names) in enumerate(graph.edges.items()):
        facts = f"label={_quote(', '.join(names))}, fontsize=8" if label_edges else ""
        if place is not None:
            facts = f'pos="{_format_path(place.paths[index])}"'
        lines.append(f"  n{source} -> n{target} [{facts}];")
    return "\n".join([*lines, "}"])


def format_svg(graph: Flow, place: Layout) -> str:
    """Return a graph as an SVG element.

    >>> graph = Flow((FlowNode("a<b", "", "operator"), FlowNode("c", "", "temporary")), {(0, 1): ("v",)})
    >>> text = format_svg(graph, place_graph(graph))
    >>> "a&lt;b" in text, text.count("<ellipse")
    (True, 1)
    """
    width, height = place.width + 2 * _MARGIN, place.height + 2 * _MARGIN
    head = (
        '<svg class="program" xmlns="http://www.w3.org/2000/svg" '
        f'width="{width:.0f}" height="{height:.0f}" '
        f'viewBox="{-_MARGIN:g} {-_MARGIN:g} {width:.1f} {height:.1f}"><style>{_STYLE}</style>'
        '<marker id="tip" viewBox="0 0 10 8" refX="10" refY="4" markerWidth="10" markerHeight="8" '
        'markerUnits="userSpaceOnUse" orient="auto"><path d="M0 0L10 4L0 8z"/></marker>'
        f'<rect x="{-_MARGIN:g}" y="{-_MARGIN:g}" width="100%" height="100%" style="fill:#fff;stroke:none"/>'
    )
    parts = [head]
    for path in place.paths:
        curves = " ".join(f"{x:.1f} {y:.1f}" for x, y in _bend(path))
        parts.append(f'<path d="M{path[0][0]:.1f} {path[0][1]:.1f}C{curves}" marker-end="url(#tip)"/>')
    for node, (x, y) in zip(graph.nodes, place.centers, strict=True):
        wide, high = _measure(node)
        fill, lines = _COLORS[node.kind], _clean(node.label).split("\n")
        if node.kind in _VARIABLES:
            parts.append(
                f'<ellipse cx="{x:.1f}" cy="{y:.1f}" rx="{wide / 2:.1f}" ry="{high / 2:.1f}" fill="{fill}"/>'
            )
        else:
            at = f'x="{x - wide / 2:.1f}" y="{y - high / 2:.1f}"'
            parts.append(f'<rect {at} width="{wide:.1f}" height="{high:.1f}" fill="{fill}"/>')
        top = y + 3.5 - 6 * (len(lines) - 1)
        parts += [
            f'<text x="{x:.1f}" y="{top + 12 * number:.1f}">{html.escape(line)}</text>'
            for number, line in enumerate(lines)
        ]
    return "\n".join([*parts, "</svg>\n"])


def _measure(node: FlowNode) -> tuple[float, float]:
    """Return the width and height of a node in points, as Graphviz computes them for Helvetica."""
    lines = node.label.split("\n")
    wide = 1.42 if node.kind in _VARIABLES else 1.0  # an ellipse around its text
    return wide * (16 + _CHARACTER * max(map(len, lines))), wide * (10 + 12 * len(lines))


def _format_place(place: Layout, index: int, size: tuple[float, float]) -> str:
    x, y = place.centers[index]
    width, height = (side / POINTS_PER_INCH for side in size)
    return f', pos="{x:.1f},{-y:.1f}", width={width:.2f}, height={height:.2f}, fixedsize=true'


def _format_path(path: tuple[Point, ...]) -> str:
    """Return an edge as cubic curves in Graphviz's form: the tip of its arrow, then 3 n + 1 points."""
    points = [(x, -y) for x, y in path]
    (x, y), (tip_x, tip_y) = points[0], points[-1]
    points[-1] = tip_x, tip_y - math.copysign(_ARROW, tip_y - points[-2][1])
    curves = "".join(f" {x:.1f},{y:.1f}" for x, y in _bend(points))
    return f"e,{tip_x:.1f},{tip_y:.1f} {x:.1f},{y:.1f}{curves}"


def _bend(points: Sequence[Point]) -> Iterator[Point]:
    """Yield cubic curves through some points, three points for each curve, without the first point."""
    for (x, y), (to_x, to_y) in itertools.pairwise(points):
        bend = (y + to_y) / 2
        yield from ((x, bend), (to_x, bend), (to_x, to_y))


def _quote(text: str) -> str:
    """Return a text as a quoted string of DOT."""
    return '"' + _clean(text).replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'


def _clean(text: str) -> str:
    return "".join(one if one.isprintable() or one == "\n" else "?" for one in text)
