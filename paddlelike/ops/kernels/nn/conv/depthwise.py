"""Depthwise convolution, with one filter per channel, and its two gradients.

A matrix product would share nothing here, so ``einsum`` sums the products over the kernel. The inner loop
runs over a row where its windows are one run of memory, else over the channels of a pixel. Arrays ``x`` and
``d_out`` are contiguous ``(N, H, W, C)``, ``w`` is ``(C, 1, h, w)``.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from paddlelike.core.views import count_steps, view_strided
from paddlelike.framework.opdef import Array
from paddlelike.ops.kernels.fast import depthwise as fast
from paddlelike.ops.kernels.nn.conv.channels_last import pad_pixels
from paddlelike.ops.kernels.nn.conv.phases import convolve_phases
from paddlelike.ops.kernels.nn.image.windows import Windows


def convolve(x: Array, w: Array, windows: Windows) -> Array:
    """Return ``(N, H', W', C)``: ``out[n, p, c] = sum over k of w[c, k] x[n, p * stride + k, c]``."""
    count = windows.counts(x.shape[1:3])
    padded = pad_pixels(x, windows)
    out = np.empty((len(x), *count, len(w)), np.result_type(x, w))
    places = np.ascontiguousarray(w[:, 0].transpose(1, 2, 0))  # (h, w, C)
    if (kernel := fast.convolve.choose(out.size, padded, places, out)) is not None:
        kernel(padded, places, *windows.strides, *windows.dilations, out)
        return out
    sum_windows(padded, places, windows, out)
    return out


def sum_windows(padded: Array, places: Array, windows: Windows, out: Array) -> None:
    """Write the result of :func:`convolve` for padded pixels and a filter ``(h, w, C)``, by numpy alone."""
    count = out.shape[1:3]
    view = _view_windows(padded, windows, count)
    if view.ndim == 5:
        rows = out.reshape(*out.shape[:2], count[1] * out.shape[3])  # a batch may be empty
        repeated = np.repeat(places[:, :, None], count[1], 2).reshape(*places.shape[:2], -1)
        np.einsum("nhijk,ijk->nhk", view, repeated, out=rows)
    else:
        np.einsum("nhwijc,ijc->nhwc", view, places, out=out)


def convolve_dw(x: Array, d_out: Array, windows: Windows) -> Array:
    """Return the gradient of the filter ``(C, 1, h, w)``."""
    channels, count = x.shape[-1], d_out.shape[1:3]
    padded, total = pad_pixels(x, windows), np.empty((*windows.kernel, channels), d_out.dtype)
    if (kernel := fast.convolve_dw.choose(d_out.size, padded, d_out, total)) is not None:
        kernel(padded, d_out, *windows.strides, *windows.dilations, total)
        return np.ascontiguousarray(total.transpose(2, 0, 1)).reshape(channels, 1, *windows.kernel)
    view = _view_windows(padded, windows, count)
    rows = d_out.reshape(*d_out.shape[:2], count[1] * channels)
    for i in range(windows.kernel[0]):
        for j in range(windows.kernel[1]):
            if view.ndim == 5:
                by_column = np.einsum("nhk,nhk->k", view[:, :, i, j], rows)
                total[i, j] = np.add.reduce(by_column.reshape(-1, channels), axis=0)
            else:
                total[i, j] = np.einsum("nhwc,nhwc->c", view[:, :, :, i, j], d_out)
    return np.ascontiguousarray(total.transpose(2, 0, 1)).reshape(channels, 1, *windows.kernel)


def convolve_dx(d_out: Array, w: Array, windows: Windows, spatial: Sequence[int]) -> Array:
    """Return the gradient of the input ``(N, *spatial, C)``."""
    if windows.dilations == (1, 1):
        return convolve_phases(d_out, w, windows, spatial, convolve)
    if (turned := _turn(windows, d_out.shape[1:3], spatial)) is not None:
        return convolve(d_out, w[:, :, ::-1, ::-1], turned)
    total = np.zeros((len(d_out), *windows.padded(spatial), len(w)), np.result_type(d_out, w))
    for (_, _, i, j), where in windows.offsets(d_out.shape[1:3]):
        total[(slice(None), *where[1:])] += d_out * w[:, 0, i, j]
    (top, _), (left, _) = windows.pads
    return np.ascontiguousarray(total[:, top : top + spatial[0], left : left + spatial[1]])


def _turn(windows: Windows, count: Sequence[int], spatial: Sequence[int]) -> Windows | None:
    """Return the windows for convolving the output's gradient with the flipped filter."""
    pads = tuple(
        (extent - 1 - low, extent - 1 - high)
        for extent, (low, high) in zip(windows.extent, windows.pads, strict=True)
    )
    turned = windows._replace(pads=pads)
    fits = windows.strides == (1, 1) and min(map(min, pads)) >= 0
    return turned if fits and turned.counts(count) == tuple(spatial) else None


def _view_windows(x: Array, windows: Windows, count: Sequence[int]) -> Array:
    """Return the windows of padded pixels, ``(N, H', h, w, W' C)`` or, strided, ``(N, H', W', h, w, C)``."""
    by_image, by_row, by_pixel, _ = count_steps(x.shape)
    (high, wide), (down, right), (skip, step) = windows.kernel, windows.strides, windows.dilations
    places, steps = (high, wide), (by_row * skip, by_pixel * step)
    batch, channels = len(x), x.shape[-1]
    if right == 1:
        shape: tuple[int, ...] = (batch, count[0], *places, count[1] * channels)
        strides: tuple[int, ...] = (by_image, by_row * down, *steps, 1)
    else:
        shape = (batch, *count, *places, channels)
        strides = (by_image, by_row * down, by_pixel * right, *steps, 1)
    return view_strided(x, shape, strides)
