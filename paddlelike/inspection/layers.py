"""The layers of a program: their shapes and parameters, as a table."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterator
from dataclasses import field
from typing import Final, NamedTuple

from paddlelike.core import numpy_dtype
from paddlelike.foundation.display import Displayed
from paddlelike.framework import Block, Operator, OpRole, Parameter, Program, Variable
from paddlelike.framework.graph.variable import HOLDERS, TENSOR_LIKE
from paddlelike.lazy import dataclass

_TITLES: Final = ("layer", "operators", "output", "parameters", "reads")
_WIDEST: Final = 40
_ROLES: Final = {int(OpRole.Forward): "forward", int(OpRole.Backward): "backward"}
_ALL_BUT_LOSS: Final = ~int(OpRole.Loss)
_NUMBERED: Final = re.compile(r"\.(?:tmp|w|b)_\d")


class Layer(NamedTuple):
    """Operators that one call of a layer appended, or an input.

    Attributes
    ----------
    name
        The names of its variables without ``.tmp_0`` and its like, such as "fc_0"; of an input, its own.
    operators
        The types of the operators in order; empty for an input.
    shape
        The shape of the last output; a dim of -1 is known only when a value is fed.
    parameters
        Elements of the persistable variables that it reads or writes.
    reads
        The layers that it reads from.
    depth
        0 in the outermost block, 1 inside of a loop or branch, and so on.
    """

    name: str
    operators: tuple[str, ...]
    shape: tuple[int, ...] | None
    parameters: int
    reads: tuple[str, ...]
    depth: int = 0


@dataclass(frozen=True, repr=False)
class LayerTable(Displayed):
    """The layers of a program and their totals; prints as a table.

    Attributes
    ----------
    trained, fixed
        Elements of the persistable variables of the layers: those that training changes, and others. A
        variable of several layers counts once.
    optimizer
        Elements of the persistable variables of update operators alone: moments, learning rates.
    nbytes
        The size of ``trained`` and ``fixed`` together.
    operators
        The number of operators by role: "forward", "backward", "update".
    """

    layers: tuple[Layer, ...]
    trained: int
    fixed: int
    optimizer: int
    nbytes: int
    operators: dict[str, int]

    @property
    def totals(self) -> list[str]:
        """The totals, as lines."""
        roles = ", ".join(f"{count} {role}" for role, count in self.operators.items() if count)
        count = f"{self.trained + self.fixed:,} ({self.nbytes:,} bytes)"
        lines = [f"parameters: {count}, {self.trained:,} trained, {self.fixed:,} not trained"]
        if self.optimizer:
            lines.append(f"state of the optimizer: {self.optimizer:,}")
        return [*lines, f"operators: {roles or 'none'}"]

    def cells(self) -> list[tuple[str, ...]]:
        """Return the cells of the table, row by row."""
        return [
            (
                "  " * layer.depth + layer.name,
                join_runs(layer.operators) or "(input)",
                "" if layer.shape is None else str(list(layer.shape)),
                f"{layer.parameters:,}",
                ", ".join(layer.reads),
            )
            for layer in self.layers
        ]

    def __str__(self) -> str:
        rows = [_TITLES, *(tuple(map(_shorten, row)) for row in self.cells())]
        widths = [max(len(row[column]) for row in rows) for column in range(len(_TITLES))]
        rule = "-" * (sum(widths) + 2 * (len(widths) - 1))
        lines = ["  ".join(map(_align, range(len(row)), row, widths)).rstrip() for row in rows]
        return "\n".join([lines[0], rule, *lines[1:], rule, *self.totals])

    def __repr__(self) -> str:
        return f"<LayerTable: {len(self.layers)} layers, {self.trained + self.fixed:,} parameters>"


def print_layers(program: Program) -> None:
    """Print the layers of a program; :meth:`Program.summary` calls it."""
    print(list_layers(program))  # noqa: T201  (as Keras' Model.summary)


def list_layers(program: Program) -> LayerTable:
    """Return the layers of the forward part of a program.

    Operators next to each other whose outputs have the same name before the dot (``fc_0.tmp_0``,
    ``fc_0.tmp_1``) are one layer. The layers inside loops and branches follow them, indented.

    >>> import paddlelike as fluid
    >>> main = fluid.Program()
    >>> with fluid.program_guard(main, fluid.Program()), fluid.unique_name.guard():
    ...     y = fluid.layers.fc(fluid.data("x", [None, 4]), 3, act="relu")
    >>> list_layers(main).layers[1]
    Layer(name='fc_0', operators=('mul', 'elementwise_add', 'relu'), shape=(-1, 3), parameters=15, \
reads=('x',), depth=0)
    """
    collected = _Collected()
    _collect(program.global_block(), 0, collected)
    used = collected.persistables
    state = {
        v.name: v
        for v in program.list_vars()
        if v.persistable and v.type in TENSOR_LIKE and v.name not in used and not isinstance(v, Parameter)
    }
    return LayerTable(
        layers=tuple(collected.layers),
        trained=sum(map(_count, filter(_is_trained, used.values()))),
        fixed=sum(_count(v) for v in used.values() if not _is_trained(v)),
        optimizer=sum(map(_count, state.values())),
        nbytes=sum(_count(v) * numpy_dtype(v.dtype).itemsize for v in used.values()),
        operators=count_roles(program),
    )


def count_roles(program: Program) -> dict[str, int]:
    """Return how many operators compute forward, how many compute gradients, and how many update."""
    counts = {"forward": 0, "backward": 0, "update": 0}
    for block in program.blocks:
        for op in block.ops:
            counts[get_role(op)] += 1
    return counts


@dataclass
class _Collected:
    layers: list[Layer] = field(default_factory=list)
    persistables: dict[str, Variable] = field(default_factory=dict)
    writers: dict[str, str] = field(default_factory=dict)  # by variable, the layer that computes it


def _collect(block: Block, depth: int, found: _Collected) -> None:
    """Append the layers of a block and of the blocks inside of it."""
    for name, ops in _group(block):
        reads: dict[str, None] = {}
        written: dict[str, str] = {}
        own: dict[str, Variable] = {}
        for op in ops:
            for read in op.input_arg_names:
                variable = block._find_var_recursive(read)
                if read in written or variable is None or variable.type in HOLDERS or _keep(variable, own):
                    continue
                if read not in found.writers:
                    found.writers[read] = read
                    found.layers.append(Layer(read, (), variable.shape, 0, (), depth))
                reads[found.writers[read]] = None
            for output in op.output_arg_names:
                variable = block._find_var_recursive(output)
                if variable is not None and not _keep(variable, own):
                    written[output] = name
        found.persistables |= own
        last = next((v for op in reversed(ops) if (v := find_output(op)) is not None), None)
        shape = None if last is None else last.shape
        parameters = sum(map(_count, own.values()))
        found.layers.append(Layer(name, tuple(op.type for op in ops), shape, parameters, tuple(reads), depth))
        for index in ops[0].sub_blocks():
            _collect(block.program.blocks[index], depth + 1, found)
        found.writers |= written


def _group(block: Block) -> Iterator[tuple[str, list[Operator]]]:
    """Yield the forward operators of a block by layer, with the layer's name; a loop or branch is alone."""
    name, ops = "", list[Operator]()
    for op in block.ops:
        if op.type in ("feed", "fetch") or get_role(op) != "forward":
            continue
        output = find_output(op)
        alone = bool(op.sub_blocks())
        here = op.type if output is None or alone else name_layer(output)
        if ops and (here != name or alone):
            yield name, ops
            ops = []
        name, ops = here, [*ops, op]
    if ops:
        yield name, ops


def find_output(op: Operator) -> Variable | None:
    """Return the variable that names the layer of an operator: the first temporary that it writes."""
    first = None
    for name in _order_outputs(op):
        variable = op.block._find_var_recursive(name)
        if variable is not None and not variable.persistable:
            return variable
        first = variable if first is None else first
    return first


def name_layer(output: Variable) -> str:
    """Return the name of the layer that made a variable: the variable's name without endings like
    ``.tmp_0``.
    """
    return _NUMBERED.split(output.name, 1)[0]


def _order_outputs(op: Operator) -> list[str]:
    """Return the names that an operator writes, its main output first."""
    main = [name for slot in ("Out", "Output", "Y") for name in op.outputs.get(slot, ())]
    return main or op.output_arg_names


def _keep(variable: Variable, persistables: dict[str, Variable]) -> bool:
    """Add a persistable tensor to ``persistables``; return whether the variable is one."""
    if variable.persistable and variable.type in TENSOR_LIKE:
        persistables[variable.name] = variable
        return True
    return False


def get_role(op: Operator) -> str:
    return _ROLES.get(int(op.attrs.get("op_role") or 0) & _ALL_BUT_LOSS, "update")


def _is_trained(variable: Variable) -> bool:
    return isinstance(variable, Parameter) and variable.trainable


def _count(variable: Variable) -> int:
    return math.prod(variable.shape) if all(dim >= 0 for dim in variable.shape) else 0


def join_runs(types: tuple[str, ...]) -> str:
    """Return the types of operators; a run of equal types is one entry with its length."""
    runs = [(type, len(list(run))) for type, run in itertools.groupby(types)]
    return " ".join(type if length == 1 else f"{type}*{length}" for type, length in runs)


def _shorten(text: str) -> str:
    """Return text without terminal control characters, limited in width."""
    clean = "".join(one if one.isprintable() else "?" for one in text)
    return clean if len(clean) <= _WIDEST else clean[: _WIDEST - 3] + "..."


def _align(column: int, text: str, width: int) -> str:
    return text.rjust(width) if _TITLES[column] == "parameters" else text.ljust(width)
