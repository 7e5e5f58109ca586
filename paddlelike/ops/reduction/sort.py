"""Elements by their order: top_k_v2, kthvalue, mode, searchsorted."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from paddlelike.framework.opdef import Array, Attrs, Bool, Int, Ints, String
from paddlelike.ops.later import register_kernel
from paddlelike.ops.operands import read_numbers


class TopAttrs(Attrs):
    """Attributes of top_k_v2."""

    k: int = Int(1)
    axis: int = Int(-1)
    largest: bool = Bool(True)


@register_kernel("top_k_v2", "X K? -> Out Indices", TopAttrs.table(sorted=Bool(True)))
def _top_k(x: Array, tensor: Array | None, *, attrs: TopAttrs) -> tuple[Array, Array]:
    """The k largest (or smallest) elements along an axis in order, and their places."""
    if not x.ndim:
        return x.copy(), np.zeros((), np.int64)
    (k,) = read_numbers([attrs.k], tensor, None)
    places = _sort(x, attrs.axis, falling=attrs.largest).take(range(k), attrs.axis)
    return np.take_along_axis(x, places, attrs.axis), places


def _sort(x: Array, axis: int, *, falling: bool) -> Array:
    """Return the places that sort X, equal elements in their order."""
    if not falling:
        return x.argsort(axis, kind="stable")
    backwards = np.flip(x, axis).argsort(axis, kind="stable")
    return x.shape[axis] - 1 - np.flip(backwards, axis)


@register_kernel("kthvalue", "X -> Out Indices", {"k": Int(1), "axis": Int(-1), "keepdim": Bool(False)})
def _kthvalue(x: Array, *, k: int, axis: int, keepdim: bool) -> tuple[Array, Array]:
    """The k-th smallest element along an axis, and its place."""
    places = _sort(x, axis, falling=False).take([k - 1], axis)
    return _take(x, places, axis, keepdim)


@register_kernel("mode", "X -> Out Indices", {"axis": Int(-1), "keepdim": Bool(False)})
def _mode(x: Array, *, axis: int, keepdim: bool) -> tuple[Array, Array]:
    """The most frequent element along an axis, the smallest of several, and the place of its last."""
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
    """The place of each value in a sorted row."""
    side: Any = "right" if right else "left"
    if rows.ndim == 1:
        out = np.searchsorted(rows, values, side)
    else:
        pairs = zip(rows.reshape(-1, rows.shape[-1]), values.reshape(-1, values.shape[-1]), strict=True)
        out = np.stack([np.searchsorted(row, value, side) for row, value in pairs]).reshape(values.shape)
    return np.asarray(out, np.int32 if out_int32 else np.int64)


class MedianAttrs(Attrs):
    """Attributes of median and nanmedian; ``mode``: the mean of the two in the middle, or the lesser."""

    axis: list[int] = Ints([])
    keepdim: bool = Bool(False)
    mode: str = String("avg")


def _make_median(is_skipping: bool) -> Callable[..., tuple[Array, None]]:
    def median(x: Array, *, attrs: MedianAttrs) -> tuple[Array, None]:
        """The element in the middle along dims; nanmedian leaves NaN out."""
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
        return (out.reshape(kept) if attrs.keepdim else out), None

    return median


register_kernel("median", "X -> Out MedianIndex?", MedianAttrs.table())(_make_median(False))
register_kernel("nanmedian", "X -> Out MedianIndex?", MedianAttrs.table())(_make_median(True))
