"""Winograd's minimal filtering with compiled sums, and the gradient of the filter from the same tiles.

The formula is F(2x2, 3x3), as in :mod:`paddlelike.ops.kernels.nn.conv.winograd`. The compiled sums
(:mod:`paddlelike.ops.kernels.fast.winograd`) are so cheap that the method pays from 16 channels on. Factors
stay in the cache. ``x`` and ``d_out`` are contiguous ``(N, H, W, C)``, ``w`` is ``(O, C, 3, 3)``.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

import numpy as np

from paddlelike.framework.opdef import Array
from paddlelike.ops.kernels.fast import winograd as fast
from paddlelike.ops.kernels.nn.conv.winograd import FILTER, transform_filter
from paddlelike.ops.kernels.nn.image.windows import Windows
from paddlelike.ops.kernels.threads import consume, map_parts

_CHUNK: Final = 512 << 10  # bytes of transformed tiles that are worked on at once
_ROWS: Final = 128  # fewest tiles in a matrix product
CHANNELS: Final = 16  # fewest on both sides: below, the products are too small
_TILES: Final = 256  # fewest in all: with less, transforming the filter costs more


def pays(x: Array, filters: Array, channels: int, windows: Windows) -> bool:
    """Return whether Winograd's method fits a convolution and compiled sums are available.

    ``filters`` is the filter or the gradient of the output; ``channels`` counts the channels of the output.
    """
    if windows.kernel != (3, 3) or windows.strides != (1, 1) or windows.dilations != (1, 1):
        return False
    if len(x) * math.prod(windows.counts(x.shape[1:3])) < 4 * _TILES:
        return False
    if filters.dtype != x.dtype or min(x.shape[-1], channels) < CHANNELS:
        return False
    return fast.cut_tiles.choose(x.size, x) is not None


class _Part(NamedTuple):
    """Some images, and rows of tiles of them."""

    images: slice
    first: int
    last: int


class _Tiling(NamedTuple):
    """The tiles of images ``(n, high, wide)``, cut into parts that stay in the cache."""

    images: int
    high: int
    wide: int
    rows: int  # of tiles in a part
    batch: int  # images in a part

    @classmethod
    def of(cls, x: Array, windows: Windows, channels: int) -> _Tiling:
        high, wide = ((size + 1) // 2 for size in windows.counts(x.shape[1:3]))
        at_once = max(_ROWS, _CHUNK // (16 * channels * x.itemsize))
        return cls(len(x), high, wide, max(1, min(high, at_once // wide)), max(1, at_once // (high * wide)))

    def split(self) -> Iterator[_Part]:
        """Yield the parts."""
        starts = range(0, self.images, self.batch), range(0, self.high, self.rows)
        for image, first in itertools.product(*starts):
            images = slice(image, min(image + self.batch, self.images))
            yield _Part(images, first, min(first + self.rows, self.high))


def convolve(
    x: Array,
    w: Array,
    windows: Windows,
    transformed: Array | None = None,
    out: Array | None = None,
    finish: Callable[[tuple[slice, slice]], None] | None = None,
) -> Array:
    """Return ``(N, H', W', O)``: ``out[n, p, o] = sum over k, c of w[o, c, k] x[n, p + k, c]``.

    Parameters
    ----------
    transformed
        The result of :func:`~paddlelike.ops.kernels.nn.conv.winograd.transform_filter` for ``w``, if known.
    finish
        Takes images and rows of the outputs once they are written.
    """
    tiling = _Tiling.of(x, windows, max(w.shape[:2]))
    filters = transform_filter(w) if transformed is None else transformed
    join = fast.join_tiles.get_compiled(x.dtype)
    count = windows.counts(x.shape[1:3])
    if out is None:
        out = np.empty((len(x), *count, len(w)), x.dtype)

    def work(part: _Part) -> None:
        tiles = _cut(x, windows, tiling, part)
        products = np.matmul(tiles, filters)
        sums = np.empty((6, tiling.wide * len(w)), x.dtype)
        join(products.reshape(16, -1), 2 * part.first, sums, out[part.images])
        if finish is not None:
            finish((part.images, slice(2 * part.first, min(2 * part.last, count[0]))))

    consume(map_parts(work, tiling.split()))
    return out


def convolve_dw(x: Array, d_out: Array, windows: Windows) -> Array:
    """Return the gradient of the filter ``(O, C, 3, 3)``."""
    channels, filters = x.shape[-1], d_out.shape[-1]
    tiling = _Tiling.of(x, windows, max(channels, filters))
    spread = fast.spread_tiles.get_compiled(x.dtype)

    def work(part: _Part) -> Array:
        tiles = _cut(x, windows, tiling, part)
        d_products = np.empty((16, tiles.shape[1], filters), x.dtype)
        rows = np.empty((2, 2, tiling.wide * filters), x.dtype)
        sums = np.empty((8, tiling.wide * filters), x.dtype)
        spread(d_out[part.images], part.first, part.last, rows, sums, d_products.reshape(16, -1))
        product: Array = np.matmul(tiles.swapaxes(1, 2), d_products)
        return product

    total = np.zeros((16, channels, filters), x.dtype)
    for product in map_parts(work, tiling.split()):
        total += product
    both = np.kron(FILTER, FILTER).astype(x.dtype)  # (16, 9)
    places = (both.T @ total.reshape(16, -1)).reshape(3, 3, channels, filters)
    return np.ascontiguousarray(places.transpose(3, 2, 0, 1))


def _cut(x: Array, windows: Windows, tiling: _Tiling, part: _Part) -> Array:
    """Return the transformed tiles ``(16, tiles, C)`` of a part."""
    images, channels = x[part.images], x.shape[-1]
    (top, _), (left, _) = windows.pads
    count = part.last - part.first
    rows = np.empty((2 * count + 2, 2, (tiling.wide + 1) * channels), x.dtype)
    sums = np.empty((8, rows.shape[2]), x.dtype)
    tiles = np.empty((16, len(images) * count * tiling.wide, channels), x.dtype)
    cut = fast.cut_tiles.get_compiled(x.dtype)
    cut(images, top, left, part.first, part.last, rows, sums, tiles.reshape(16, -1))
    return tiles
