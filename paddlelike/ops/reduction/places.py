"""Indexes of extremes, of true elements, and of unique elements."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from paddlelike.core import VarType, numpy_dtype
from paddlelike.errors import ShapeError
from paddlelike.framework.opdef import (
    REQUIRED,
    Array,
    Attrs,
    Bool,
    Int,
    Ints,
    Long,
    OpDef,
    Spec,
    register,
    spares_first,
)
from paddlelike.ops.extremes import find_extreme
from paddlelike.ops.later import INTEGERS, register_kernel
from paddlelike.ops.operands import normalize_axis, one_element


def _find_index_dtype(dtype: int) -> VarType:
    """Return the element type that the attribute ``dtype`` of an operator names; -1 is int64."""
    return VarType.INT64 if dtype < 0 else VarType(dtype)


def _register_extreme(type_: str, what: str) -> None:
    is_greatest = type_ == "arg_max"

    def infer(x: Spec, *, axis: int, keepdims: bool, dtype: int) -> Spec:
        axis = normalize_axis(type_, axis, len(x.shape))
        one = (1,) if keepdims else ()
        return Spec((*x.shape[:axis], *one, *x.shape[axis + 1 :]), _find_index_dtype(dtype))

    def forward(x: Array, *, axis: int, keepdims: bool, dtype: int) -> Array:
        where = find_extreme(x, axis, keepdims=keepdims, is_greatest=is_greatest)
        return np.asarray(where, numpy_dtype(_find_index_dtype(dtype)))

    body = {
        "__doc__": f"``Out``: the position of the {what} number along ``axis``, the first if several.",
        "__module__": __name__,
        "type": type_,
        "by_row": spares_first("axis"),
        "attrs": {"axis": Long(REQUIRED), "keepdims": Bool(False), "dtype": Int(-1)},
        "infer": staticmethod(infer),
        "forward": staticmethod(forward),
    }
    register(type(type_.title().replace("_", ""), (OpDef,), body))


_register_extreme("arg_max", "largest")
_register_extreme("arg_min", "smallest")


class ArgAttrs(Attrs):
    """Attributes of the later arg_max and arg_min."""

    axis: int = Long(-1)
    keepdims: bool = Bool(False)
    flatten: bool = Bool(False)
    dtype: int = Int(3)


def _make_arg(*, is_greatest: bool) -> Callable[..., Array]:
    def find(x: Array, tensor: Array | None, *, attrs: ArgAttrs) -> Array:
        axis = attrs.axis if tensor is None else int(tensor.item())
        axes = None if attrs.flatten or not x.ndim else axis
        places = find_extreme(x, axes, keepdims=attrs.keepdims, is_greatest=is_greatest)
        return places.astype(INTEGERS.get(attrs.dtype, INTEGERS[3]))

    return find


register_kernel("arg_max", "X Axis? -> Out", ArgAttrs.table(), changed=True)(_make_arg(is_greatest=True))


register_kernel("arg_min", "X Axis? -> Out", ArgAttrs.table(), changed=True)(_make_arg(is_greatest=False))


@register
class WhereIndex(OpDef):
    """``Out``: the index of every element of Condition that is not zero, (count, rank)."""

    type = "where_index"
    inputs = ("Condition",)

    @staticmethod
    def infer(condition: Spec) -> Spec:
        return Spec((-1, len(condition.shape)), VarType.INT64)

    @staticmethod
    def forward(condition: Array) -> Array:
        return np.argwhere(condition)


@register
class IsEmpty(OpDef):
    """``Out``: whether X has no element, bool of shape (1,)."""

    type = "is_empty"

    infer = one_element(VarType.BOOL)

    @staticmethod
    def forward(x: Array) -> Array:
        return np.array([x.size == 0])


@register
class Size(OpDef):
    """``Out``: the number of elements of Input, int64 of shape (1,)."""

    type = "size"
    inputs = ("Input",)

    infer = one_element(VarType.INT64)

    @staticmethod
    def forward(x: Array) -> Array:
        return np.array([x.size], np.int64)


@register_kernel("histogram", "X -> Out", {"bins": Long(100), "min": Int(0), "max": Int(0)})
def _histogram(x: Array, *, bins: int, min: int, max: int) -> Array:  # noqa: A002
    """The number of elements in each of several equal bins."""
    bounds = (x.min(), x.max()) if min == max == 0 else (min, max)
    return np.histogram(x, bins, bounds)[0].astype(np.int64)


@register_kernel("bincount", "X Weights? -> Out", {"minlength": Int(0)})
def _bincount(x: Array, weights: Array | None, *, minlength: int) -> Array:
    """How often each integer occurs, or the sum of its weights."""
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
    """The distinct elements, sorted; their first indexes, the inverse and the counts."""
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
    """The elements that differ from their predecessors, the index of each element among them, and run
    lengths.
    """
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
    """``Out``: the distinct elements of X in order of appearance; ``X[i] = Out[Index[i]]``."""

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
    """``unique`` with Count, the number of times that each element of Out occurs in X."""

    type = "unique_with_counts"
    outputs = ("Out", "Index", "Count")
