"""A program as a graph in Graphviz's language, and as a picture where Graphviz is installed."""

from __future__ import annotations

import os
import shutil
import subprocess
from dataclasses import dataclass
from typing import Final

from paddlelike.core.dtypes import VarType
from paddlelike.errors import ExtraMissingError, GraphError, UnsupportedError
from paddlelike.framework.graph.program import Program
from paddlelike.framework.graph.variable import Variable

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
_UPDATES: Final = 2  # the bit of op_role that Fluid's optimizers set
_BACKWARD: Final = 1


PATIENCE: Final = 10.0  # seconds that a notebook waits for a picture
_LARGE: Final = (
    500  # edges: Graphviz takes seconds for so many, and minutes for a training program of 400 operators
)
_PICTURES: Final = ("svg", "png", "pdf")


@dataclass(frozen=True, repr=False)
class Drawing:
    """A graph in Graphviz's language, which notebooks show as a picture where Graphviz is installed."""

    dot: str

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
        graph = self.dot.encode()
        done = subprocess.run(command, input=graph, stdout=subprocess.PIPE, check=True, timeout=seconds)  # noqa: S603
        return done.stdout

    def __repr__(self) -> str:
        edges = self.dot.count(" -> ")
        if shutil.which("dot") is None:
            remark = "; no picture without Graphviz (apt-get install graphviz)"
        elif edges > _LARGE:
            remark = (
                "; too large for a notebook: program.clone(for_test=True).plot() has the forward part alone"
            )
        else:
            remark = ""
        return f"<Drawing: {edges} edges{remark}>"


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
    drawing = Drawing(format_dot(program, block, only_operators=only_operators))
    if path is not None:
        drawing.save(path)
    return drawing


def format_dot(program: Program, block: int = 0, *, only_operators: bool = False) -> str:
    """Return a block of a program in DOT: operators as boxes, variables as ellipses, coloured by kind.

    With ``only_operators``, an edge leads from an operator to those that read what it wrote, and is labelled
    with the variable.

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
    if not 0 <= block < len(program.blocks):
        raise GraphError(f"the program has {len(program.blocks)} blocks, there is no block {block}")
    chosen = program.blocks[block]
    lines = [
        "digraph program {",
        '  node [fontname="Helvetica", fontsize=10, style=filled, color="#666666"]; edge [color="#666666"];',
    ]
    written: dict[str, int] = {}
    variables: dict[str, str] = {}
    for index, op in enumerate(chosen.ops):
        lines.append(
            f'  op{index} [shape=box, label={_quote(op.type)}, fillcolor="{COLORS[_kind_of_op(op)]}"];'
        )
        for name in dict.fromkeys(op.input_arg_names):
            if only_operators:
                if name in written:
                    lines.append(f"  op{written[name]} -> op{index} [label={_quote(name)}, fontsize=8];")
                continue
            lines.append(f"  {variables.setdefault(name, f'v{len(variables)}')} -> op{index};")
        for name in dict.fromkeys(op.output_arg_names):
            written[name] = index
            if not only_operators:
                lines.append(f"  op{index} -> {variables.setdefault(name, f'v{len(variables)}')};")
    for name, key in variables.items():
        variable = chosen._find_var_recursive(name)
        label, kind = name, "temporary"
        if variable is not None:
            label, kind = _label(variable), _kind_of_variable(variable)
        lines.append(f'  {key} [shape=ellipse, label={_quote(label)}, fillcolor="{COLORS[kind]}"];')
    return "\n".join([*lines, "}"])


def _kind_of_op(op: object) -> str:
    role = int(getattr(op, "attr")("op_role") or 0) if getattr(op, "has_attr")("op_role") else 0  # noqa: B009
    if role & _UPDATES:
        return "update"
    return "gradient" if role & _BACKWARD else "operator"


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
