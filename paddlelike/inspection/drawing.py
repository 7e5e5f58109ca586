"""A program as a graph in Graphviz's language, and as a picture."""

from __future__ import annotations

import os
import shutil
import subprocess
from typing import Final

from paddlelike.core import VarType
from paddlelike.errors import ExtraMissingError, GraphError, UnsupportedError
from paddlelike.framework import Block, Operator, Program, Variable
from paddlelike.inspection.flow import Flow, FlowNode, find_producer, list_levels
from paddlelike.inspection.layers import get_role
from paddlelike.inspection.layout import Layout
from paddlelike.inspection.pictures import POINTS_PER_INCH, format_graph, format_svg, place_graph
from paddlelike.lazy import dataclass

_MANY: Final = 150  # operators of a block whose picture shows layers by default,
_MOST_NODES: Final = 80  # of at most so many nodes where there is such a level
_LONGEST: Final = 44  # characters of a line in a node
PATIENCE: Final = 10.0  # seconds that a notebook waits for a picture
_LARGE: Final = 300  # edges: Graphviz takes seconds to place so many, and minutes for three times as many
_DPI: Final = 96.0
_MOST_PIXELS: Final = 16_000.0  # of a side of a PNG
_PICTURES: Final = ("svg", "png", "pdf")


@dataclass(frozen=True, repr=False)
class Drawing:
    """A graph in Graphviz's language, which notebooks show as a picture.

    Attributes
    ----------
    dot
        The text.
    place
        The positions of the nodes. None leaves the places to Graphviz, which finds better ones for small
        graphs.
    """

    dot: str
    graph: Flow
    place: Layout | None = None

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a file: ``.dot``, or a picture, ``.svg``, ``.png`` or ``.pdf``.

        Raises
        ------
        UnsupportedError
            The path ends otherwise.
        ExtraMissingError
            A ``.png`` or ``.pdf`` is wanted, and Graphviz is not installed.
        """
        kind = os.path.splitext(path)[1][1:].lower()
        if kind not in ("dot", *_PICTURES):
            raise UnsupportedError(f"{os.fspath(path)}: a picture is .dot, .svg, .png or .pdf")
        if kind == "dot":
            data = self.dot.encode() + b"\n"
        elif kind == "svg" and (self.place is not None or shutil.which("dot") is None):
            data = self._format_svg().encode()
        else:
            data = self._render(kind)
        with open(path, "wb") as file:
            file.write(data)

    def _repr_svg_(self) -> str:
        """Return the picture for a notebook, which waits ten seconds for Graphviz."""
        if self.place is not None or shutil.which("dot") is None:
            return self._format_svg()
        try:
            text = self._render("svg", PATIENCE).decode()
        except subprocess.TimeoutExpired:
            return self._format_svg()
        return text[text.index("<svg") :]

    def _format_svg(self) -> str:
        return format_svg(self.graph, place_graph(self.graph) if self.place is None else self.place)

    def _render(self, kind: str, seconds: float | None = None) -> bytes:
        dot = shutil.which("dot")
        if dot is None:
            raise ExtraMissingError(
                f"a .{kind} needs Graphviz, and there is no program dot",
                hint="apt-get install graphviz; or write a .svg",
            )
        command = [dot, f"-T{kind}"]
        if self.place is not None:  # take the positions of the text
            command += ["-Kneato", "-n2"]
            longest = max(self.place.width, self.place.height) / POINTS_PER_INCH
            if kind == "png" and longest * _DPI > _MOST_PIXELS:
                command.append(f"-Gdpi={_MOST_PIXELS / longest:.1f}")
        graph = self.dot.encode()
        done = subprocess.run(command, input=graph, stdout=subprocess.PIPE, check=True, timeout=seconds)  # noqa: S603
        return done.stdout

    def __repr__(self) -> str:
        return f"<Drawing: {len(self.graph.nodes)} nodes, {len(self.graph.edges)} edges>"


def draw(
    program: Program,
    path: str | os.PathLike[str] | None = None,
    block: int = 0,
    *,
    only_operators: bool = False,
    level: str | None = None,
) -> Drawing:
    """Return a block of a program as a graph, and write it to ``path``; see :func:`format_dot`.

    ``level`` is "variables" (and operators), "operators", or one of
    :func:`~paddlelike.inspection.flow.list_levels`. The default is variables, or with more than 150 operators
    layers or a coarser level. Raises GraphError for a missing block or level, and the errors of
    :meth:`Drawing.save`.
    """
    if not 0 <= block < len(program.blocks):
        raise GraphError(f"block {block} does not exist: the program has {len(program.blocks)} blocks")
    chosen = program.blocks[block]
    if level is None and not only_operators and len(chosen.ops) > _MANY:
        level = _choose_level(list_levels(chosen))
    only_operators = only_operators or level == "operators"
    if level in (None, "variables", "operators"):
        graph = _collect(chosen, only_operators=only_operators)
    else:
        graph = _show_level(chosen, str(level))
    place = place_graph(graph) if len(graph.edges) > _LARGE else None
    drawing = Drawing(format_graph(graph, place, label_edges=only_operators), graph, place)
    if path is not None:
        drawing.save(path)
    return drawing


def format_dot(program: Program, block: int = 0, *, only_operators: bool = False) -> str:
    """Return a block of a program in DOT: operators as boxes, variables as ellipses, coloured by kind.

    With ``only_operators``, an edge leads from an operator to the operators that read its results, and is
    labelled with the variable. A graph of more than 300 edges has positions, which ``neato -n2`` draws in
    seconds (Graphviz's own layout takes minutes), and its edges are not labelled.

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
    return draw(program, None, block, only_operators=only_operators, level="variables").dot


def _choose_level(levels: dict[str, Flow]) -> str:
    """Return the finest level of layers that has few nodes, else the coarsest."""
    named: list[str] = [name for name in ("layers", "chains", "blocks") if name in levels]
    small = [name for name in named if len(levels[name].nodes) <= _MOST_NODES]
    return (small or named[-1:] or ["variables"])[0]


def _show_level(block: Block, level: str) -> Flow:
    """Return a block at a level; the label of each node includes its second line."""
    levels = list_levels(block)
    if level not in levels:
        known = ", ".join(["variables", "operators", *(name for name in levels if name != "operators")])
        raise GraphError(f"block {block.idx} has no level {level!r}, its levels are {known}")
    flow = levels[level]
    nodes = [
        node._replace(label="\n".join(_cut(one) for one in (node.label, node.detail) if one))
        for node in flow.nodes
    ]
    return Flow(tuple(nodes), flow.edges, flow.wanted)


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"


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
