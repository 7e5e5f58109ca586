"""Depthwise convolutions, with one filter per channel, and their gradients, one row of windows at a time.

``x`` ``(N, H, W, C)`` is padded. The window of output ``(i, j)`` begins at row ``i * down`` and column ``j *
right``; its elements are ``skip`` rows and ``step`` columns apart. Weights are ``(h, w, C)``.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from paddlelike.framework.opdef import Array
from paddlelike.ops.kernels.fast.late import compile_late

_SIZES: Final = {"least": 1 << 14, "asked": 1 << 11}  # elements of the output
_STEPS = "int64, int64, int64, int64"


@compile_late(f"void(T[:, :, :, ::1], T[:, :, ::1], {_STEPS}, T[:, :, :, ::1])", **_SIZES, reorder=True)
def convolve(x: Array, w: Array, down: int, right: int, skip: int, step: int, out: Array) -> None:
    """``out[n, i, j, c] = sum over h, w of w[h, w, c] x[n, i down + h skip, j right + w step, c]``."""
    channels = x.shape[3]
    for n in range(out.shape[0]):
        for i in range(out.shape[1]):
            for j in range(out.shape[2]):
                total = out[n, i, j]
                for h in range(w.shape[0]):
                    row = x[n, i * down + h * skip]
                    if w.shape[1] == 3:  # three places at once: the sum is read and written less often
                        a, b, c = row[j * right], row[j * right + step], row[j * right + 2 * step]
                        p, q, r = w[h, 0], w[h, 1], w[h, 2]
                        if h == 0:
                            for k in range(channels):
                                total[k] = a[k] * p[k] + b[k] * q[k] + c[k] * r[k]
                        else:
                            for k in range(channels):
                                total[k] += a[k] * p[k] + b[k] * q[k] + c[k] * r[k]
                    else:
                        for place in range(w.shape[1]):
                            pixel, weight = row[j * right + place * step], w[h, place]
                            if h + place == 0:
                                for k in range(channels):
                                    total[k] = pixel[k] * weight[k]
                            else:
                                for k in range(channels):
                                    total[k] += pixel[k] * weight[k]


@compile_late(f"void(T[:, :, :, ::1], T[:, :, :, ::1], {_STEPS}, T[:, :, ::1])", **_SIZES, reorder=True)
def convolve_dw(x: Array, d_out: Array, down: int, right: int, skip: int, step: int, total: Array) -> None:
    """Write the gradient of the weights ``(h, w, C)``: a sum for each row of windows, then over all rows."""
    high, wide, channels = total.shape
    by_row = np.empty((high, wide, channels), x.dtype)
    total[:] = 0
    for n in range(d_out.shape[0]):
        for i in range(d_out.shape[1]):
            by_row[:] = 0
            for j in range(d_out.shape[2]):
                d = d_out[n, i, j]
                for h in range(high):
                    row = x[n, i * down + h * skip]
                    for place in range(wide):
                        pixel, part = row[j * right + place * step], by_row[h, place]
                        for k in range(channels):
                            part[k] += pixel[k] * d[k]
            for h in range(high):
                for place in range(wide):
                    for k in range(channels):
                        total[h, place, k] += by_row[h, place, k]
