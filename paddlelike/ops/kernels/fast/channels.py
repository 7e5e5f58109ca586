"""Normalization by channels: statistics in one pass over memory, and the result in another.

Rows ``(M, C)`` are folded to ``(M / k, k C)``, so that few channels fill the vector units as well. Each
column (lane) has its own sums. Sums of parts of the rows are joined by the formula of Chan, Golub and LeVeque
(1979), the lanes of a channel in float64. Results are as exact as numpy's, but not the same bits. Products
are fused with the additions that follow.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from paddlelike.framework.opdef import Array
from paddlelike.ops.kernels.fast.late import compile_late

# Elements: smaller arrays are in the cache, where numpy's passes cost less than the start of numba.
_SIZES: Final = {"least": 1 << 16, "asked": 1 << 11}


@compile_late("void(T[:, ::1], T[::1], T[::1])", **_SIZES, reorder=True)
def find_moments(x: Array, mean: Array, variance: Array) -> None:
    """Write the mean and the biased variance of each channel; ``x`` ``(M / k, k C)``, the others ``(C,)``."""
    rows, width = x.shape
    channels = mean.size
    center, spread = np.zeros(width, x.dtype), np.zeros(width, x.dtype)  # of each lane so far
    total, square = np.empty(width, x.dtype), np.empty(width, x.dtype)  # of each lane in one part
    # A part is read twice: it stays in the cache. Sums of more than some hundreds lose digits.
    step = min(256, max(4, 16384 // width // 4 * 4))
    for start in range(0, rows, step):
        stop = min(start + step, rows)
        whole = start + (stop - start) // 4 * 4
        total[:] = 0
        square[:] = 0
        for i in range(start, whole, 4):
            for j in range(width):
                total[j] += (x[i, j] + x[i + 1, j]) + (x[i + 2, j] + x[i + 3, j])
        for i in range(whole, stop):
            for j in range(width):
                total[j] += x[i, j]
        count = stop - start
        for j in range(width):
            total[j] /= count
        for i in range(start, whole, 4):
            for j in range(width):
                a, b = x[i, j] - total[j], x[i + 1, j] - total[j]
                c, d = x[i + 2, j] - total[j], x[i + 3, j] - total[j]
                square[j] += (a * a + b * b) + (c * c + d * d)
        for i in range(whole, stop):
            for j in range(width):
                a = x[i, j] - total[j]
                square[j] += a * a
        share = x.dtype.type(count / (start + count))
        both = x.dtype.type(start * (count / (start + count)))
        for j in range(width):
            apart = total[j] - center[j]
            center[j] += apart * share
            spread[j] += square[j] + apart * apart * both
    for c in range(channels):
        middle = 0.0
        for j in range(c, width, channels):
            middle += center[j]
        middle /= width // channels
        squares = 0.0
        for j in range(c, width, channels):
            squares += spread[j] + rows * (center[j] - middle) ** 2
        mean[c] = middle
        variance[c] = squares / (rows * (width // channels))


@compile_late("void(T[:, ::1], T[::1], T[::1], T[::1], T[:, ::1])", **_SIZES, reorder=True)
def scale_centered(x: Array, center: Array, factor: Array, shift: Array, out: Array) -> None:
    """Write ``out = (x - center) factor + shift``, with one number per lane ``(k C,)``."""
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            out[i, j] = (x[i, j] - center[j]) * factor[j] + shift[j]


@compile_late("void(T[:, ::1], T[:, ::1], T[::1], T[::1], T[::1])", **_SIZES, reorder=True)
def sum_products(x: Array, d: Array, mean: Array, products: Array, sums: Array) -> None:
    """Write the sums of ``(x - mean) d`` and of ``d`` for each channel ``(C,)``."""
    rows, width = x.shape
    channels = mean.size
    center = np.empty(width, x.dtype)
    for j in range(width):
        center[j] = mean[j % channels]
    product, total = np.zeros(width, x.dtype), np.zeros(width, x.dtype)
    whole = rows // 2 * 2
    for i in range(0, whole, 2):
        for j in range(width):
            product[j] += (x[i, j] - center[j]) * d[i, j] + (x[i + 1, j] - center[j]) * d[i + 1, j]
            total[j] += d[i, j] + d[i + 1, j]
    for i in range(whole, rows):
        for j in range(width):
            product[j] += (x[i, j] - center[j]) * d[i, j]
            total[j] += d[i, j]
    for c in range(channels):
        a = b = 0.0
        for j in range(c, width, channels):
            a += product[j]
            b += total[j]
        products[c] = a
        sums[c] = b


@compile_late("void(T[:, ::1], T[:, ::1], T[::1], T[::1], T[::1], T[::1], T[:, ::1])", **_SIZES, reorder=True)
def combine(x: Array, d: Array, center: Array, slope: Array, shift: Array, times: Array, dx: Array) -> None:
    """Write ``dx = (x - center) slope + shift + d times``, with one number per lane ``(k C,)``."""
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            dx[i, j] = ((x[i, j] - center[j]) * slope[j] + shift[j]) + d[i, j] * times[j]
