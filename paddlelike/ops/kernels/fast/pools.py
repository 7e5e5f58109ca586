"""Maxima of windows of images, and the gradient.

``x`` is ``(N, H, W, C)``. Window ``(i, j)`` begins at row ``i * down - top`` and column ``j * right - left``;
it has ``high`` rows and ``wide`` columns. Pixels outside of the image count as ``least``.
"""

from __future__ import annotations

import numpy as np

from paddlelike.framework.opdef import Array
from paddlelike.ops.kernels.fast.late import Number, compile_late

_LEAST = 1 << 16  # elements of x
_WINDOWS = "int64, int64, int64, int64, int64, int64"


@compile_late(f"void(T[:, :, :, ::1], {_WINDOWS}, T, T[:, :, :, ::1])", least=_LEAST)
def find_maxima(
    x: Array, high: int, wide: int, down: int, right: int, top: int, left: int, least: Number, out: Array
) -> None:
    """Write the maximum of each window ``(N, H', W', C)``; NaN if the window contains NaN."""
    channels = x.shape[3]
    for n in range(out.shape[0]):
        for i in range(out.shape[1]):
            for j in range(out.shape[2]):
                h, w = i * down - top, j * right - left
                whole = h >= 0 and w >= 0 and h + high <= x.shape[1] and w + wide <= x.shape[2]
                best = out[n, i, j]
                if whole:
                    best[:] = x[n, h, w]
                else:
                    best[:] = least
                for row in range(max(h, 0), min(h + high, x.shape[1])):
                    for column in range(max(w, 0), min(w + wide, x.shape[2])):
                        pixel = x[n, row, column]
                        for c in range(channels):
                            best[c] = pixel[c] if (pixel[c] > best[c]) | (pixel[c] != pixel[c]) else best[c]


@compile_late(
    f"void(T[:, :, :, ::1], T[:, :, :, ::1], T[:, :, :, ::1], {_WINDOWS}, T[:, :, :, ::1])", least=_LEAST
)
def find_maxima_dx(
    x: Array,
    out: Array,
    d_out: Array,
    high: int,
    wide: int,
    down: int,
    right: int,
    top: int,
    left: int,
    dx: Array,
) -> None:
    """Add the gradient of each window to the position of its first maximum; ``dx`` is zero at first.

    Windows are taken from the last to the first, as in numpy's kernel.
    """
    channels = x.shape[3]
    zero = x.dtype.type(0)
    rest = np.empty(channels, x.dtype)  # the gradient until its maximum is met
    for n in range(out.shape[0]):
        for i in range(out.shape[1] - 1, -1, -1):
            for j in range(out.shape[2] - 1, -1, -1):
                h, w = i * down - top, j * right - left
                best = out[n, i, j]
                rest[:] = d_out[n, i, j]
                for row in range(max(h, 0), min(h + high, x.shape[1])):
                    for column in range(max(w, 0), min(w + wide, x.shape[2])):
                        pixel, d_pixel = x[n, row, column], dx[n, row, column]
                        for c in range(channels):
                            met = pixel[c] == best[c]
                            d_pixel[c] += rest[c] if met else zero
                            rest[c] = zero if met else rest[c]
