"""Resizing along one dim: every output element is a sum of a few input elements (taps) with weights.

Neighbouring outputs read neighbouring inputs, so a few outputs are the product of a few inputs with a small
dense matrix. BLAS computes it faster than numpy gathers and adds. Such a product also multiplies by zeros, so
data with an infinity or NaN are computed by the formula instead.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from paddlelike.framework.opdef import Array
from paddlelike.ops.kernels.nn.image.layouts import as_channels_last, is_last_in_memory, view_channels_first

Taps = list[tuple[Array, Array]]  # index and weight per output element; indices never fall

_BLOCK: Final = 16  # elements of the result that are computed by one matrix


def resize(x: Array, taps: Sequence[Taps]) -> Array:
    """Return images ``(N, C, *spatial)`` resized along each spatial dim, in the memory order of ``x``."""
    last = is_last_in_memory(x)
    out = as_channels_last(x) if last else np.ascontiguousarray(x)
    for dim, each in enumerate(taps, 1 if last else 2):
        out = gather_taps(out, dim, each)
    return view_channels_first(out) if last else out


def resize_dx(d_out: Array, taps: Sequence[Taps], spatial: Sequence[int]) -> Array:
    """Return the gradient of :func:`resize` for images of ``spatial`` dims, in the memory order of
    ``d_out``.
    """
    last = is_last_in_memory(d_out)
    dx = as_channels_last(d_out) if last else np.ascontiguousarray(d_out)
    for dim, (each, size) in enumerate(zip(taps, spatial, strict=True), 1 if last else 2):
        dx = _scatter_taps(dx, dim, each, size)
    return view_channels_first(dx) if last else dx


def gather_taps(x: Array, dim: int, taps: Taps) -> Array:
    """``out[i] = sum over taps of weight[i] x[index[i]]`` along one dim."""
    if len(taps) == 1:
        return x.take(taps[0][0], dim)
    if len(taps[0][0]) >= x.shape[dim] and x.flags.c_contiguous and _is_finite(x):
        return _multiply(_make_matrix(taps, x.shape[dim], x.dtype), x, dim)
    shape = [-1 if axis == dim else 1 for axis in range(x.ndim)]
    out: Array | None = None
    for index, weight in taps:
        part = x.take(index, dim)
        part *= weight.astype(x.dtype).reshape(shape)
        out = part if out is None else np.add(out, part, out=out)
    assert out is not None
    return out


def _scatter_taps(d_out: Array, dim: int, taps: Taps, size: int) -> Array:
    """Return the gradient of :func:`gather_taps` of contiguous ``d_out``."""
    dx = _multiply(_make_matrix(taps, size, d_out.dtype).T, d_out, dim)
    return dx if _is_finite(dx) else _add_runs(d_out, dim, taps, size)


def _add_runs(d_out: Array, dim: int, taps: Taps, size: int) -> Array:
    """Add up neighbouring outputs that share an input."""
    dx = np.zeros((*d_out.shape[:dim], size, *d_out.shape[dim + 1 :]), d_out.dtype)
    shape = [-1 if axis == dim else 1 for axis in range(d_out.ndim)]
    for index, weight in taps:
        runs = np.flatnonzero(np.diff(index, prepend=-1))
        part = d_out * weight.astype(d_out.dtype).reshape(shape)
        where: Any = (*(slice(None),) * dim, index[runs])
        dx[where] += np.add.reduceat(part, runs, dim)
    return dx


def _is_finite(x: Array) -> bool:
    """Return whether no element is infinite or NaN; also False where the sum of the elements overflows."""
    with np.errstate(all="ignore"):
        return math.isfinite(np.add.reduce(x, axis=None))


def _make_matrix(taps: Taps, size: int, dtype: Any) -> Array:
    """Return the weights as a matrix (outputs, inputs)."""
    count = len(taps[0][0])
    matrix = np.zeros((count, size), dtype)
    for index, weight in taps:
        matrix[np.arange(count), index] += weight.astype(dtype)
    return matrix


def _multiply(matrix: Array, x: Array, dim: int) -> Array:
    """Return ``out[i] = sum over j of matrix[i, j] x[j]`` along one dim of contiguous ``x``.

    A few rows of the matrix are multiplied at once, without the zero columns at both ends.
    """
    before, after = x.shape[:dim], x.shape[dim + 1 :]
    source = x.reshape(math.prod(before), x.shape[dim], math.prod(after))
    out = np.empty((len(source), len(matrix), source.shape[2]), x.dtype)
    for start in range(0, len(matrix), _BLOCK):
        rows = matrix[start : start + _BLOCK]
        used = np.flatnonzero(rows.any(axis=0))
        columns = slice(used[0], used[-1] + 1) if len(used) else slice(0, 1)
        few, part = source[:, columns], out[:, start : start + _BLOCK]
        weights = np.ascontiguousarray(rows[:, columns])
        if source.shape[2] == 1:
            np.matmul(few[:, :, 0], weights.T, out=part[:, :, 0])
        else:
            np.matmul(weights, few, out=part)
    return out.reshape(*before, len(matrix), *after)
