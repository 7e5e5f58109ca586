"""Operators that repeat, reorder, reshape or make arrays."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from paddlelike.framework.opdef import Array, Attrs, Float, Int, Ints, Longs, String
from paddlelike.ops.kernels.images.windows import to_channels_first, to_format
from paddlelike.ops.operands import read_numbers
from paddlelike.ops.paddle2.registration import INTEGERS, register_kernel
from paddlelike.ops.tensor.slice import StridedSliceAttrs


@register_kernel("expand_v2", "X Shape? expand_shapes_tensor*? -> Out", {"shape": Ints([])})
def _expand(x: Array, tensor: Array | None, tensors: list[Array], *, shape: list[int]) -> Array:
    """X broadcast to a shape; -1 keeps a dim."""
    return _broadcast(x, read_numbers(shape, tensor, tensors))


@register_kernel("expand_as_v2", "X Y? -> Out", {"target_shape": Ints([])})
def _expand_as(x: Array, y: Array | None, *, target_shape: list[int]) -> Array:
    """X broadcast to the shape of Y."""
    return _broadcast(x, target_shape or ([] if y is None else y.shape))


def _broadcast(x: Array, wanted: Sequence[int]) -> Array:
    dims = (1,) * (len(wanted) - x.ndim) + x.shape
    return np.broadcast_to(x, [d if n < 0 else n for d, n in zip(dims, wanted, strict=True)]).copy()


@register_kernel("tile", "X RepeatTimes? repeat_times_tensor*? -> Out", {"repeat_times": Ints([])})
def _tile(x: Array, tensor: Array | None, tensors: list[Array], *, repeat_times: list[int]) -> Array:
    """X repeated along each dim."""
    return np.tile(x, read_numbers(repeat_times, tensor, tensors))


@register_kernel("broadcast_tensors", "X* -> Out*")
def _broadcast_tensors(arrays: list[Array]) -> list[Array]:
    """Every array in the shape of all together."""
    return [np.copy(array) for array in np.broadcast_arrays(*arrays)]


@register_kernel(
    "flatten_contiguous_range", "X -> Out XShape?", {"start_axis": Int(1), "stop_axis": Int(1)}, views=True
)
def _flatten(x: Array, *, start_axis: int, stop_axis: int) -> tuple[Array, None]:
    """X with a range of dims joined into one."""
    if not x.ndim:
        return x.reshape(1), None
    start, stop = start_axis % x.ndim, stop_axis % x.ndim + 1
    return x.reshape(*x.shape[:start], math.prod(x.shape[start:stop]), *x.shape[stop:]), None


@register_kernel("flip", "X -> Out", {"axis": Ints([])}, changed=True, views=True)
def _flip(x: Array, *, axis: list[int]) -> Array:
    """X with the order along some dims reversed."""
    return np.flip(x, tuple(axis))


@register_kernel("roll", "X ShiftsTensor? -> Out", {"shifts": Longs([]), "axis": Longs([])}, changed=True)
def _roll(x: Array, tensor: Array | None, *, shifts: list[int], axis: list[int]) -> Array:
    """X moved along some dims, the end to the front; without dims as one row."""
    steps = read_numbers(shifts, tensor, None)
    return np.roll(x, steps, tuple(axis)) if axis else np.roll(x, steps[0])


@register_kernel("repeat_interleave", "X RepeatsTensor? -> Out", {"Repeats": Int(1), "dim": Int(0)})
def _repeat_interleave(x: Array, tensor: Array | None, *, Repeats: int, dim: int) -> Array:  # noqa: N803
    """X with every element along a dim repeated."""
    return np.repeat(x, Repeats if tensor is None else tensor, dim)


@register_kernel("diag_v2", "X -> Out", {"offset": Int(0), "padding_value": Float(0.0)})
def _diag(x: Array, *, offset: int, padding_value: float) -> Array:
    """The diagonal of a matrix, or a matrix with X as its diagonal."""
    if x.ndim > 1:
        return np.diagonal(x, offset).copy()
    out = np.diag(x, offset)
    return out if not padding_value else np.where(np.diag(np.ones(len(x), bool), offset), out, padding_value)


@register_kernel("diagonal", "Input -> Out", {"offset": Int(0), "axis1": Int(0), "axis2": Int(1)})
def _diagonal(x: Array, *, offset: int, axis1: int, axis2: int) -> Array:
    """A diagonal of two dims, as the last dim."""
    return np.diagonal(x, offset, axis1, axis2).copy()


class TriangleAttrs(Attrs):
    """Attributes of the places of a triangle."""

    rows: int = Int(0)
    cols: int = Int(0)
    row: int = Int(0)  # of triu_indices
    col: int = Int(0)
    offset: int = Int(0)
    dtype: int = Int(3)


@register_kernel("tril_indices", " -> out", TriangleAttrs.table())
def _tril_indices(*, attrs: TriangleAttrs) -> Array:
    """The rows and columns of the lower triangle of a matrix."""
    return np.stack(np.tril_indices(attrs.rows, attrs.offset, attrs.cols)).astype(INTEGERS[attrs.dtype])


@register_kernel("triu_indices", " -> out", TriangleAttrs.table())
def _triu_indices(*, attrs: TriangleAttrs) -> Array:
    """The rows and columns of the upper triangle of a matrix."""
    return np.stack(np.triu_indices(attrs.row, attrs.offset, attrs.col)).astype(INTEGERS[attrs.dtype])


@register_kernel(
    "strided_slice",
    "Input StartsTensor? EndsTensor? StridesTensor? StartsTensorList*? EndsTensorList*? StridesTensorList*? "
    "-> Out",
    StridedSliceAttrs.table(),
    changed=True,
    views=True,
)
def _strided_slice(
    x: Array,
    start: Any,
    end: Any,
    stride: Any,
    starts: Any,
    ends: Any,
    strides: Any,
    *,
    attrs: StridedSliceAttrs,
) -> Array:
    """X from start to end in steps, along some dims; bounds outside of X are moved to its ends."""
    first = read_numbers(attrs.starts, start, starts)
    last = read_numbers(attrs.ends, end, ends)
    steps = read_numbers(attrs.strides, stride, strides)
    box = [slice(None)] * x.ndim
    for axis, begin, stop, step in zip(attrs.axes, first, last, steps, strict=True):
        size = x.shape[axis]
        below = step < 0 and stop < 0 and (stop < -size or (stop == -1 and begin >= size))
        box[axis] = slice(begin, None if below else stop, step)
    out = x[tuple(box)]
    kept = tuple(dim for axis, dim in enumerate(out.shape) if axis not in attrs.decrease_axis)
    return out.reshape(kept)


@register_kernel("pixel_unshuffle", "X -> Out", {"downscale_factor": Int(1), "data_format": String("NCHW")})
def _pixel_unshuffle(x: Array, *, downscale_factor: int, data_format: str) -> Array:
    """Squares of pixels as channels."""
    x, r = to_channels_first(x, data_format), downscale_factor
    n, c, h, w = x.shape
    parts = x.reshape(n, c, h // r, r, w // r, r).transpose(0, 1, 3, 5, 2, 4)
    return to_format(parts.reshape(n, c * r * r, h // r, w // r), data_format)


@register_kernel("channel_shuffle", "X -> Out", {"groups": Int(1), "data_format": String("NCHW")})
def _channel_shuffle(x: Array, *, groups: int, data_format: str) -> Array:
    """Channels taken from each group in turn."""
    x = to_channels_first(x, data_format)
    n, c, h, w = x.shape
    mixed = x.reshape(n, groups, c // groups, h, w).swapaxes(1, 2)
    return to_format(mixed.reshape(n, c, h, w), data_format)


@register_kernel("masked_select", "X Mask -> Y")
def _masked_select(x: Array, mask: Array) -> Array:
    """The elements where the mask is true, in one row."""
    x, mask = np.broadcast_arrays(x, mask)
    return x[mask]
