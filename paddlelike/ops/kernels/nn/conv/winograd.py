"""Convolution with kernels of 3x3 by Winograd's minimal filtering F(2x2, 3x3): 16 products for 4 outputs.

Tiles of 4x4 pixels, two apart, are transformed by sums and multiplied by the transformed filter, in 16 matrix
products over the channels; sums transform the products to 2x2 outputs. The definition takes 36 products for
these, so the method pays with many channels. Lavin and Gray, Fast Algorithms for Convolutional Neural
Networks, 2016. ``x`` is contiguous ``(N, H, W, C)``, ``w`` is ``(O, C, 3, 3)``.
"""

from __future__ import annotations

import itertools
import math
from typing import Final

import numpy as np

from paddlelike.framework.opdef import Array
from paddlelike.ops.kernels.nn.image.windows import Windows
from paddlelike.ops.kernels.threads import consume, map_parts

_CHUNK: Final = 512 << 10  # bytes of transformed tiles that are worked on at once
_ROWS: Final = 128  # fewest tiles in a matrix product
CHANNELS: Final = 64  # fewest channels on both sides with which the sums cost less than the products saved
_TILES: Final = 256  # fewest tiles: with less, transforming the filter costs more
FILTER: Final = np.array([[1, 0, 0], [0.5, 0.5, 0.5], [0.5, -0.5, 0.5], [0, 0, 1]])


def pays(x: Array, w: Array, windows: Windows) -> bool:
    """Return whether Winograd's method fits a convolution and is faster."""
    if windows.kernel != (3, 3) or windows.strides != (1, 1) or windows.dilations != (1, 1):
        return False
    return min(w.shape[:2]) >= CHANNELS and len(x) * math.prod(windows.counts(x.shape[1:3])) >= 4 * _TILES


def convolve(x: Array, w: Array, windows: Windows, transformed: Array | None = None) -> Array:
    """Return ``(N, H', W', O)``: ``out[n, p, o] = sum over k, c of w[o, c, k] x[n, p + k, c]``.

    ``transformed`` is the result of :func:`transform_filter` for ``w``, or None to compute it.
    """
    count = windows.counts(x.shape[1:3])
    high, wide = ((size + 1) // 2 for size in count)  # tiles
    filters = transformed
    if filters is None:
        filters = transform_filter(w.astype(np.result_type(x, w), copy=False))
    (top, _), (left, _) = windows.pads
    out = np.empty((len(x), 2 * high, 2 * wide, len(w)), filters.dtype)
    at_once = max(_ROWS, _CHUNK // (16 * x.shape[-1] * x.itemsize))  # tiles
    rows, batch = max(1, min(high, at_once // wide)), max(1, at_once // (high * wide))
    spare: list[Array] = []  # padded images, for each thread that works at the same time

    def work(part: tuple[int, int]) -> None:
        start, first = part
        images, results = x[start : start + batch], out[start : start + batch]
        last = min(first + rows, high)
        whole = spare.pop() if spare else np.zeros((batch, 2 * rows + 2, 2 * wide + 2, x.shape[-1]), x.dtype)
        padded = whole[: len(images), : 2 * (last - first) + 2]
        _copy_rows(padded, images, 2 * first - top, left)
        tiles = _transform_tiles(padded)
        products = tiles.reshape(16, -1, x.shape[-1]) @ filters
        _transform_back(products.reshape(*tiles.shape[:-1], len(w)), results[:, 2 * first : 2 * last])
        spare.append(whole)

    consume(map_parts(work, itertools.product(range(0, len(x), batch), range(0, high, rows))))
    if count == (2 * high, 2 * wide):
        return out
    return np.ascontiguousarray(out[:, : count[0], : count[1]])


def transform_filter(w: Array) -> Array:
    """Return the filter, transformed to ``(16, C, O)``."""
    return transform_places(np.ascontiguousarray(w.reshape(*w.shape[:2], 9).transpose(2, 1, 0)))


def transform_places(places: Array) -> Array:
    """Return :func:`transform_filter` of a filter given as contiguous ``(9, C, O)``."""
    both = np.kron(FILTER, FILTER).astype(places.dtype)  # (16, 9)
    return (both @ places.reshape(9, -1)).reshape(16, *places.shape[1:])


def _copy_rows(part: Array, images: Array, first: int, left: int) -> None:
    """Copy the rows of images from ``first`` on into ``part``, after ``left`` columns, surrounded by
    zeros.
    """
    low, high = max(0, first), min(images.shape[1], first + part.shape[1])
    width = min(images.shape[2], part.shape[2] - left)
    part[:, : low - first] = 0
    part[:, max(0, high - first) :] = 0
    part[:, low - first : high - first, left : left + width] = images[:, low:high, :width]


def _transform_tiles(x: Array) -> Array:
    """Return ``(4, 4, n, tiles down, tiles right, C)`` of padded images."""
    batch, high, wide, channels = len(x), x.shape[1] // 2 - 1, x.shape[2] // 2 - 1, x.shape[3]
    rows = np.empty((4, batch, high, x.shape[2], channels), x.dtype)
    _write_sums(rows, *(x[:, k : k + 2 * high : 2] for k in range(4)))
    tiles = np.empty((4, 4, batch, high, wide, channels), x.dtype)
    _write_sums(tiles.swapaxes(0, 1), *(rows[:, :, :, k : k + 2 * wide : 2] for k in range(4)))
    return tiles


def _write_sums(out: Array, a: Array, b: Array, c: Array, d: Array) -> None:
    np.subtract(a, c, out=out[0])
    np.add(b, c, out=out[1])
    np.subtract(c, b, out=out[2])
    np.subtract(b, d, out=out[3])


def _transform_back(products: Array, out: Array) -> None:
    """Write outputs ``(n, 2 high, 2 wide, O)`` of products ``(4, 4, n, high, wide, O)``."""
    batch, high, wide, filters = products.shape[2:]
    by_column = np.empty((2, 4, batch, high, wide, filters), products.dtype)
    _add_back(products.swapaxes(0, 1), by_column)
    pixels = out.reshape(batch, high, 2, wide, 2, filters)
    for right in range(2):
        _add_back(by_column[right], np.moveaxis(pixels[:, :, :, :, right], 2, 0))


def _add_back(parts: Array, out: Array) -> None:
    np.add(parts[1], parts[2], out=out[0])
    np.subtract(parts[1], parts[2], out=out[1])
    out[0] += parts[0]
    out[1] -= parts[3]
