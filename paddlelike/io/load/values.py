"""The values that a load's plan asks for: read, made by rules, or constant."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from paddlelike.core import memory
from paddlelike.core.dtypes import dtype_row
from paddlelike.core.scope import global_scope
from paddlelike.core.tensor import LoDTensor, SelectedRows
from paddlelike.io.contents.interface import Contents, Reading, Value, Want
from paddlelike.io.planning.plan import Fill, LoadPlan, Step
from paddlelike.io.planning.recipe import made

__all__ = ["constant", "values_of"]

Array = np.ndarray[Any, Any]


def values_of(
    contents: Contents, plan: LoadPlan, lazily: bool = False, targets: Mapping[str, Array] | None = None
) -> tuple[Reading, list[Value]]:
    """The values of the plan's steps, each in memory of its own, or in the arrays that ``targets`` has."""
    if not any(step.recipe for step in plan.steps):
        into = targets or {}
        wants = [Want(step.held[0], None, into.get(step.variable.name)) for step in plan.steps]
        reading = contents.read(wants, lazily=lazily)
        return reading, [_fit(step, value) for step, value in zip(plan.steps, reading.values, strict=True)]
    wants = []
    where: dict[tuple[str, object], int] = {}
    for step in plan.steps:
        rows = _rows(step)
        for held in step.held:
            if (held.name, rows) not in where:
                where[held.name, rows] = len(wants)
                wants.append(Want(held, rows))
    reading = contents.read(wants, lazily=lazily)
    values: list[Value] = []
    taken: set[int] = set()
    for step in plan.steps:
        rows = _rows(step)
        numbers = [where[held.name, rows] for held in step.held]
        value = reading.values[numbers[0]]
        if step.recipe is not None and step.recipe.changes:
            arrays = [np.asarray(_array(reading.values[number])) for number in numbers]
            value = LoDTensor(made(step.recipe, arrays, step.variable, _base(step)))
        if numbers[0] in taken and value is reading.values[numbers[0]]:
            value = _copy(value)
        taken.update(numbers)
        values.append(_fit(step, value))
    return reading, values


def _rows(step: Step) -> tuple[int, int] | None:
    return None if step.recipe is None or step.recipe.rule is None else step.recipe.rule.rows


def _array(value: Value) -> Any:
    array = value.array
    assert array is not None
    return array


def _copy(value: Value) -> Value:
    if isinstance(value, SelectedRows):
        return SelectedRows(value.row_array.copy(), value.height(), memory.place(_array(value)))
    return LoDTensor(memory.place(_array(value)), value.lod())


def _base(step: Step) -> Any:
    """What stays of a variable where its file does not reach."""
    if step.recipe is None or step.recipe.rule is None or not step.recipe.rule.overlap:
        return None
    if step.base == "keep":
        holder = global_scope().find_var(step.variable.name)
        assert holder is not None
        return _array(holder.value)
    return constant(Fill(step.variable, 0.0 if step.base == "zero" else float(step.base)))


def constant(fill: Fill) -> Any:
    """The array of a variable that becomes a constant."""
    array = memory.empty(fill.variable.shape, dtype_row(fill.variable.dtype).numpy)
    array[...] = fill.value
    return array


def _fit(step: Step, value: Value) -> Value:
    """The value in the shape the program declares, where the file has another form of it."""
    shape = step.variable.shape
    if isinstance(value, LoDTensor) and shape and len(value._array.shape) != len(shape):  # type: ignore[union-attr]
        value.adopt(_array(value).reshape(shape), value.lod())
    return value
