"""The largest pixel, or the mean, of each bin of a region, and the gradients."""

from __future__ import annotations

from typing import Final

import numpy as np

from paddlelike.framework.opdef import Array
from paddlelike.ops.kernels.fast.late import Number, compile_late

_BINS: Final = "int64[::1], int64[:, :, ::1], int64[:, :, ::1]"  # owners, rows, columns


@compile_late(f"void(T[:, :, :, ::1], {_BINS}, T, T[:, :, :, ::1], int64[:, :, :, ::1])", least=1 << 14)
def find_maxima(
    x: Array, owners: Array, rows: Array, columns: Array, least: Number, out: Array, argmax: Array
) -> None:
    """Write the first largest pixel of each bin ``(R, C, H', W')`` and its position, ``h W + w``.

    ``x`` ``(N, H, W, C)`` has no element below ``least``. ``rows`` ``(R, 2, H')`` and ``columns`` ``(R, 2,
    W')`` are the first pixel of each bin and the one after its last. An empty bin gives 0 and the position
    -1; a bin whose pixels are all ``least`` gives the position -1 too.
    """
    channels = x.shape[3]
    best, place = np.empty(channels, x.dtype), np.empty(channels, np.int32)
    for r in range(len(owners)):
        image = x[owners[r]]
        for i in range(rows.shape[2]):
            for j in range(columns.shape[2]):
                best[:] = least
                place[:] = -1
                for h in range(rows[r, 0, i], rows[r, 1, i]):
                    for w in range(columns[r, 0, j], columns[r, 1, j]):
                        pixel = image[h, w]
                        at = np.int32(h * x.shape[2] + w)
                        for c in range(channels):
                            place[c] = at if pixel[c] > best[c] else place[c]
                            best[c] = pixel[c] if pixel[c] > best[c] else best[c]
                empty = rows[r, 1, i] <= rows[r, 0, i] or columns[r, 1, j] <= columns[r, 0, j]
                for c in range(channels):
                    out[r, c, i, j] = least - least if empty else best[c]
                    argmax[r, c, i, j] = place[c]


@compile_late(f"void(T[:, :, :, ::1], {_BINS}, T[:, :, :, ::1])", least=1 << 12, exact=False)
def find_means(x: Array, owners: Array, rows: Array, columns: Array, out: Array) -> None:
    """Write the mean of each bin ``(R, O, H', W')``, which has a channel of ``x`` ``(N, O H' W', H, W)``."""
    _, outputs, tall, wide = out.shape
    for r in range(len(owners)):
        for i in range(tall):
            for j in range(wide):
                count = (rows[r, 1, i] - rows[r, 0, i]) * (columns[r, 1, j] - columns[r, 0, j])
                for o in range(outputs):
                    total = 0.0
                    plane = x[owners[r], (o * tall + i) * wide + j]
                    for h in range(rows[r, 0, i], rows[r, 1, i]):
                        for w in range(columns[r, 0, j], columns[r, 1, j]):
                            total += plane[h, w]
                    out[r, o, i, j] = total / max(count, 1)


@compile_late(f"void(T[:, :, :, ::1], {_BINS}, float64[:, :, :, ::1])", least=1 << 12, exact=False)
def add_means(d_out: Array, owners: Array, rows: Array, columns: Array, dx: Array) -> None:
    """Add the gradient of :func:`find_means` to ``dx``."""
    _, outputs, tall, wide = d_out.shape
    for r in range(len(owners)):
        for i in range(tall):
            for j in range(wide):
                count = (rows[r, 1, i] - rows[r, 0, i]) * (columns[r, 1, j] - columns[r, 0, j])
                for o in range(outputs):
                    each = np.float64(d_out[r, o, i, j]) / max(count, 1)
                    plane = dx[owners[r], (o * tall + i) * wide + j]
                    for h in range(rows[r, 0, i], rows[r, 1, i]):
                        for w in range(columns[r, 0, j], columns[r, 1, j]):
                            plane[h, w] += each
