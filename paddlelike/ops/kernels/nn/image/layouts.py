"""Arithmetic with one number for each channel, on rows of channels ``(M, C)``.

Few channels make short inner loops, which cost numpy more than their arithmetic. So several rows are joined
to one of a few thousand elements, and the numbers of the channels are repeated to match.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Final

import numpy as np

from paddlelike.framework.opdef import Array

# Elements of a folded row: more than numpy's buffers hold (core/floats.py), few enough for a cache
# of the first level. Rows of half as many, or of twice as many, take a tenth to a third longer.
_WIDTH: Final = 2048


@lru_cache(maxsize=512)
def fold_rows(rows: int, channels: int) -> int:
    """Return how many rows of ``(M, C)`` to treat as one, a divisor of ``rows``.

    >>> fold_rows(32 * 1024, 16), fold_rows(7, 16), fold_rows(12, 2000)
    (128, 7, 1)
    """
    count = max(1, min(rows, _WIDTH // max(1, channels)))
    while rows % count:
        count -= 1
    return count


def tile(values: Array, times: int) -> Array:
    """Return the numbers of the channels ``(C,)``, repeated ``times`` times."""
    if times == 1:
        return values
    out = np.empty((times, len(values)), values.dtype)
    out[:] = values
    return out.reshape(-1)


def apply_by_channel(ufunc: np.ufunc, x: Array, values: Array, *, over: bool = False) -> Array:
    """Return ``ufunc(x, values)`` for images with channels last in memory, and values ``(C,)``.

    With ``over`` the result overwrites x.
    """
    rows = as_channels_last(x).reshape(-1, x.shape[1])
    fold = fold_rows(*rows.shape)
    rows = rows.reshape(-1, fold * len(values))
    folded: Array = ufunc(rows, tile(values, fold), out=rows if over else None)
    return view_channels_first(folded.reshape(len(x), *x.shape[2:], len(values)))


def sum_by_channel(x: Array) -> Array:
    """Return the sum of each channel ``(C,)`` for images with channels last in memory."""
    rows = as_channels_last(x).reshape(-1, x.shape[1])
    fold = fold_rows(*rows.shape)
    return sum_folded(rows.reshape(-1, fold * x.shape[1]), x.shape[1])


def sum_folded(folded: Array, channels: int) -> Array:
    """Return the sums by channel ``(C,)`` from folded rows ``(M / k, k C)``."""
    total: Array = np.add.reduce(folded, axis=0)
    return total if len(total) == channels else np.add.reduce(total.reshape(-1, channels), axis=0)


# A cache puts addresses that are a multiple of 4096 bytes apart into one set of a few lines. If the channels
# of a pixel fall into few sets, as in images of 32 x 32 or 64 x 64, only a few are moved at a time.
_LINE: Final = 64  # bytes
_SETS: Final = 64  # of a cache of the first level


def is_last_in_memory(x: Array) -> bool:
    """Return whether an array ``(N, C, *spatial)`` is a view of contiguous ``(N, *spatial, C)``.

    >>> is_last_in_memory(np.moveaxis(np.zeros((2, 4, 4, 3)), -1, 1))
    True
    >>> is_last_in_memory(np.zeros((2, 3, 4, 4)))
    False
    """
    return x.ndim > 2 and x.strides[1] == x.itemsize and _view_channels_last(x).flags.c_contiguous


def _view_channels_last(x: Array) -> Array:
    return x.transpose(0, *range(2, x.ndim), 1)  # takes a tenth of the time of np.moveaxis


def as_channels_last(x: Array) -> Array:
    """Return an array ``(N, C, *spatial)`` as contiguous ``(N, *spatial, C)``, a view if possible."""
    last = _view_channels_last(x)
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
    """Return an array ``(N, *spatial, C)`` as a view ``(N, C, *spatial)``."""
    return x.transpose(0, -1, *range(1, x.ndim - 1))


def empty_as(like: Array, shape: Sequence[int], dtype: Any = None) -> Array:
    """Return a new array ``(N, C, *spatial)`` in the memory order of ``like``."""
    dtype = like.dtype if dtype is None else dtype
    if not is_last_in_memory(like):
        return np.empty(shape, dtype)
    return view_channels_first(np.empty((shape[0], *shape[2:], shape[1]), dtype))


def full_as(like: Array, shape: Sequence[int], value: float, dtype: Any = None) -> Array:
    """Return a new array like :func:`empty_as`, filled with one value."""
    out = empty_as(like, shape, dtype)
    out.fill(value)
    return out


def as_layout_of(like: Array, x: Array) -> Array:
    """Return ``x`` in the memory order of ``like``, a copy unless it has that order already."""
    if is_last_in_memory(like):
        return x if is_last_in_memory(x) else view_channels_first(as_channels_last(x))
    return x if x.flags.c_contiguous or not like.flags.c_contiguous else np.ascontiguousarray(x)
