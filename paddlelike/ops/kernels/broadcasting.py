"""Paddle's way of broadcasting one tensor over another, and the sums that undo it in gradients.

The tensor with fewer dims is laid over the other so that its first dim meets the dim ``axis`` of the
other (-1: so that the last dims meet); dims must be equal or 1.

    X (2, 3, 4, 5), Y (5,)             Y for each last dim, as numpy does
    X (2, 3, 4, 5), Y (3, 4), axis=1   Y's dims are the middle ones of X
    X (2, 3, 4, 5), Y (3, 1, 1)        the same as Y (3,), axis=1
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from paddlelike.errors import ShapeError
from paddlelike.framework.opdef import Array
from paddlelike.ops.kernels.nn.image.layouts import apply_by_channel, is_last_in_memory, sum_by_channel

Shape = tuple[int, ...]
_SMALL: Final = 4096  # elements; ones up to this size are kept


def broadcast_shape(op: str, x: Shape, y: Shape, axis: int) -> Shape:
    """Return the shape of the result, with -1 for unknown dims. Raises ShapeError when X and Y do not fit."""
    if x == y:
        return x
    rank = max(len(x), len(y))
    try:
        if not -1 <= axis <= rank:
            raise ValueError(f"axis must be -1 or one of 0 .. {rank}")
        a, b = pad_dims(x, rank, axis), pad_dims(y, rank, axis)
        return tuple(_combine_dims(*dims) for dims in zip(a, b, strict=True))
    except ValueError as error:
        raise ShapeError(
            f"{op}: X has shape {x}, Y {y}, axis {axis}: {error}",
            hint="the shorter shape begins at dim `axis` of the longer one, -1 aligns their ends; "
            "dims that meet must be equal, or one of them 1",
        ) from None


def pad_dims(dims: Shape, rank: int, axis: int) -> Shape:
    """Return ``dims`` laid over ``rank`` dims from ``axis`` on, with dims of 1 around them."""
    if len(dims) == rank:
        return dims
    start = rank - len(dims) if axis == -1 else axis
    spare = rank - start - len(dims)
    if spare < 0:
        raise ValueError(f"{len(dims)} dims do not fit after dim {axis} of {rank}")
    return (1,) * start + dims + (1,) * spare


def _combine_dims(a: int, b: int) -> int:
    if a != b and a > 1 and b > 1:
        raise ValueError(f"dim {a} does not match dim {b}")
    if a > 1 or b > 1 or a == b == 1:
        return max(a, b)
    return max(min(a, b), -1)  # a dim of 0, or one that is not known


def align(x: Array, y: Array, axis: int) -> tuple[Array, Array]:
    """Return X and Y as views for which numpy broadcasts as Paddle does."""
    if axis in (-1, x.ndim - y.ndim) or x.ndim == y.ndim:
        return x, y
    if x.ndim > y.ndim:
        return x, y.reshape(pad_dims(y.shape, x.ndim, axis))
    return x.reshape(pad_dims(x.shape, y.ndim, axis)), y


def apply(function: Callable[[Array, Array], Array], x: Array, y: Array, axis: int) -> Array:
    """Apply a function to X and Y, element by element, and return the result."""
    if x.shape == y.shape:
        return function(x, y)
    a, b = align(x, y, axis)
    if isinstance(function, np.ufunc) and is_last_in_memory(x):
        channels = x.shape[1]
        if y.size == channels and b.shape[1 - x.ndim :] == (channels, *(1,) * (x.ndim - 2)):
            return apply_by_channel(function, x, y.reshape(-1))
    return function(a, b)


def sum_to(shape: Shape, gradient: Array, axis: int) -> Array:
    """Return the gradient of a tensor of ``shape`` that was broadcast to the shape of ``gradient``.

    Sums over rows and columns are products with ones. BLAS adds faster and more exactly than a plain
    reduction: the rows of 20000 x 30 take 55 instead of 440 us, with an error of 2e-4 instead of 1.2e-3.
    """
    if shape == gradient.shape:
        return gradient
    if gradient.ndim == 2 and shape == gradient.shape[1:] and axis != 0:  # a bias
        return sum_rows(gradient)
    dims = pad_dims(shape, gradient.ndim, axis)
    if dims[1:2] == gradient.shape[1:2] != () and math.prod(dims) == dims[1] and is_last_in_memory(gradient):
        return sum_by_channel(gradient).reshape(shape)
    kept = [i for i, dim in enumerate(dims) if dim != 1]
    first, last = (kept[0], kept[-1] + 1) if kept else (0, 0)
    if not kept or dims[first:last] != gradient.shape[first:last]:
        over = tuple(i for i, dim in enumerate(dims) if dim != gradient.shape[i])
        if kept and len(over) == over[-1] - over[0] + 1 and _is_for_blas(gradient):
            return _sum_inner(gradient, over[0], over[-1] + 1).reshape(shape)
        return np.add.reduce(gradient, axis=over).reshape(shape)
    before = math.prod(gradient.shape[:first])
    size = math.prod(dims)
    total = gradient.reshape(before * size, math.prod(gradient.shape[last:]))
    total = total[:, 0] if total.shape[1] == 1 else total @ make_ones(total.shape[1], total)
    if before != 1:
        total = make_ones(before, total) @ total.reshape(before, size)
    return total.reshape(shape)


def sum_rows(matrix: Array) -> Array:
    """Return the sums of the columns of a matrix."""
    ones = make_ones(len(matrix), matrix)
    return ones.dot(matrix) if type(matrix) is np.ndarray else ones @ matrix


def _is_for_blas(x: Array) -> bool:
    """Return whether BLAS can read an array without a copy; False for arrays of JAX."""
    return isinstance(x, np.ndarray) and x.dtype in (np.float32, np.float64) and x.flags.c_contiguous


def _sum_inner(x: Array, first: int, end: int) -> Array:
    """Return the sums over the dims from ``first`` up to ``end``, with dims after them, by BLAS.

    A plain reduction takes up to ten times as long when the dims after them are
    small: for (64, 26, 16) it takes 39 us instead of 4.
    """
    parts = x.reshape(math.prod(x.shape[:first]), math.prod(x.shape[first:end]), math.prod(x.shape[end:]))
    return np.matmul(make_ones(parts.shape[1], x)[None], parts)


def make_ones(count: int, like: Array) -> Array:
    """Return an array of ones in the dtype of ``like``. It is shared and read-only."""
    return _keep_ones(count, like.dtype) if count <= _SMALL else np.ones(count, like.dtype)


@functools.lru_cache(maxsize=64)
def _keep_ones(count: int, dtype: np.dtype[Any]) -> Array:
    ones = np.ones(count, dtype)
    ones.flags.writeable = False
    return ones
