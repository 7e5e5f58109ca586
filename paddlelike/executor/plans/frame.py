"""The values of one run; persistables among them are written into the scope."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from paddlelike.core import LoD, LoDTensor, Scope, ScopeVariable, SelectedRows, VarType, memory
from paddlelike.core.tensor import open_for
from paddlelike.executor.plans.layout import Layout
from paddlelike.framework import Operator, Variable
from paddlelike.framework.opdef import OpDef

Positions = Sequence[int | list[int]]  # in Frame.values, by slot; a list for a slot of several variables
Run = Callable[["Frame"], None]
Share = Callable[[dict[int, LoD], Any], None]


class Binding(NamedTuple):
    """The action of a step with one operator; several such actions can be joined."""

    cls: type[OpDef]
    kernel: Callable[..., Any]  # with its attributes filled in
    keywords: Mapping[str, Any]  # of the kernel
    inputs: Positions
    outputs: Positions
    share: Share | None  # passes LoDs on
    dead: tuple[int, ...]  # the values that no later step uses
    is_plain: bool  # the kernel's inputs and results need no conversion
    hollow: tuple[int, ...] = ()  # values that later steps read only for their shape
    candidates: tuple[int, ...] = ()  # large ones among these inputs may be written over


class Step(NamedTuple):
    """One operator bound to its kernel, or several operators of one type that run together."""

    run: Run
    op: Operator
    kernel: str = "general"  # or "specialized", see OpDef.specialize
    operators: int = 1  # number of operators
    binding: Binding | None = None
    overwrites: tuple[str, ...] = ()  # inputs without a later use; the result is written over one
    parts: tuple[Step, ...] = ()  # the steps that it replaces


class PartError(Exception):
    """The error of one operator in a joined step."""

    def __init__(self, op: Operator, error: Exception) -> None:
        super().__init__()
        self.op = op
        self.error = error


def run_parts(frame: Frame, parts: Sequence[Step]) -> None:
    """Run the steps that a joined step replaces. Raises PartError for an error in a step."""
    for part in parts:
        try:
            part.run(frame)
        except Exception as error:
            raise PartError(part.op, error) from error


class Frame:
    """The values of one run, by position (see :class:`~paddlelike.executor.plans.layout.Layout`)."""

    __slots__ = ("blocks", "failed", "holders", "layout", "lods", "scope", "services", "unshown", "values")

    def __init__(
        self, layout: Layout, blocks: Mapping[int, Sequence[Step]], scope: Scope, services: dict[str, Any]
    ) -> None:
        self.layout = layout
        self.blocks = blocks  # the steps of sub-blocks
        self.scope = scope
        self.services = services
        self.values: list[Any] = [None] * layout.size
        self.lods: dict[int, LoD] = {}
        # LoDs of rows whose variables have none, such as gradients; for compiled pieces.
        self.unshown: dict[int, LoD] = {}
        self.holders: dict[int, ScopeVariable] = {}
        self.failed = 0  # the index of the step that failed, see paddlelike.executor.plans.unrolled

    def load_persistables(self, variables: Mapping[int, Variable]) -> None:
        """Read the values of persistables from the scope, by position."""
        self.read_holders(find_holders(self.scope, variables))

    def read_holders(self, holders: Mapping[int, ScopeVariable]) -> None:
        """Read the values of variables of the scope, by position."""
        self.holders.update(holders)
        values = self.values
        for position, holder in holders.items():  # slow for many names
            value = holder._value
            if type(value) is LoDTensor and not value._lod:
                values[position] = value._array
            else:
                self._read_holder(position, holder)

    def _read_holder(self, position: int, holder: ScopeVariable) -> None:
        value = holder._value
        if not isinstance(value, LoDTensor):
            self.values[position] = value
            return
        self.values[position] = value._array
        if value._lod:
            self.lods[position] = value._lod


def find_holders(scope: Scope, variables: Mapping[int, Variable]) -> dict[int, ScopeVariable]:
    """Return the scope's variables by position, creating missing ones."""
    find = scope.find_var
    return {position: find(one.name) or scope.var(one.name) for position, one in variables.items()}


def flatten_positions(positions: Positions) -> list[int]:
    """Return the positions of all slots in one list.

    >>> flatten_positions([1, [2, 3]])
    [1, 2, 3]
    """
    return [one for at in positions for one in (at if isinstance(at, list) else [at])]


def write_persistable(frame: Frame, position: int, value: object, *, fresh: bool = False) -> object:
    """Write a persistable into the scope. Return the value that the scope holds.

    The memory of the old array is reused when shape and dtype are the same. A ``fresh`` array has no other
    owner and replaces the old one without a copy.
    """
    holder = frame.holders[position]
    old = holder.value
    if isinstance(value, np.ndarray) and frame.layout.persistables[position].type == VarType.SELECTED_ROWS:
        value = SelectedRows((), len(value), value)  # memory for as many rows; none is in use yet
    if not isinstance(value, np.ndarray):
        holder.set_value(value)
        return value
    tensor = holder.get_tensor() if old is None or isinstance(old, LoDTensor) else None
    if tensor is None:
        tensor = LoDTensor()
        holder.set_value(tensor)
    array = tensor.held_array
    if value is array:
        tensor.touch()
        return value
    lod = frame.lods.get(position)
    if fresh and memory.is_placed(value):
        tensor.adopt(value, lod)
        return value
    if array is not None and (view := open_for(array, value)) is not None:
        np.copyto(view, value)
        tensor.adopt(array, lod)
        return array
    placed = memory.place(value)
    tensor.adopt(placed, lod)
    return placed
