"""The values of a plan: read, computed by rules, or constant."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from paddlelike.core import Array, LoDTensor, dtype_row, global_scope, memory
from paddlelike.formats.base import copy_value, get_array
from paddlelike.io.contents.interface import Contents, Reading, Value, Want
from paddlelike.io.planning.load_plan import Fill, LoadPlan, Step
from paddlelike.io.planning.recipe import apply_recipe


def read_values(
    contents: Contents, plan: LoadPlan, lazily: bool = False, targets: Mapping[str, Array] | None = None
) -> tuple[Reading, list[Value]]:
    """Return the values of the plan's steps, each in new memory or in its array of ``targets``.

    Raises
    ------
    FormatError, StorageError
        A file cannot be read, or is not the one whose header was read.
    """
    if not any(step.recipe for step in plan.steps):
        into = targets or {}
        known = [None if into else step.held[0].value for step in plan.steps]  # of small files, read whole
        wants = [
            Want(step.held[0], None, into.get(step.variable.name))
            for step, value in zip(plan.steps, known, strict=True)
            if value is None
        ]
        reading = contents.read(wants, lazily=lazily)
        read = iter(reading.values)
        return reading, [
            _fit(step, next(read) if value is None else value)
            for step, value in zip(plan.steps, known, strict=True)
        ]
    wants = []
    where: dict[tuple[str, object], int] = {}
    for step in plan.steps:
        rows = _get_rows(step)
        for held in step.held:
            if (held.name, rows) not in where:
                where[held.name, rows] = len(wants)
                wants.append(Want(held, rows))
    reading = contents.read(wants, lazily=lazily)
    values: list[Value] = []
    taken: set[int] = set()
    for step in plan.steps:
        rows = _get_rows(step)
        indexes = [where[held.name, rows] for held in step.held]
        value = reading.values[indexes[0]]
        if step.recipe is not None and step.recipe.changes:
            arrays = [np.asarray(get_array(reading.values[index])) for index in indexes]
            value = LoDTensor(apply_recipe(step.recipe, arrays, step.variable, _make_base(step)))
        if indexes[0] in taken and value is reading.values[indexes[0]]:
            value = copy_value(value)
        taken.update(indexes)
        values.append(_fit(step, value))
    return reading, values


def _get_rows(step: Step) -> tuple[int, int] | None:
    return None if step.recipe is None or step.recipe.rule is None else step.recipe.rule.rows


def _make_base(step: Step) -> Array | None:
    """Return the value of a variable outside the overlap, or None without an overlap."""
    if step.recipe is None or step.recipe.rule is None or not step.recipe.rule.overlap:
        return None
    if step.base == "keep":
        holder = global_scope().find_var(step.variable.name)
        assert holder is not None
        return get_array(holder.value)
    return make_constant(Fill(step.variable, 0.0 if step.base == "zero" else float(step.base)))


def make_constant(fill: Fill) -> Array:
    """Return the array of a variable that is set to a constant."""
    array = memory.empty(fill.variable.shape, dtype_row(fill.variable.dtype).numpy)
    array[...] = fill.value
    return array


def _fit(step: Step, value: Value) -> Value:
    """Return the value in the declared shape, if the file has another number of axes.

    A number without axes, which Paddle 3 writes, keeps its shape, so that it is saved in the same bytes, as
    in Fluid.
    """
    shape = step.variable.shape
    if step.recipe is None and len(shape) == len(step.held[0].header.shape):
        return value
    if isinstance(value, LoDTensor) and shape and len(value.shape()) not in (0, len(shape)):
        value.adopt(get_array(value).reshape(shape), value.lod())
    return value
