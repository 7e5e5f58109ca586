"""Operators that sort or rank elements: top_k, argsort, kthvalue, mode, searchsorted."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from paddlelike.core import VarType
from paddlelike.errors import EnforceNotMet, ShapeError
from paddlelike.framework import follows_fluid
from paddlelike.framework.opdef import (
    OWN,
    Array,
    Attrs,
    Bool,
    Gradient,
    GradOp,
    Int,
    Ints,
    OpDef,
    OpView,
    Spec,
    String,
    register,
    spares_first,
)
from paddlelike.framework.opdef.registry import LATER
from paddlelike.ops.kernels.sorting import argsort_rows, select_top, select_top_later
from paddlelike.ops.later import register_kernel
from paddlelike.ops.operands import normalize_axis, read_numbers


class TopAttrs(Attrs):
    """Attributes of top_k_v2."""

    k: int = Int(1)
    axis: int = Int(-1)
    largest: bool = Bool(True)


@register_kernel("top_k_v2", "X K? -> Out Indices", TopAttrs.table(sorted=Bool(True)))
def _top_k(x: Array, tensor: Array | None, *, attrs: TopAttrs) -> tuple[Array, Array]:
    """The k largest (or smallest) elements along an axis in order, and their indices."""
    if not x.ndim:
        return x.copy(), np.zeros((), np.int64)
    (k,) = read_numbers([attrs.k], tensor, None)
    places = _sort(x, attrs.axis, falling=attrs.largest).take(range(k), attrs.axis)
    if k and follows_fluid("order_of_equals"):
        rows = np.moveaxis(x, attrs.axis, -1)
        found = select_top_later(rows, np.moveaxis(places, attrs.axis, -1), largest=attrs.largest)
        places = np.moveaxis(found, -1, attrs.axis)
    return np.take_along_axis(x, places, attrs.axis), places


def _sort(x: Array, axis: int, *, falling: bool) -> Array:
    """Return the indexes that sort X; equal elements keep their order, and NaN is largest."""
    if not falling:
        return x.argsort(axis, kind="stable")
    backwards = np.flip(x, axis).argsort(axis, kind="stable")
    return x.shape[axis] - 1 - np.flip(backwards, axis)


@register_kernel("kthvalue", "X -> Out Indices", {"k": Int(1), "axis": Int(-1), "keepdim": Bool(False)})
def _kthvalue(x: Array, *, k: int, axis: int, keepdim: bool) -> tuple[Array, Array]:
    """The k-th smallest element along an axis, and its index."""
    places = _sort(x, axis, falling=False).take([k - 1], axis)
    return _take(x, places, axis, keepdim)


@register_kernel("mode", "X -> Out Indices", {"axis": Int(-1), "keepdim": Bool(False)})
def _mode(x: Array, *, axis: int, keepdim: bool) -> tuple[Array, Array]:
    """The most frequent element along an axis, the smallest if there are several, and its last index."""
    rows = np.moveaxis(x, axis, -1)
    counts = (rows[..., :, None] == rows[..., None, :]).sum(-1)
    best = np.where(counts == counts.max(-1, keepdims=True), rows, np.inf).min(-1, keepdims=True)
    last = rows.shape[-1] - 1 - np.flip(rows == best, -1).argmax(-1, keepdims=True)
    return _take(x, np.moveaxis(last, -1, axis), axis, keepdim)


def _take(x: Array, places: Array, axis: int, keepdim: bool) -> tuple[Array, Array]:
    out = np.take_along_axis(x, places, axis)
    return (out, places) if keepdim else (out.squeeze(axis), places.squeeze(axis))


@register_kernel(
    "searchsorted", "SortedSequence Values -> Out", {"out_int32": Bool(False), "right": Bool(False)}
)
def _searchsorted(rows: Array, values: Array, *, out_int32: bool, right: bool) -> Array:
    """The insertion index of each value in a sorted row."""
    side: Any = "right" if right else "left"
    if rows.ndim == 1:
        out = np.searchsorted(rows, values, side)
    else:
        pairs = zip(rows.reshape(-1, rows.shape[-1]), values.reshape(-1, values.shape[-1]), strict=True)
        out = np.stack([np.searchsorted(row, value, side) for row, value in pairs]).reshape(values.shape)
    return np.asarray(out, np.int32 if out_int32 else np.int64)


class MedianAttrs(Attrs):
    """Attributes of median and nanmedian. For an even count ``mode`` is "avg" or "min" of the middle two."""

    axis: list[int] = Ints([])
    keepdim: bool = Bool(False)
    mode: str = String("avg")


def _make_median(is_skipping: bool) -> Callable[..., tuple[Array, Array | None]]:
    def median(x: Array, *, attrs: MedianAttrs) -> tuple[Array, Array | None]:
        """Return the median along dims; nanmedian ignores NaN. In mode "min" its index is returned too."""
        axes = [axis % x.ndim for axis in attrs.axis] or list(range(x.ndim))
        rest = [axis for axis in range(x.ndim) if axis not in axes]
        rows = np.sort(x.transpose(*rest, *axes).reshape(*[x.shape[axis] for axis in rest], -1), -1)
        bad = np.isnan(rows).sum(-1, keepdims=True)
        count = rows.shape[-1] - bad
        low, high = (np.maximum(count - 1, 0) // 2, count // 2)
        high = np.minimum(low if attrs.mode == "min" else high, rows.shape[-1] - 1)
        middle = [np.take_along_axis(rows, at, -1)[..., 0] for at in (low, high)]
        out = (middle[0] + middle[1]) / x.dtype.type(2) if x.dtype.kind == "f" else middle[0]
        if not is_skipping:
            out = np.where(bad[..., 0] > 0, np.nan, out).astype(x.dtype)
        kept = [1 if axis in axes else n for axis, n in enumerate(x.shape)]
        place = None
        if attrs.mode == "min":
            flat = x.transpose(*rest, *axes).reshape(rows.shape)
            place = np.take_along_axis(flat.argsort(-1, kind="stable"), low, -1)[..., 0]
            if not is_skipping:
                place = np.where(bad[..., 0] > 0, np.isnan(flat).argmax(-1), place)
            place = place.reshape(kept) if attrs.keepdim else place
        return (out.reshape(kept) if attrs.keepdim else out), place

    return median


register_kernel("median", "X -> Out MedianIndex?", MedianAttrs.table(), since="3")(_make_median(False))
register_kernel("nanmedian", "X -> Out MedianIndex?", MedianAttrs.table())(_make_median(True))


@register
class TopK(OpDef):
    """``Out``: the ``k`` largest elements of the last dim in falling order; Indices holds their positions.

    Equal numbers come in the order of C++'s partial sort (:func:`select_top`). The tensor K overrides the
    attribute.
    """

    type = "top_k"
    by_row = True
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
        if follows_fluid("order_of_equals"):
            indices = select_top(x, indices)
        return np.take_along_axis(x, indices, -1), indices

    @staticmethod
    def backward(d_out: Array, x: Array, indices: Array) -> Array:
        d_x = np.zeros(x.shape, d_out.dtype)
        np.put_along_axis(d_x, indices, d_out, -1)
        return d_x


def _find_largest(x: Array, k: int) -> Array:
    """Return the first ``k`` of ``_sort`` in descending order, without sorting the rest of long rows."""
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
            return np.take_along_axis(some, _sort(values, -1, falling=True), -1)
        # the k-th number occurs more than once (or is NaN), so which ones are first matters
    return np.ascontiguousarray(_sort(x, -1, falling=True)[..., :k])


def _find_one_by_one(x: Array, k: int) -> Array | None:
    """Return the result of :func:`_find_largest` for small k; None if a result is the lowest number."""
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


@register
class ArgSort(OpDef):
    """``Out``: X sorted along ``axis``; Indices holds the original index of each element."""

    type = "argsort"
    by_row = spares_first("axis")
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
        indices = _sort(x, axis, falling=descending)
        if x.size and follows_fluid("order_of_equals"):
            rows, places = np.moveaxis(x, axis, -1), np.moveaxis(indices, axis, -1)
            indices = np.moveaxis(argsort_rows(rows, places, falling=descending), -1, axis)
        return np.take_along_axis(x, indices, axis), indices

    @staticmethod
    def backward(d_out: Array, x: Array, indices: Array, *, axis: int) -> Array:
        d_x = np.empty_like(d_out)
        np.put_along_axis(d_x, indices, d_out, axis)
        return d_x


@register
class LaterArgSort(OpDef):
    """``argsort`` where NaN is larger than all other numbers."""

    type = "argsort" + LATER
    since = "2"
    outputs = ArgSort.outputs
    attrs = ArgSort.attrs
    lod = "X"
    infer = staticmethod(ArgSort.infer)

    @staticmethod
    def forward(x: Array, *, axis: int, descending: bool) -> tuple[Array, Array]:
        ranks = np.unique(x, return_inverse=True)[1].reshape(x.shape)
        indices = ArgSort.forward(ranks, axis=axis, descending=descending)[1]
        return np.take_along_axis(x, indices, axis), indices

    @classmethod
    def make_grad(cls, op: OpView) -> list[GradOp]:
        return ArgSort.make_grad(op)
