"""Convolution and its two gradients, by the method that is fastest for the shapes.

``x`` is ``(N, C, *spatial)``, ``w`` is ``(O, C / groups, *kernel)``. With two spatial dims, and no groups or
one group per channel, results have their channels last in memory
(:mod:`paddlelike.ops.kernels.nn.image.layouts`). Other results are contiguous, and so are gradients of few
channels.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import ModuleType
from typing import Final

import numpy as np

from paddlelike.framework.opdef import Array
from paddlelike.ops.kernels.nn.conv import channels_first, channels_last, depthwise
from paddlelike.ops.kernels.nn.image.layouts import as_channels_last, view_channels_first
from paddlelike.ops.kernels.nn.image.windows import Windows

_MANY: Final = 5  # times as many filters as channels


def convolve(x: Array, w: Array, windows: Windows, groups: int) -> Array:
    """``out[n, o, p] = sum over c, k of w[o, c, k] x[n, c, p * stride + k * dilation]``."""
    if plain := windows.without_cuts():
        return convolve(x[windows.kept(x.shape[2:])], w, plain, groups)
    way = _choose(w, windows, groups)
    if way is None:
        return channels_first.convolve(x, w, windows, groups)
    return view_channels_first(way.convolve(as_channels_last(x), w, windows))


def convolve_dw(x: Array, d_out: Array, windows: Windows, groups: int) -> Array:
    """Return the gradient of the filter: ``sum over n, p of d_out[n, o, p] x[n, c, ...]``."""
    if plain := windows.without_cuts():
        return convolve_dw(x[windows.kept(x.shape[2:])], d_out, plain, groups)
    channels = d_out.shape[1]
    way = _choose_for(channels, x.shape[1], windows, groups)
    if way is None:
        return channels_first.convolve_dw(x, d_out, windows, groups)
    return way.convolve_dw(as_channels_last(x), as_channels_last(d_out), windows)


def convolve_dx(d_out: Array, w: Array, windows: Windows, groups: int, spatial: Sequence[int]) -> Array:
    """Return the gradient of the input, whose spatial dims are ``spatial``."""
    if plain := windows.without_cuts():
        dx = np.zeros((len(d_out), w.shape[1] * groups, *spatial), np.result_type(d_out, w))
        kept = dx[windows.kept(spatial)]
        kept[...] = convolve_dx(d_out, w, plain, groups, kept.shape[2:])
        return dx
    way = _choose(w, windows, groups)
    if way is None or (way is channels_last and _has_few_channels(w)):
        return channels_first.convolve_dx(d_out, w, windows, groups, spatial)
    return view_channels_first(way.convolve_dx(as_channels_last(d_out), w, windows, tuple(spatial)))


def _has_few_channels(w: Array) -> bool:
    """Return whether adding products to their pixels is faster than unfolding the gradient of the output."""
    filters, channels = w.shape[:2]
    return w[0, 0].size > 1 and (channels == 1 or filters >= _MANY * channels)


def _choose(w: Array, windows: Windows, groups: int) -> ModuleType | None:
    return _choose_for(len(w), w.shape[1] * groups, windows, groups)


def _choose_for(filters: int, channels: int, windows: Windows, groups: int) -> ModuleType | None:
    """Return the module with the fastest functions, or None for the general one."""
    if len(windows.kernel) != 2:
        return None
    if groups == 1:
        return channels_last
    return depthwise if groups == channels == filters else None
