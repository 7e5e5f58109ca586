"""Images whose channels lie last in memory, although their shape says that they come first.

Kernels of convolutions, pools and normalisations are fastest where the channels of a pixel lie together. What
they return therefore has the shape ``(N, C, H, W)`` that Paddle gives it, and is a view of memory in the
order ``(N, H, W, C)``. Functions of each element keep the order of memory of what they are given, as numpy
does, so that a network of images stays in it from the first convolution to the last; operators that want rows
in C order get them by numpy's ``reshape``, which copies where it must. Fetched arrays are in C order.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from paddlelike.framework.opdef import Array

# A cache puts addresses that are a multiple of 4096 bytes apart into one set of a few lines. Where channels
# of a pixel fall into few sets, as those of images of 32 x 32 or 64 x 64, only a few are moved at a time.
_LINE: Final = 64  # bytes
_SETS: Final = 64  # of a cache of the first level


def is_last_in_memory(x: Array) -> bool:
    """Return whether an array ``(N, C, *spatial)`` is a view of contiguous ``(N, *spatial, C)``.

    >>> is_last_in_memory(np.moveaxis(np.zeros((2, 4, 4, 3)), -1, 1))
    True
    >>> is_last_in_memory(np.zeros((2, 3, 4, 4)))
    False
    """
    return x.ndim > 2 and x.strides[1] == x.itemsize and np.moveaxis(x, 1, -1).flags.c_contiguous


def as_channels_last(x: Array) -> Array:
    """Return contiguous ``(N, *spatial, C)`` of an array ``(N, C, *spatial)``, a view if possible."""
    last = np.moveaxis(x, 1, -1)
    if x.ndim < 3 or not x.flags.c_contiguous or last.flags.c_contiguous:
        return np.ascontiguousarray(last)
    sets = _SETS // math.gcd(_SETS, x.strides[1] // _LINE) if x.strides[1] % _LINE == 0 else _SETS
    step = max(8, 4 * sets)
    if sets > 4 or x.shape[1] <= step:
        return np.ascontiguousarray(last)
    out = np.empty(last.shape, x.dtype)
    for start in range(0, x.shape[1], step):
        out[..., start : start + step] = last[..., start : start + step]
    return out


def view_channels_first(x: Array) -> Array:
    """Return the view ``(N, C, *spatial)`` of an array ``(N, *spatial, C)``."""
    return np.moveaxis(x, -1, 1)


def empty_as(like: Array, shape: Sequence[int], dtype: Any = None) -> Array:
    """Return a new array ``(N, C, *spatial)`` of this shape in the order of memory of ``like``."""
    dtype = like.dtype if dtype is None else dtype
    if not is_last_in_memory(like):
        return np.empty(shape, dtype)
    return view_channels_first(np.empty((shape[0], *shape[2:], shape[1]), dtype))


def full_as(like: Array, shape: Sequence[int], value: float, dtype: Any = None) -> Array:
    """Return :func:`empty_as` filled with one value."""
    out = empty_as(like, shape, dtype)
    out.fill(value)
    return out


def as_layout_of(like: Array, x: Array) -> Array:
    """Return ``x`` in the order of memory of ``like``, a copy unless it has that order already."""
    if is_last_in_memory(like):
        return x if is_last_in_memory(x) else view_channels_first(as_channels_last(x))
    return x if x.flags.c_contiguous or not like.flags.c_contiguous else np.ascontiguousarray(x)
