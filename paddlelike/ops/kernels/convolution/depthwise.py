"""Convolution where every channel has a filter of its own, and its two gradients.

There is nothing for a matrix product to share, so that the pixels at one place of all windows are multiplied
by the numbers of that place and added up, place after place, for as many rows of the output as stay in the
cache. Arrays ``x`` and ``d_out`` are contiguous ``(N, H, W, C)``, ``w`` is ``(C, 1, h, w)``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

import numpy as np

from paddlelike.framework.opdef import Array
from paddlelike.ops.kernels.channels import fold_rows, sum_folded
from paddlelike.ops.kernels.convolution.channels_last import pad_pixels
from paddlelike.ops.kernels.windows import Windows

__all__ = ["convolve", "convolve_dw", "convolve_dx"]

_CHUNK: Final = 128 << 10  # bytes of output that are worked on at once


def convolve(x: Array, w: Array, windows: Windows) -> Array:
    """Return ``(N, H', W', C)``: ``out[n, p, c] = sum over k of w[c, k] x[n, p * stride + k, c]``."""
    count = windows.counts(x.shape[1:3])
    padded = pad_pixels(x, windows)
    out = np.empty((len(x), *count, x.shape[-1]), np.result_type(x, w))
    rows = _repeat_filter(w, count[1])
    for images, first, last in _split(out):
        part = out[images, first:last]
        spare = np.empty_like(part)
        for index, where in _iterate_places(windows, first, last, count[1]):
            if index == 0:
                np.multiply(padded[images][where], rows[index], out=part)
            else:
                np.multiply(padded[images][where], rows[index], out=spare)
                part += spare
    return out


def convolve_dw(x: Array, d_out: Array, windows: Windows) -> Array:
    """Return the gradient of the filter ``(C, 1, h, w)``."""
    channels, count = x.shape[-1], d_out.shape[1:3]
    padded = pad_pixels(x, windows)
    total = np.zeros((windows.kernel[0] * windows.kernel[1], channels), d_out.dtype)
    for images, first, last in _split(d_out):
        part = d_out[images, first:last]
        product = np.empty_like(part)
        height = product.size // channels
        fold = fold_rows(height, channels)
        for index, where in _iterate_places(windows, first, last, count[1]):
            np.multiply(padded[images][where], part, out=product)
            total[index] += sum_folded(product.reshape(height // fold, -1), channels)
    return np.ascontiguousarray(total.T).reshape(channels, 1, *windows.kernel)


def convolve_dx(d_out: Array, w: Array, windows: Windows, spatial: Sequence[int]) -> Array:
    """Return the gradient of the input ``(N, *spatial, C)``."""
    count = d_out.shape[1:3]
    total = np.zeros((len(d_out), *windows.padded(spatial), len(w)), np.result_type(d_out, w))
    rows = _repeat_filter(w, count[1])
    for images, first, last in _split(d_out):
        part = d_out[images, first:last]
        product = np.empty_like(part)
        for index, where in _iterate_places(windows, first, last, count[1]):
            np.multiply(part, rows[index], out=product)
            total[images][where] += product
    (top, _), (left, _) = windows.pads
    return np.ascontiguousarray(total[:, top : top + spatial[0], left : left + spatial[1]])


def _repeat_filter(w: Array, width: int) -> Array:
    """Return ``(h w, W', C)``: the numbers of each place for a row of outputs, which is one run of memory."""
    places = w.reshape(len(w), -1).T
    return np.ascontiguousarray(np.broadcast_to(places[:, None], (len(places), width, len(w))))


def _split(out: Array) -> Iterator[tuple[slice, int, int]]:
    """Yield images and the first and last row of parts of an output."""
    batch, height = out.shape[:2]
    row = out[0, 0].nbytes if out.size else 1
    step = max(1, _CHUNK // max(1, row * height))
    rows = height if step > 1 else max(1, min(height, _CHUNK // max(1, row)))
    for start in range(0, batch, step):
        for first in range(0, height, rows):
            yield slice(start, start + step), first, min(first + rows, height)


def _iterate_places(windows: Windows, first: int, last: int, width: int) -> Iterator[tuple[int, Any]]:
    """Yield the number of each place in the kernel, and the pixels there of the windows of some rows."""
    down, right = windows.strides
    for index in range(windows.kernel[0] * windows.kernel[1]):
        i, j = divmod(index, windows.kernel[1])
        top, left = i * windows.dilations[0] + first * down, j * windows.dilations[1]
        yield (
            index,
            (
                slice(None),
                slice(top, top + (last - first - 1) * down + 1, down),
                slice(left, left + (width - 1) * right + 1, right),
            ),
        )
