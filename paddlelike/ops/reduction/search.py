"""Operators that sort, find the largest and list what is there: top_k, arg_max, unique."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from paddlelike.core.dtypes import VarType, numpy_dtype
from paddlelike.errors import EnforceNotMet, ShapeError
from paddlelike.framework.opdef import OWN, REQUIRED, Array, Bool, Gradient, Int, Long, OpDef, Spec, register
from paddlelike.framework.quirks import follows_fluid
from paddlelike.ops.operands import normalize_axis, one_element

__all__ = ["TopK"]


@register
class TopK(OpDef):
    """``Out``: the ``k`` largest numbers of the last dim, falling; Indices holds their positions.

    Of equal numbers the first comes first. The tensor K goes before the attribute.
    """

    type = "top_k"
    inputs = ("X", "K?")
    outputs = ("Out", "Indices")
    attrs = {"k": Int(1)}
    lod = "X"
    gradient = Gradient("Out@GRAD", "X", "Indices", outputs=("X@GRAD",), copies_attrs=False)

    @staticmethod
    def infer(x: Spec, k_tensor: Spec | None, *, k: int) -> tuple[Spec, Spec]:
        size = k
        if k_tensor is not None and not follows_fluid("topk_variable"):
            size = -1
        if not x.shape or (size != -1 and (k < 1 or 0 <= x.shape[-1] < k)):
            raise ShapeError(f"top_k: k is {k}, expected 1 .. the last dim of X {x.shape}")
        shape = (*x.shape[:-1], size)
        return Spec(shape, x.dtype), Spec(shape, VarType.INT64)

    @staticmethod
    def forward(x: Array, k_tensor: Array | None, *, k: int) -> tuple[Array, Array]:
        if k_tensor is not None:
            k = int(k_tensor.reshape(-1)[0])
        if not 1 <= k <= x.shape[-1]:
            raise EnforceNotMet(f"top_k: k is {k}, but the last dim of X {x.shape} is {x.shape[-1]}")
        indices = x.argmax(-1, keepdims=True) if k == 1 else _find_largest(x, k)
        return np.take_along_axis(x, indices, -1), indices

    @staticmethod
    def backward(d_out: Array, x: Array, indices: Array) -> Array:
        d_x = np.zeros(x.shape, d_out.dtype)
        np.put_along_axis(d_x, indices, d_out, -1)
        return d_x


def _find_largest(x: Array, k: int) -> Array:
    """Return the first ``k`` of ``_sort_falling``, without sorting the rest of long rows."""
    n = x.shape[-1]
    if k <= (32 if n >= 64 else 2):
        found = _find_one_by_one(x, k)
        if found is not None:
            return found
    if n >= 64 and k < n:
        some = np.sort(x.argpartition(n - k, -1)[..., n - k :], -1)
        values = np.take_along_axis(x, some, -1)
        smallest = values.min(-1, keepdims=True)
        if ((x >= smallest).sum(-1) == k).all():
            return np.take_along_axis(some, _sort_falling(values), -1)
        # the k-th number occurs more than once (or is NaN), so which ones are first matters
    return np.ascontiguousarray(_sort_falling(x)[..., :k])


def _find_one_by_one(x: Array, k: int) -> Array | None:
    """Return what :func:`_find_largest` does; None where the lowest number there is comes among them."""
    rest = x.reshape(-1, x.shape[-1]).copy()
    lowest = -np.inf if x.dtype.kind == "f" else np.iinfo(x.dtype).min
    rows = np.arange(len(rest))
    out = np.empty((len(rest), k), np.int64)
    for i in range(k):
        place = out[:, i] = rest.argmax(-1)  # NaN is larger than all numbers
        if i == k - 1 and (rest[rows, place] == lowest).any():
            return None
        rest[rows, place] = lowest
    return out.reshape(*x.shape[:-1], k)


def _sort_falling(x: Array, axis: int = -1) -> Array:
    """Return the indices that sort ``x`` falling, equal numbers in their order; NaN is largest."""
    backwards = np.flip(x, axis)
    return x.shape[axis] - 1 - np.flip(backwards.argsort(axis, kind="stable"), axis)


@register
class ArgSort(OpDef):
    """``Out``: X sorted along ``axis``; Indices holds the former position of each."""

    type = "argsort"
    outputs = ("Out", "Indices")
    attrs = {"axis": Int(-1), "descending": Bool(False)}
    lod = "X"
    gradient = Gradient("Out@GRAD", "X", "Indices", outputs=("X@GRAD",), lod=OWN)

    @staticmethod
    def infer(x: Spec, *, axis: int) -> tuple[Spec, Spec]:
        normalize_axis("argsort", axis, len(x.shape))
        return Spec(x.shape, x.dtype), Spec(x.shape, VarType.INT64)

    @staticmethod
    def forward(x: Array, *, axis: int, descending: bool) -> tuple[Array, Array]:
        indices = _sort_falling(x, axis) if descending else x.argsort(axis, kind="stable")
        return np.take_along_axis(x, indices, axis), indices

    @staticmethod
    def backward(d_out: Array, x: Array, indices: Array, *, axis: int) -> Array:
        d_x = np.empty_like(d_out)
        np.put_along_axis(d_x, indices, d_out, axis)
        return d_x


def _find_index_dtype(dtype: int) -> VarType:
    """Return the element type that an operator's ``dtype`` names; -1 is int64."""
    return VarType.INT64 if dtype < 0 else VarType(dtype)


def _register_extreme(type_: str, find: Callable[..., Array], what: str) -> None:
    def infer(x: Spec, *, axis: int, keepdims: bool, dtype: int) -> Spec:
        axis = normalize_axis(type_, axis, len(x.shape))
        one = (1,) if keepdims else ()
        return Spec((*x.shape[:axis], *one, *x.shape[axis + 1 :]), _find_index_dtype(dtype))

    def forward(x: Array, *, axis: int, keepdims: bool, dtype: int) -> Array:
        where = find(x, axis, keepdims=keepdims)
        return np.asarray(where, numpy_dtype(_find_index_dtype(dtype)))

    body = {
        "__doc__": f"``Out``: the position of the {what} number along ``axis``, the first if several.",
        "__module__": __name__,
        "type": type_,
        "attrs": {"axis": Long(REQUIRED), "keepdims": Bool(False), "dtype": Int(-1)},
        "infer": staticmethod(infer),
        "forward": staticmethod(forward),
    }
    register(type(type_.title().replace("_", ""), (OpDef,), body))


_register_extreme("arg_max", np.argmax, "largest")
_register_extreme("arg_min", np.argmin, "smallest")


class _Unique(OpDef):
    attrs = {"dtype": Int(REQUIRED)}

    @staticmethod
    def infer(x: Spec, *, dtype: int) -> tuple[Spec, ...]:
        if len(x.shape) != 1:
            raise ShapeError(f"unique: X has shape {x.shape}, expected one dim")
        return Spec((-1,), x.dtype), Spec(x.shape, VarType(dtype)), Spec((-1,), VarType(dtype))

    @staticmethod
    def forward(x: Array, *, dtype: int) -> tuple[Array, ...]:
        found, first, index, count = np.unique(x, return_index=True, return_inverse=True, return_counts=True)
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


@register
class WhereIndex(OpDef):
    """``Out``: the place of every element of Condition that is not zero, (count, rank)."""

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
