"""A program as a graph in Graphviz's language."""

from __future__ import annotations

from typing import Final

from paddlelike.core.dtypes import VarType
from paddlelike.errors import GraphError
from paddlelike.framework.graph.program import Program
from paddlelike.framework.graph.variable import Variable

__all__ = ["COLORS", "format_dot"]

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
