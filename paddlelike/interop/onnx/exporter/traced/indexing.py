"""``gather`` and ``scatter`` of JAX, with an index for each element."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
from jax.lax import GatherScatterMode

from paddlelike.interop.onnx.exporter.graph import Value
from paddlelike.interop.onnx.exporter.traced.shapes import count_up
from paddlelike.interop.onnx.exporter.traced.translation import Equation, translates

_SCATTERS: Final = {
    "scatter": "none", "scatter-add": "add", "scatter_add": "add", "scatter-max": "max", "scatter_max": "max",
    "scatter-min": "min", "scatter_min": "min", "scatter_mul": "mul",
}  # fmt: skip


@translates("gather")
def _translate_gather(e: Equation) -> Value:
    numbers, sizes = e.params["dimension_numbers"], e.params["slice_sizes"]
    x, starts = e.inputs
    offsets = numbers.offset_dims
    gone = (*numbers.collapsed_slice_dims, *numbers.operand_batching_dims)
    inner = [axis for axis in range(len(e.shapes[0])) if axis not in gone]
    places, outside = _find_places(
        e, starts, e.shape, offsets, inner, sizes,
        numbers.start_index_map, numbers.operand_batching_dims, numbers.start_indices_batching_dims,
    )  # fmt: skip
    out = e.add("GatherND", x, _stack(e, places, e.shape))
    if outside is None:
        return out
    fill = e.params["fill_value"]
    if fill is None:
        kind = e.dtypes[0].kind
        fill = np.nan if kind == "f" else np.iinfo(e.dtypes[0]).min if kind == "i" else e.dtypes[0].type(1)
    return e.choose(outside, e.like(fill), out)


@translates(*_SCATTERS)
def _translate_scatter(e: Equation) -> Value:
    numbers = e.params["dimension_numbers"]
    x, starts, updates = e.inputs
    shape = e.shapes[2]
    gone = (*numbers.inserted_window_dims, *numbers.operand_batching_dims)
    inner = [axis for axis in range(len(e.shapes[0])) if axis not in gone]
    sizes: list[Any] = [1] * len(e.shapes[0])
    for axis, window in zip(inner, numbers.update_window_dims, strict=True):
        sizes[axis] = shape[window]
    places, outside = _find_places(
        e, starts, shape, numbers.update_window_dims, inner, sizes,
        numbers.scatter_dims_to_operand_dims, numbers.operand_batching_dims,
        numbers.scatter_indices_batching_dims,
    )  # fmt: skip
    kind = _SCATTERS[e.name]
    if outside is not None:
        if kind == "add":
            updates = outside.where(e.like(0), updates)
        elif kind == "mul":
            updates = outside.where(e.like(1), updates)
        else:  # other indices are moved past the end, then cut off
            ends = [0] * len(sizes)
            x = e.add("Pad", x, e.step.ints(*ends, 1, *ends[1:]), e.like(0))
            places[0] = outside.where(e.row(e.shapes[0][:1]), places[0])
    attrs = {} if kind == "none" else {"reduction": kind}
    if kind in ("max", "min") and e.step.graph.opset < 18:
        e.step.refuse("the maximum or minimum of several elements at one index needs opset 18")
    out = e.add("ScatterND", x, _stack(e, places, shape), updates, **attrs)
    if outside is None or kind in ("add", "mul"):
        return out
    return e.add("Slice", out, e.step.ints(0), e.row(e.shapes[0][:1]), e.step.ints(0))


def _find_places(
    e: Equation,
    starts: Value,
    shape: Sequence[Any],
    windows: Sequence[int],
    inner: Sequence[int],
    sizes: Sequence[Any],
    mapped: Sequence[int],
    batching: Sequence[int],
    index_batching: Sequence[int],
) -> tuple[list[Value], Value | None]:
    """Return, for each axis of the operand, the index of every element and a mask of indexes outside.

    ``shape`` is the shape of the elements. Its axes ``windows`` run along the operand's axes ``inner``, in
    the same order; its other axes belong to the indices. The mask is None when no index can be outside.
    """
    rank, dims = len(shape), e.shapes[0]
    batch = [axis for axis in range(rank) if axis not in windows]
    indices = e.cast(starts, np.int64)
    spread = [1] * rank
    for axis, dim in zip(batch, e.shapes[1][:-1], strict=True):
        spread[axis] = dim
    places: list[Value] = []
    outside: Value | None = None
    for axis, dim in enumerate(dims):
        parts = []
        if axis in mapped:
            one = indices.take(e.step.constant(list(mapped).index(axis), np.int64), -1)
            one = e.reshape(one, spread)
            most = e.row([dim - sizes[axis]])
            if e.params["mode"] == GatherScatterMode.FILL_OR_DROP:
                wrong = (one < 0) | (one > most)
                outside = wrong if outside is None else outside | wrong
            parts.append(one.minimum(most).maximum(0))
        if axis in batching:
            where = batch[index_batching[list(batching).index(axis)]]
            parts.append(count_up(e, dim, rank, where))
        if axis in inner:
            window = windows[list(inner).index(axis)]
            if sizes[axis] != 1:
                parts.append(count_up(e, sizes[axis], rank, window))
        place = parts[0] if parts else e.step.constant(np.zeros([1] * rank), np.int64)
        for part in parts[1:]:
            place = place + part
        places.append(place)
    return places, outside


def _stack(e: Equation, places: Sequence[Value], shape: Sequence[Any]) -> Value:
    whole = [e.add("Expand", place, e.row(shape)).unsqueeze(len(shape)) for place in places]
    return e.add("Concat", *whole, axis=-1)
