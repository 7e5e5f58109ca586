"""Different elements, and how often they occur: unique, histogram, bincount."""

from __future__ import annotations

import numpy as np

from paddlelike.core.dtypes import VarType, numpy_dtype
from paddlelike.errors import ShapeError
from paddlelike.framework.opdef import REQUIRED, Array, Attrs, Bool, Int, Ints, Long, OpDef, Spec, register
from paddlelike.ops.later import INTEGERS, register_kernel


@register_kernel("histogram", "X -> Out", {"bins": Long(100), "min": Int(0), "max": Int(0)})
def _histogram(x: Array, *, bins: int, min: int, max: int) -> Array:  # noqa: A002
    """How many elements are in each of equal bins."""
    bounds = (x.min(), x.max()) if min == max == 0 else (min, max)
    return np.histogram(x, bins, bounds)[0].astype(np.int64)


@register_kernel("bincount", "X Weights? -> Out", {"minlength": Int(0)})
def _bincount(x: Array, weights: Array | None, *, minlength: int) -> Array:
    """How often each number occurs, or the sum of its weights."""
    out = np.bincount(x, weights, minlength)
    return out.astype(np.int64 if weights is None else weights.dtype)


class UniqueAttrs(Attrs):
    """Attributes of unique and unique_consecutive."""

    axis: list[int] = Ints([])
    dtype: int = Int(3)
    is_sorted: bool = Bool(False)


@register_kernel(
    "unique",
    "X -> Out Indices? Index? Counts?",
    UniqueAttrs.table(return_index=Bool(False), return_inverse=Bool(False), return_counts=Bool(False)),
    changed=True,
)
def _unique(x: Array, *, attrs: UniqueAttrs) -> tuple[Array, ...]:
    """The different elements, sorted; the first place, the inverse and the count of each."""
    axis = attrs.axis[0] if attrs.axis else None
    out, first, inverse, counts = np.unique(x, True, True, True, axis)
    if not attrs.is_sorted:  # in the order in which they occur
        order = first.argsort(kind="stable")
        rank = np.empty_like(order)
        rank[order] = np.arange(len(order))
        out, first, inverse, counts = out.take(order, axis or 0), first[order], rank[inverse], counts[order]
    kind = INTEGERS[attrs.dtype]
    return out, first.astype(kind), inverse.reshape(-1).astype(kind), counts.astype(kind)


@register_kernel(
    "unique_consecutive",
    "X -> Out Index? Counts?",
    UniqueAttrs.table(return_inverse=Bool(False), return_counts=Bool(False)),
)
def _unique_consecutive(x: Array, *, attrs: UniqueAttrs) -> tuple[Array, Array, Array]:
    """The elements that differ from the one before; which one each is, and how many follow each other."""
    axis = attrs.axis[0] if attrs.axis else 0
    rows = np.moveaxis(x, axis, 0) if attrs.axis else x.reshape(-1)
    flat = rows.reshape(len(rows), -1)
    starts = np.flatnonzero(np.r_[True, (flat[1:] != flat[:-1]).any(1)])
    kind = INTEGERS[attrs.dtype]
    inverse = np.cumsum(np.isin(np.arange(len(rows)), starts)) - 1
    counts = np.diff(np.r_[starts, len(rows)])
    out = np.moveaxis(rows[starts], 0, axis) if attrs.axis else rows[starts]
    return out, inverse.astype(kind), counts.astype(kind)


class _Unique(OpDef):
    attrs = {"dtype": Int(REQUIRED)}

    @staticmethod
    def infer(x: Spec, *, dtype: int) -> tuple[Spec, ...]:
        if len(x.shape) != 1:
            raise ShapeError(f"unique: X has shape {x.shape}, expected one dim")
        return Spec((-1,), x.dtype), Spec(x.shape, VarType(dtype)), Spec((-1,), VarType(dtype))

    @staticmethod
    def forward(x: Array, *, dtype: int) -> tuple[Array, ...]:
        found, first, index, count = np.unique(x, True, True, True, equal_nan=False)
        order = first.argsort()
        rank = np.empty_like(order)
        rank[order] = np.arange(len(order))
        number = numpy_dtype(dtype)
        return found[order], rank[index].astype(number), count[order].astype(number)


@register
class Unique(_Unique):
    """``Out``: the numbers of X once each, in order of appearance; ``X[i] = Out[Index[i]]``."""

    type = "unique"
    outputs = ("Out", "Index")

    @staticmethod
    def infer(x: Spec, *, dtype: int) -> tuple[Spec, ...]:
        return _Unique.infer(x, dtype=dtype)[:2]

    @staticmethod
    def forward(x: Array, *, dtype: int) -> tuple[Array, ...]:
        return _Unique.forward(x, dtype=dtype)[:2]


@register
class UniqueWithCounts(_Unique):
    """As ``unique``; Count holds how often each number of Out occurs in X."""

    type = "unique_with_counts"
    outputs = ("Out", "Index", "Count")
