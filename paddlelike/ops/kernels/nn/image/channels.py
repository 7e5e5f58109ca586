"""Arithmetic with one number for each channel, on rows of channels ``(M, C)``.

Few channels make short inner loops, which cost numpy more than their arithmetic. Several rows are taken as
one of a few thousand elements instead, and the numbers of the channels are repeated as often.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from paddlelike.framework.opdef import Array
from paddlelike.ops.kernels.nn.image.layouts import as_channels_last, view_channels_first

# Elements of a folded row: more than numpy's buffers hold (core/floats.py), few enough for a cache
# of the first level. Rows of half as many, or of twice as many, take a tenth to a third longer.
_WIDTH: Final = 2048


def fold_rows(rows: int, channels: int) -> int:
    """Return how many rows ``(M, C)`` to take as one: a divisor of ``rows``.

    >>> fold_rows(32 * 1024, 16), fold_rows(7, 16), fold_rows(12, 2000)
    (128, 7, 1)
    """
    count = max(1, min(rows, _WIDTH // max(1, channels)))
    while rows % count:
        count -= 1
    return count


def tile(values: Array, times: int) -> Array:
    """Return the numbers of the channels ``(C,)``, ``times`` times one after the other."""
    return values if times == 1 else np.tile(values, times)


def apply_by_channel(ufunc: np.ufunc, x: Array, values: Array, *, over: bool = False) -> Array:
    """Return ``ufunc(x, values)`` of images with their channels last in memory and ``(C,)`` values.

    ``over``: in the memory of x.
    """
    rows = as_channels_last(x).reshape(-1, x.shape[1])
    fold = fold_rows(*rows.shape)
    rows = rows.reshape(-1, fold * len(values))
    folded: Array = ufunc(rows, tile(values, fold), out=rows if over else None)
    return view_channels_first(folded.reshape(len(x), *x.shape[2:], len(values)))


def sum_by_channel(x: Array) -> Array:
    """Return the sum of each channel ``(C,)`` of images with their channels last in memory."""
    rows = as_channels_last(x).reshape(-1, x.shape[1])
    fold = fold_rows(*rows.shape)
    return sum_folded(rows.reshape(-1, fold * x.shape[1]), x.shape[1])


def sum_folded(folded: Array, channels: int) -> Array:
    """Return the sums by channel ``(C,)`` of folded rows ``(M / k, k C)``."""
    total: Array = np.add.reduce(folded, axis=0)
    return total if len(total) == channels else np.add.reduce(total.reshape(-1, channels), axis=0)
