"""How the value of one variable is made of what a source holds: what comes out, and the making."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from paddlelike.core import memory
from paddlelike.core.dtypes import VarType, dtype_row
from paddlelike.framework.graph.variable import Variable
from paddlelike.io.rules.rules import Rename

__all__ = ["Misfit", "Recipe", "made", "outcome"]

Array = np.ndarray[Any, Any]
Shape = tuple[int, ...]


class Misfit(Exception):  # noqa: N818  (caught where it is told)
    """A rule that cannot be carried out on what there is."""


class Recipe(NamedTuple):
    """The files a value is made of, and the rule that makes it; None: one file, as it is."""

    files: tuple[str, ...]
    rule: Rename | None = None
    part: tuple[int, int] | None = None  # of a split: from where to where along the axis
    whole: int = 0  # how long all the parts are

    @property
    def changes(self) -> bool:
        """Whether the value becomes another one than the file's."""
        return self.rule is not None and self.rule.changes


def outcome(
    recipe: Recipe, found: Sequence[tuple[VarType, Shape]], variable: Variable
) -> tuple[VarType, Shape]:
    """Element type and shape of what :func:`made` gives, from those of the files.

    Raises
    ------
    Misfit
        The rule cannot be carried out.
    """
    rule = recipe.rule
    dtype, shape = found[0]
    if rule is None:
        return dtype, shape
    if rule.rows is not None:
        shape = _rows(rule.rows, shape)
    if rule.transpose:
        shape = shape[::-1]
    if rule.concat is not None:
        shape = _joined([dtype for dtype, _ in found], [s[::-1] if rule.transpose else s for _, s in found],
                        rule.concat)  # fmt: skip
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
                f"{list(shape)} and {list(variable.shape)} do not overlap: they differ in their dims"
            )
        shape = tuple(variable.shape)
    return variable.dtype if rule.cast else dtype, shape


def made(recipe: Recipe, arrays: Sequence[Array], variable: Variable, base: Array | None) -> Array:
    """The value of ``variable``, in memory of its own where it is not the one array that came.

    ``base`` is the value that is kept where the files do not overlap it.
    """
    rule = recipe.rule
    value = arrays[0]
    if rule is None:
        return value
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


def _rows(rows: tuple[int, int], shape: Shape) -> Shape:
    start, stop = rows
    if not shape or not 0 <= start <= stop <= shape[0]:
        raise Misfit(f"rows {start} to {stop} are asked for, the file has shape {list(shape)}")
    return stop - start, *shape[1:]


def _joined(dtypes: Sequence[VarType], shapes: Sequence[Shape], axis: int) -> Shape:
    first = shapes[0]
    if len(set(dtypes)) > 1:
        raise Misfit(f"the files hold {', '.join(d.name for d in dtypes)}, which are not put together")
    if not 0 <= axis < len(first) or any(
        len(s) != len(first) or s[:axis] != first[:axis] or s[axis + 1 :] != first[axis + 1 :] for s in shapes
    ):
        raise Misfit(f"shapes {', '.join(str(list(s)) for s in shapes)} do not go together along axis {axis}")
    return *first[:axis], sum(shape[axis] for shape in shapes), *first[axis + 1 :]
