"""Convolutions with kernels of 3x3 by Winograd's minimal filtering F(2x2, 3x3), channels last.

The formulas are those of :mod:`paddlelike.ops.kernels.nn.conv.winograd`: 16 products for 4 results instead of
36. Results of float32 differ from XLA's by about 1e-6 of the largest. For 8 images, processor milliseconds
fall from 19 to 12.6 with 128 channels of 28 x 28, from 20 to 11.5 with 256 of 14 x 14, from 22 to 15.2 with
512 of 7 x 7, but only from 18.8 to 17.2 with 64 of 56 x 56, where the sums dominate.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from paddlelike.ops.kernels.nn.conv.winograd import FILTER
from paddlelike.ops.kernels.nn.image.windows import Windows

_CHANNELS: Final = 128  # fewest on both sides
_PIXELS: Final = 256  # fewest of the result: with less, transforming the filter costs more


def pays(x: Array, w: Array, windows: Windows, groups: int) -> bool:
    """Return whether Winograd's method fits a convolution and is faster."""
    if groups > 1 or windows.kernel != (3, 3) or {*windows.strides, *windows.dilations} != {1}:
        return False
    wide = x.dtype in (np.float32, np.float64) and min(w.shape[-2:]) >= _CHANNELS
    return wide and len(x) * math.prod(windows.counts(x.shape[1:-1])) >= _PIXELS


def convolve(x: Array, w: Array, windows: Windows) -> Array:
    """Return the convolution of ``x``, shape (N, H, W, C), with ``w``, shape (3, 3, C, O)."""
    dims, (channels, filters) = windows.counts(x.shape[1:-1]), w.shape[-2:]
    high, wide = ((size + 1) // 2 for size in dims)  # tiles
    pads = [
        (low, 2 * count + 2 - size - low, 0)
        for (low, _), count, size in zip(windows.pads, (high, wide), x.shape[1:-1], strict=True)
    ]
    x = jax.lax.pad(x, jnp.zeros((), x.dtype), [(0, 0, 0), *pads, (0, 0, 0)])
    rows = _combine([x[:, k : k + 2 * high - 1 : 2] for k in range(4)])
    tiles = [
        tile for row in rows for tile in _combine([row[:, :, k : k + 2 * wide - 1 : 2] for k in range(4)])
    ]
    both = jnp.asarray(np.kron(FILTER, FILTER), w.dtype)  # (16, 9)
    kernels = (both @ w.reshape(9, -1)).reshape(16, channels, filters)
    products = jnp.stack(tiles).reshape(16, -1, channels) @ kernels
    grid = products.reshape(4, 4, len(x), high, wide, filters)
    columns = [_combine_back([grid[i, k] for k in range(4)]) for i in range(4)]
    pixels = [_combine_back([columns[i][j] for i in range(4)]) for j in range(2)]  # by column, then row
    out = jnp.stack([jnp.stack([pixels[j][i] for j in range(2)], 3) for i in range(2)], 2)
    return out.reshape(len(x), 2 * high, 2 * wide, filters)[:, : dims[0], : dims[1]]


def _combine(parts: Sequence[Any]) -> list[Any]:
    a, b, c, d = parts
    return [a - c, b + c, c - b, b - d]


def _combine_back(parts: Sequence[Any]) -> list[Any]:
    a, b, c, d = parts
    return [a + b + c, b - c - d]
