"""Arrays repeated, broadcast or turned round: tile, expand_v2, roll, flip."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from paddlelike.framework.opdef import Array, Int, Ints, Longs
from paddlelike.ops.later import register_kernel
from paddlelike.ops.operands import read_numbers


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
