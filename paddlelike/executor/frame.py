"""The values of one run, and how a persistable among them gets into the scope."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from paddlelike.core import memory
from paddlelike.core.dtypes import VarType
from paddlelike.core.scope import Scope, ScopeVariable
from paddlelike.core.tensor import LoD, LoDTensor, SelectedRows

if TYPE_CHECKING:
    from paddlelike.executor.plan import Plan

__all__ = ["Frame", "keep"]


class Frame:
    """The values of one run."""

    __slots__ = ("feeds", "fetches", "holders", "lods", "plan", "scope", "services", "values")

    def __init__(self, plan: Plan, scope: Scope, services: dict[str, Any]) -> None:
        self.plan = plan
        self.scope = scope
        self.services = services
        self.values: list[Any] = [None] * plan.size
        self.lods: dict[int, LoD] = {}
        self.holders: dict[int, ScopeVariable] = {}
        self.feeds: dict[str, Any] = {}
        self.fetches: dict[int, int] = {}

    def hold(self, number: int) -> None:
        """Take the value of a persistable from the scope, where the plan met its name only in the run."""
        variable = self.plan.persistables.get(number)
        if variable is None:
            return
        holder = self.scope.find_var(variable.name) or self.scope.var(variable.name)
        self.holders[number] = holder
        value = holder.value
        if isinstance(value, LoDTensor):
            self.values[number] = value.array
            if value._lod:
                self.lods[number] = value._lod
        else:
            self.values[number] = value


def keep(frame: Frame, number: int, value: Any, *, fresh: bool = False) -> Any:
    """Write a persistable into the scope; its memory stays where it is when the shape does.

    A ``fresh`` array belongs to nobody else: it is taken over instead.
    """
    holder = frame.holders[number]
    old = holder.value
    if isinstance(value, np.ndarray) and frame.plan.persistables[number].type == VarType.SELECTED_ROWS:
        value = SelectedRows((), len(value), value)  # room for as many rows, none of which is in use yet
    if not isinstance(value, np.ndarray):
        holder.set_value(value)
        return value
    tensor = holder.get_tensor() if old is None or isinstance(old, LoDTensor) else None
    if tensor is None:
        tensor = LoDTensor()
        holder.set_value(tensor)
    array = tensor.array
    if value is array:
        tensor.touch()
        return value
    lod = frame.lods.get(number)
    if fresh and memory.is_placed(value):
        tensor.adopt(value, lod)
        return value
    if array is not None and array.shape == value.shape and array.dtype == value.dtype:
        np.copyto(array, value)
        tensor.adopt(array, lod)
        return array
    placed = memory.place(value)
    tensor.adopt(placed, lod)
    return placed
