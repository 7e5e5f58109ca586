"""Recipes: how the value of one variable is computed from files, and the type and shape of the result."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from paddlelike.core import Array, VarType, dtype_row, memory
from paddlelike.framework import Variable
from paddlelike.io.rules.rule import Rename

Shape = tuple[int, ...]


class Misfit(Exception):  # noqa: N818  (caught by the planner)
    """A rule that cannot be applied to the files."""


class Recipe(NamedTuple):
    """The source files of a value, and the rule to apply, or None for one unchanged file."""

    files: tuple[str, ...]
    rule: Rename | None = None
    part: tuple[int, int] | None = None  # for a split, the range along the axis
    whole: int = 0  # for a split, the total length of the parts

    @property
    def changes(self) -> bool:
        """Whether the value differs from the value in the file."""
        return self.rule is not None and self.rule.changes


def infer_facts(
    recipe: Recipe, found: Sequence[tuple[VarType, Shape]], variable: Variable
) -> tuple[VarType, Shape]:
    """Return the element type and shape of the result of :func:`apply_recipe`, given the types and shapes in
    the files.

    Raises
    ------
    Misfit
        The rule cannot be applied.
    """
    rule = recipe.rule
    if rule is None:
        return found[0]
    if rule.order is not None:
        found = [(dtype, _reorder_shape(shape, len(rule.order))) for dtype, shape in found]
    dtype, shape = found[0]
    if rule.rows is not None:
        shape = _slice_shape(rule.rows, shape)
    if rule.transpose:
        shape = shape[::-1]
    if rule.concat is not None:
        shapes = [s[::-1] if rule.transpose else s for _, s in found]
        shape = _concat_shapes([dtype for dtype, _ in found], shapes, rule.concat)
    if recipe.part is not None:
        assert rule.split is not None
        length = shape[rule.split] if rule.split < len(shape) else 0
        if length != recipe.whole:
            raise Misfit(
                f"the file has shape {list(shape)}: {length} along axis {rule.split}, "
                f"the variables take {recipe.whole}"
            )
        shape = (*shape[: rule.split], recipe.part[1] - recipe.part[0], *shape[rule.split + 1 :])
    if rule.overlap:
        if len(shape) != len(variable.shape):
            raise Misfit(
                f"{list(shape)} and {list(variable.shape)} do not overlap: their numbers of axes differ"
            )
        shape = tuple(variable.shape)
    return variable.dtype if rule.cast else dtype, shape


def apply_recipe(recipe: Recipe, arrays: Sequence[Array], variable: Variable, base: Array | None) -> Array:
    """Return the value of ``variable``, in new memory unless it is the first of ``arrays`` itself.

    ``base`` is the value outside of an overlap.
    """
    rule = recipe.rule
    value = arrays[0]
    if rule is None:
        return value
    if rule.order is not None:
        arrays = [reorder(array, rule.order) for array in arrays]
    if rule.transpose:
        arrays = [array.T for array in arrays]
    value = arrays[0]
    if rule.concat is not None:
        value = np.concatenate(arrays, rule.concat)
    if recipe.part is not None:
        assert rule.split is not None
        value = value[(slice(None),) * rule.split + (slice(*recipe.part),)]
    if rule.overlap:
        assert base is not None
        both = tuple(slice(min(ours, theirs)) for ours, theirs in zip(base.shape, value.shape, strict=True))
        whole = memory.place(base)
        whole[both] = value[both]
        return whole
    if rule.cast:
        value = value.astype(dtype_row(variable.dtype).numpy, copy=False)
    return value if value is arrays[0] and not rule.transpose else memory.place(value)


def reorder(array: Array, order: Sequence[int]) -> Array:
    """Return an array whose last axis is cut into equal parts, which are put into another order."""
    parts = np.split(array, len(order), -1)
    whole = np.concatenate([parts[index] for index in order], -1)
    return whole[0] if whole.ndim == 2 and len(whole) == 1 else whole


def _reorder_shape(shape: Shape, parts: int) -> Shape:
    if not shape or shape[-1] % parts:
        raise Misfit(f"the file has shape {list(shape)}, whose last axis is not divisible by {parts}")
    return shape[1:] if len(shape) == 2 and shape[0] == 1 else shape


def _slice_shape(rows: tuple[int, int], shape: Shape) -> Shape:
    start, stop = rows
    if not shape or not 0 <= start <= stop <= shape[0]:
        raise Misfit(f"rows {start} to {stop} were requested, but the file has shape {list(shape)}")
    return stop - start, *shape[1:]


def _concat_shapes(dtypes: Sequence[VarType], shapes: Sequence[Shape], axis: int) -> Shape:
    first = shapes[0]
    if len(set(dtypes)) > 1:
        raise Misfit(f"the files hold {', '.join(d.name for d in dtypes)}, which cannot be concatenated")
    if not 0 <= axis < len(first) or any(
        len(s) != len(first) or s[:axis] != first[:axis] or s[axis + 1 :] != first[axis + 1 :] for s in shapes
    ):
        raise Misfit(
            f"shapes {', '.join(str(list(s)) for s in shapes)} cannot be concatenated along axis {axis}"
        )
    return *first[:axis], sum(shape[axis] for shape in shapes), *first[axis + 1 :]
