"""Operators that sort, count, or read and write at places that another array names."""

from __future__ import annotations

from typing import Any

import numpy as np

from paddlelike.core.dtypes import AttrType, VarType, numpy_dtype
from paddlelike.framework.opdef import Array, Attr, Attrs, Bool, Float, Int, Ints, Long, Longs, String
from paddlelike.ops.operands import read_numbers
from paddlelike.ops.paddle2.registration import INTEGERS, register_kernel


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


class ArgAttrs(Attrs):
    """Attributes of the later arg_max and arg_min."""

    axis: int = Long(-1)
    keepdims: bool = Bool(False)
    flatten: bool = Bool(False)
    dtype: int = Int(3)


def _make_arg(function: Any) -> Any:
    def find(x: Array, tensor: Array | None, *, attrs: ArgAttrs) -> Array:
        axis = attrs.axis if tensor is None else int(tensor.item())
        axes = None if attrs.flatten or not x.ndim else axis
        places = np.asarray(function(x, axes, keepdims=attrs.keepdims))
        return places.astype(INTEGERS.get(attrs.dtype, INTEGERS[3]))

    return find


register_kernel("arg_max", "X Axis? -> Out", ArgAttrs.table(), changed=True)(_make_arg(np.argmax))
register_kernel("arg_min", "X Axis? -> Out", ArgAttrs.table(), changed=True)(_make_arg(np.argmin))


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


@register_kernel("gather", "X Index Axis? -> Out", {"axis": Int(0)}, changed=True)
def _gather(x: Array, index: Array, tensor: Array | None, *, axis: int) -> Array:
    """The slices of X along an axis that an index names."""
    at = axis if tensor is None else int(tensor.item())
    return x.take(index.reshape(-1) if index.ndim else index, at)


@register_kernel("take_along_axis", "Input Index -> Result", {"Axis": Int(0)})
def _take_along_axis(x: Array, index: Array, *, Axis: int) -> Array:  # noqa: N803
    """The elements along an axis that an index names for each place."""
    return np.take_along_axis(x, index, Axis)


class PutAttrs(Attrs):
    """Attributes of put_along_axis."""

    Axis: int = Int(0)
    Reduce: str = String("assign")
    Include_self: bool = Bool(True)


_UPDATES: Any = {"add": np.add, "sum": np.add, "mul": np.multiply, "multiply": np.multiply}


@register_kernel("put_along_axis", "Input Index Value -> Result", PutAttrs.table())
def _put_along_axis(x: Array, index: Array, value: Array, *, attrs: PutAttrs) -> Array:
    """Input with values written, added or multiplied at the places that an index names."""
    out = x.copy()
    if attrs.Reduce == "assign":
        np.put_along_axis(out, index, value, attrs.Axis)
        return out
    grid = list(np.ogrid[tuple(slice(n) for n in index.shape)])
    grid[attrs.Axis] = index
    _UPDATES[attrs.Reduce].at(out, tuple(grid), value)
    return out


@register_kernel("index_add", "X Index AddValue -> Out", {"axis": Int(0)})
def _index_add(x: Array, index: Array, value: Array, *, axis: int) -> Array:
    """X with slices added at an index."""
    out = x.copy()
    np.add.at(np.moveaxis(out, axis, 0), index, np.moveaxis(value, axis, 0))
    return out


class SetValueAttrs(Attrs):
    """Attributes of set_value; before 2.5 the values are in a list of their own dtype."""

    axes: list[int] = Longs([])
    starts: list[int] = Longs([])
    ends: list[int] = Longs([])
    steps: list[int] = Longs([])
    decrease_axes: list[int] = Longs([])
    none_axes: list[int] = Longs([])
    shape: list[int] = Longs([])
    dtype: int = Int(5)
    values: list[Any] = Attr(AttrType.SCALARS, ())  # type: ignore[assignment]
    bool_values: list[int] = Ints([])
    fp32_values: list[float] = Attr(AttrType.FLOATS, [])  # type: ignore[assignment]
    fp64_values: list[float] = Attr(AttrType.FLOAT64S, [])  # type: ignore[assignment]
    int32_values: list[int] = Ints([])
    int64_values: list[int] = Longs([])

    def make_value(self) -> Array:
        """Return the value to write."""
        numbers: Any = [_read_scalar(scalar) for scalar in self.values]
        numbers = numbers or next(
            (
                given
                for kind in ("bool", "fp32", "fp64", "int32", "int64")
                if (given := getattr(self, f"{kind}_values"))
            ),
            [],
        )
        return np.array(numbers, numpy_dtype(VarType(self.dtype))).reshape(self.shape)


def _read_scalar(message: Any) -> Any:
    """Return the number in a Scalar message."""
    field = {1: "b", 2: "i", 3: "r"}.get(message.type)
    return complex(message.c.r, message.c.i) if field is None else getattr(message, field)


@register_kernel(
    "set_value",
    "Input ValueTensor? StartsTensorList*? EndsTensorList*? StepsTensorList*? -> Out",
    SetValueAttrs.table(),
)
def _set_value(
    x: Array, tensor: Array | None, starts: Any, ends: Any, steps: Any, *, attrs: SetValueAttrs
) -> Array:
    """Input with a value written into a part of it."""
    out = x.copy()
    box = [slice(None)] * x.ndim
    first, last = read_numbers(attrs.starts, None, starts), read_numbers(attrs.ends, None, ends)
    for axis, start, end, step in zip(
        attrs.axes, first, last, read_numbers(attrs.steps, None, steps), strict=True
    ):
        box[axis] = slice(start, None if step < 0 and end < -x.shape[axis] else end, step)
    index: list[Any] = [box[a].start if a in attrs.decrease_axes else box[a] for a in range(x.ndim)]
    for axis in attrs.none_axes:
        index.insert(axis, None)
    out[tuple(index)] = attrs.make_value() if tensor is None else tensor
    return out


@register_kernel("nms", "Boxes -> KeepBoxesIdxs", {"iou_threshold": Float(1.0)})
def _nms(boxes: Array, *, iou_threshold: float) -> Array:
    """The boxes (x1, y1, x2, y2), best first, that do not overlap a better one by more than the threshold."""
    areas = np.prod(boxes[:, 2:] - boxes[:, :2], axis=1)
    kept: list[int] = []
    for index, box in enumerate(boxes):
        low = np.maximum(box[:2], boxes[kept, :2])
        high = np.minimum(box[2:], boxes[kept, 2:])
        common = np.prod(np.maximum(high - low, 0), axis=1)
        if not (common > iou_threshold * (areas[index] + areas[kept] - common)).any():
            kept.append(index)
    return np.array(kept, np.int64)


@register_kernel(
    "viterbi_decode", "Input Transition Length -> Scores Path", {"include_bos_eos_tag": Bool(True)}
)
def _viterbi(
    x: Array, transition: Array, lengths: Array, *, include_bos_eos_tag: bool
) -> tuple[Array, Array]:
    """The best sequences of tags (N, T) for scores (N, T, tags), and their scores.

    With ``include_bos_eos_tag`` the last tag but one is the start and the last tag the end of a sequence.
    """
    longest = int(lengths.max())
    path = np.zeros((len(x), longest), np.int64)
    best = np.zeros(len(x), x.dtype)
    for row, (steps, length) in enumerate(zip(x, lengths.reshape(-1), strict=True)):
        score = steps[0] + (transition[-1] if include_bos_eos_tag else 0)
        before = []
        for step in steps[1:length]:
            total = score[:, None] + transition
            before.append(total.argmax(0))
            score = total.max(0) + step
        score = score + (transition[:, -2] if include_bos_eos_tag else 0)
        tag = int(score.argmax())
        best[row] = score[tag]
        for t in range(length - 1, -1, -1):
            path[row, t] = tag
            tag = int(before[t - 1][tag]) if t else tag
    return best, path
