"""Convolutions for prediction with a prepared filter, fused with bias, residual and activation.

The methods are those of :mod:`paddlelike.ops.kernels.nn.conv.convolve` for two spatial dims, without groups
or with one filter per channel. Bias, residual and activation are applied to each part while it is in the
cache.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable
from typing import Final

import numpy as np

from paddlelike.framework.opdef import Array
from paddlelike.ops.kernels.fast import depthwise as fast_depthwise, winograd as fast_winograd
from paddlelike.ops.kernels.nn.conv import channels_last, depthwise, tiles, winograd
from paddlelike.ops.kernels.nn.image.layouts import as_channels_last, view_channels_first
from paddlelike.ops.kernels.nn.image.windows import Windows
from paddlelike.ops.kernels.threads import consume, map_parts

Activation = Callable[[Array], None]  # in place, of each element

_PART: Final = 512 << 10  # bytes of outputs that are worked on at once
_ROWS: Final = 256  # fewest rows in a product
_WIDE: Final = 1024  # elements of a row to which a bias is added at once
_FILTERS: Final = 16  # that are turned at once: their elements fill lines of the cache
_TILES: Final = 32  # fewest of Winograd's: with less, BLAS reads the filter more than it multiplies


class PackedConv:
    """A convolution ``activation(factors conv(x) + bias + residual)`` with a fixed filter.

    The first run prepares the filter for the method that fits the image.

    Parameters
    ----------
    w
        The filter ``(O, C / groups, h, w)``.
    factors, bias
        ``(O,)``, or None.
    windows
        Returns the windows over an image of these spatial dims.
    groups
        1, or as many as there are channels in and out.
    """

    def __init__(
        self,
        w: Array,
        factors: Array | None,
        bias: Array | None,
        windows: Callable[[tuple[int, int]], Windows],
        groups: int,
        activation: Activation | None,
    ) -> None:
        self._w, self._factors, self._bias, self._activation = w, factors, bias, activation
        self._find_windows = functools.lru_cache(8)(windows)
        self._by_channel = groups > 1
        self._repeats = max(1, _WIDE // len(w))
        self._repeated = None if bias is None else np.tile(bias, self._repeats)

    @functools.cached_property
    def _matrix(self) -> Array:
        """The filter as ``(h w C, O)``, or ``(h, w, C)`` for filters of one channel each."""
        if self._by_channel:
            places = np.ascontiguousarray(self._w[:, 0].transpose(1, 2, 0))
            return places if self._factors is None else places * self._factors
        return _turn(self._w, self._factors, (2, 3, 1)).reshape(-1, len(self._w))

    @functools.cached_property
    def _tiles(self) -> Array:
        """The filter, transformed for Winograd's method."""
        places = _turn(self._w.reshape(*self._w.shape[:2], 9), self._factors, (2, 1))
        return winograd.transform_places(places)

    def __call__(self, x: Array, residual: Array | None = None) -> Array:
        """Return the output ``(N, O, H', W')`` of ``(N, C, H, W)``, with channels last in memory."""
        windows = self._find_windows(x.shape[2:])
        if plain := windows.without_cuts():
            x, windows = x[windows.kept(x.shape[2:])], plain
        pixels = as_channels_last(x)
        shape = (len(x), *windows.counts(x.shape[2:]), len(self._w))
        out = np.empty(shape, np.result_type(x, self._w))
        added = None
        if residual is not None:
            added = as_channels_last(np.broadcast_to(residual, view_channels_first(out).shape))
        if self._by_channel:
            self._convolve_channels(pixels, windows, out, added)
        elif self._takes_tiles(pixels, out, windows):
            self._convolve_tiles(pixels, windows, out, added)
        elif channels_last.is_pixelwise(windows):
            self._multiply_pixels(channels_last.take_pixels(pixels, windows), out, added)
        else:
            self._multiply_windows(pixels, windows, out, added)
        return view_channels_first(out)

    def _finish(self, out: Array, added: Array | None) -> None:
        """Add bias and residual to a contiguous part ``(..., O)`` of the outputs, and activate it."""
        if self._bias is not None and self._repeated is not None:
            rows = out.reshape(-1, len(self._bias))
            if len(rows) % self._repeats == 0:  # several short rows at once
                rows = rows.reshape(-1, len(self._repeated))
                np.add(rows, self._repeated, out=rows)
            else:
                np.add(rows, self._bias, out=rows)
        if added is not None:
            out += added
        if self._activation is not None:
            self._activation(out)

    def _multiply_pixels(self, pixels: Array, out: Array, added: Array | None) -> None:
        rows = out.reshape(-1, out.shape[-1])
        more = None if added is None else added.reshape(rows.shape)
        step = max(_ROWS, _PART // max(1, rows.shape[1] * rows.itemsize))

        def work(part: slice) -> None:
            np.matmul(pixels[part], self._matrix, out=rows[part])
            self._finish(rows[part], None if more is None else more[part])

        consume(map_parts(work, _cut(len(rows), step)))

    def _multiply_windows(self, x: Array, windows: Windows, out: Array, added: Array | None) -> None:
        def work(part: channels_last.Part, unfolded: Array) -> None:
            rows = out[part]
            np.matmul(unfolded, self._matrix, out=rows.reshape(-1, rows.shape[-1]))
            self._finish(rows, None if added is None else added[part])

        consume(channels_last.map_rows(work, x, windows, out.shape[1:3]))

    def _convolve_channels(self, x: Array, windows: Windows, out: Array, added: Array | None) -> None:
        padded = channels_last.pad_pixels(x, windows)
        kernel = fast_depthwise.convolve.choose(out.size, padded, self._matrix, out)
        if kernel is None:
            depthwise.sum_windows(padded, self._matrix, windows, out)
        else:
            kernel(padded, self._matrix, *windows.strides, *windows.dilations, out)
        rows = out.reshape(-1, *out.shape[2:])
        more = None if added is None else added.reshape(rows.shape)
        for part in _cut(len(rows), max(1, _PART // max(1, rows[:1].nbytes))):
            self._finish(rows[part], None if more is None else more[part])

    def _takes_tiles(self, x: Array, out: Array, windows: Windows) -> bool:
        if windows.kernel != (3, 3) or windows.strides != (1, 1) or windows.dilations != (1, 1):
            return False
        if x.dtype != self._w.dtype or len(out) * math.prod(out.shape[1:3]) < 4 * _TILES:
            return False
        least = min(self._w.shape[:2])
        if least >= tiles.CHANNELS and fast_winograd.cut_tiles.choose(x.size, x) is not None:
            return True
        return least >= winograd.CHANNELS

    def _convolve_tiles(self, x: Array, windows: Windows, out: Array, added: Array | None) -> None:
        if fast_winograd.cut_tiles.choose(x.size, x) is None:
            out[...] = winograd.convolve(x, self._w, windows, self._tiles)
            rows = out.reshape(-1, out.shape[-1])
            more = None if added is None else added.reshape(rows.shape)
            for part in _cut(len(rows), max(1, _PART // max(1, rows[:1].nbytes))):
                self._finish(rows[part], None if more is None else more[part])
            return

        def finish(part: tuple[slice, slice]) -> None:
            self._finish(out[part], None if added is None else added[part])

        tiles.convolve(x, self._w, windows, self._tiles, out, finish)


def _cut(size: int, step: int) -> list[slice]:
    """Return even parts of a dim, of about ``step`` each."""
    count = max(1, round(size / step))
    bounds = [size * index // count for index in range(count + 1)]
    return [slice(*pair) for pair in itertools.pairwise(bounds)]


def _turn(w: Array, factors: Array | None, axes: tuple[int, ...]) -> Array:
    """Move the first dim of filters to the end, and multiply by ``factors``.

    A few filters are moved at a time; all at once would compete for the same sets of the cache.
    """
    seen = w.transpose(*axes, 0)
    out = np.empty(seen.shape, w.dtype)
    for start in range(0, len(w), _FILTERS):
        part = (..., slice(start, start + _FILTERS))
        if factors is None:
            out[part] = seen[part]
        else:
            np.multiply(seen[part], factors[part[1]], out=out[part])
    return out
