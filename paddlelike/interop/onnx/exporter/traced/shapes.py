"""Primitives that move elements, count, and reduce."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from paddlelike.interop.onnx.exporter.graph import Value
from paddlelike.interop.onnx.exporter.traced.sizes import Unknown
from paddlelike.interop.onnx.exporter.traced.translation import Equation, translates
from paddlelike.ops.reduction.reduce import REDUCTIONS

#: By primitive of JAX: the reduction that it is, and the one up to each element.
_REDUCTIONS: Final = REDUCTIONS | {
    "reduce_and": REDUCTIONS["reduce_all"],
    "reduce_or": REDUCTIONS["reduce_any"],
}
_CUMULATIONS: Final = {f"cum{type.removeprefix('reduce_')}": row for type, row in REDUCTIONS.items()}


@translates("broadcast_in_dim")
def _translate_broadcast(e: Equation) -> Value:
    dims: list[Any] = [1] * len(e.shape)
    for axis, dim in zip(e.params["broadcast_dimensions"], e.shapes[0], strict=True):
        dims[axis] = dim
    value = e.x if tuple(dims) == e.shapes[0] else e.reshape(e.x, dims)
    return value if tuple(dims) == e.shape else e.add("Expand", value, e.row(e.shape))


@translates("reshape", "squeeze", "expand_dims")
def _translate_reshape(e: Equation) -> Value:
    left = [dim for dim in e.shape if isinstance(dim, Unknown)]
    return e.reshape(
        e.x, [-1 if isinstance(dim, Unknown) else dim for dim in e.shape] if len(left) == 1 else e.shape
    )


@translates("transpose")
def _translate_transpose(e: Equation) -> Value:
    return e.x.transpose(e.params["permutation"])


@translates("concatenate")
def _translate_concatenate(e: Equation) -> Value:
    return e.add("Concat", *e.inputs, axis=e.params["dimension"])


@translates("stack")
def _translate_stack(e: Equation) -> Value:
    axis = e.params["axis"]
    return e.add("Concat", *(one.unsqueeze(axis) for one in e.inputs), axis=axis)


@translates("split")
def _translate_split(e: Equation) -> list[Value]:
    sizes = e.params["sizes"]
    return e.step.add_several("Split", e.x, e.row(sizes), count=len(sizes), axis=e.params["axis"])


@translates("rev")
def _translate_reverse(e: Equation) -> Value:
    axes = e.params["dimensions"]
    least = np.iinfo(np.int64).min
    return cut(e, e.x, [-1] * len(axes), [least] * len(axes), axes, [-1] * len(axes))


@translates("slice")
def _translate_slice(e: Equation) -> Value:
    starts, ends, strides = (e.params[name] for name in ("start_indices", "limit_indices", "strides"))
    return cut(e, e.x, starts, ends, range(len(starts)), strides or [1] * len(starts))


def cut(
    e: Equation,
    x: Value,
    starts: Sequence[Any],
    ends: Sequence[Any],
    axes: Sequence[int],
    steps: Sequence[int],
) -> Value:
    """Return a part of a value."""
    return e.add("Slice", x, e.row(starts), e.row(ends), e.step.ints(*axes), e.step.ints(*steps))


@translates("dynamic_slice")
def _translate_dynamic_slice(e: Equation) -> Value:
    x, *starts = e.inputs
    row, sizes = _place_within(e, starts, e.params["slice_sizes"]), e.row(e.params["slice_sizes"])
    return e.add("Slice", x, row, row + sizes, e.step.ints(*range(len(e.shape))))


def _place_within(e: Equation, starts: Sequence[Value], sizes: Sequence[Any]) -> Value:
    """Return the start of a part, clamped so that the whole part lies inside the value."""
    row = e.add("Concat", *(e.cast(one.reshape(1), np.int64) for one in starts), axis=0)
    most = e.row([dim - size for dim, size in zip(e.shapes[0], sizes, strict=True)])
    return row.minimum(most).maximum(0)


@translates("dynamic_update_slice")
def _translate_update_slice(e: Equation) -> Value:
    x, part, *starts = e.inputs
    row = _place_within(e, starts, e.shapes[1])
    ranges = [count_up(e, dim, len(e.shape), axis) for axis, dim in enumerate(e.shapes[1])]
    places = [e.add("Expand", one, e.row(e.shapes[1])) for one in ranges]
    stacked = e.add("Concat", *(one.unsqueeze(len(e.shape)) for one in places), axis=-1)
    return e.add("ScatterND", x, stacked + row, part)


def count_up(e: Equation, dim: Any, rank: int, axis: int) -> Value:
    """Return the int64 indexes 0, 1, ... of a dim, as an array of ``rank`` dims along one axis."""
    shape = [1] * rank
    if isinstance(dim, int):
        shape[axis] = dim
        return e.step.constant(np.arange(dim).reshape(shape), np.int64)
    end = e.translation.dim(dim).reshape()
    row = end.range()
    shape[axis] = -1
    return row.reshape(*shape)


@translates("iota")
def _translate_iota(e: Equation) -> Value:
    axis = e.params["dimension"]
    row = e.cast(count_up(e, e.shape[axis], len(e.shape), axis), e.dtype)
    return e.add("Expand", row, e.row(e.shape))


@translates("pad")
def _translate_pad(e: Equation) -> Value:
    x, value = e.inputs
    shape = list(e.shapes[0])
    for axis, (_, _, between) in enumerate(e.params["padding_config"]):
        if between:
            x, shape[axis] = (
                spread(e, x, shape, axis, between, value),
                shape[axis] + (shape[axis] - 1) * between,
            )
    low = [before for before, _, _ in e.params["padding_config"]]
    high = [after for _, after, _ in e.params["padding_config"]]
    if any(n < 0 for n in (*low, *high)):
        starts = [max(-n, 0) for n in low]
        ends = [dim - max(-n, 0) for dim, n in zip(shape, high, strict=True)]
        x = cut(e, x, starts, ends, range(len(low)), [1] * len(low))
    low, high = ([max(n, 0) for n in side] for side in (low, high))
    return e.add("Pad", x, e.step.ints(*low, *high), value) if any((*low, *high)) else x


def spread(e: Equation, x: Value, shape: Sequence[Any], axis: int, between: int, value: Value) -> Value:
    """Insert zeros between neighbouring elements along an axis."""
    wide = x.unsqueeze(axis + 1)
    after = [0] * (len(shape) + 1)
    padded = e.add("Pad", wide, e.step.ints(*after, *after[:axis], 0, between, *after[axis + 2 :]), value)
    whole = e.reshape(padded, [*shape[:axis], shape[axis] * (between + 1), *shape[axis + 1 :]])
    return cut(e, whole, [0], [shape[axis] * (between + 1) - between], [axis], [1])


@translates(*_REDUCTIONS)
def _translate_reduction(e: Equation) -> Value:
    axes = e.params["axes"]
    if not axes:
        return e.x
    logical = e.dtypes[0].kind == "b"
    x = e.cast(e.x, np.int32) if logical else e.x
    out = x.reduce(_REDUCTIONS[e.name].onnx, *axes)
    return e.cast(out, np.bool_) if logical else out


@translates("argmax", "argmin")
def _translate_place(e: Equation) -> Value:
    (axis,) = e.params["axes"]
    x = e.cast(e.x, np.int32) if e.dtypes[0].kind == "b" else e.x
    out = e.add("ArgMax" if e.name == "argmax" else "ArgMin", x, axis=axis, keepdims=0)
    return e.cast(out, e.dtype)


@translates("cumsum")
def _translate_cumsum(e: Equation) -> Value:
    axis = e.step.constant(e.params["axis"], np.int64)
    return e.add("CumSum", e.x, axis, reverse=int(e.params["reverse"]))


@translates("cumlogsumexp", "cummax", "cummin", "cumprod")
def _translate_cumulation(e: Equation) -> Value:
    row, axis, rank = _CUMULATIONS[e.name], e.params["axis"], len(e.shape)
    outer, inner = (count_up(e, e.shape[axis], rank + 1, axis + each) for each in (0, 1))
    sides = (outer, inner) if not e.params["reverse"] else (inner, outer)
    before = sides[1] <= sides[0]
    rows = before.where(e.x.unsqueeze(axis), e.like(row.get_neutral(e.dtype)))
    return rows.reduce(row.onnx, axis + 1)


@translates("sort")
def _translate_sort(e: Equation) -> list[Value]:
    if e.params["num_keys"] != 1:
        e.step.refuse("it sorts by several keys")
    axis = e.params["dimension"]
    count = e.row([e.shapes[0][axis]])
    first, places = e.step.add_several("TopK", e.x, count, count=2, axis=axis, largest=0)
    return [first, *(e.add("GatherElements", one, places, axis=axis) for one in e.inputs[1:])]


@translates("top_k")
def _translate_top_k(e: Equation) -> list[Value]:
    axis = e.params.get("axis", -1)
    values, places = e.step.add_several("TopK", e.x, e.row([e.params["k"]]), count=2, axis=axis)
    return [values, e.cast(places, np.int32)]
