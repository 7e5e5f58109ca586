"""Normalization by the statistics of a batch, with one mean and variance per channel, and its gradient.

Arrays are rows of channels ``(M, C)``, such as images with channels last in memory. Several rows are joined
to one (:mod:`paddlelike.ops.kernels.nn.image.layouts`). After the mean is known, as many rows as fit into the
cache are normalized at a time.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np

from paddlelike.framework.opdef import Array, Kernel
from paddlelike.ops.kernels.fast import channels as fast
from paddlelike.ops.kernels.nn.image.layouts import (
    as_channels_last,
    fold_rows,
    sum_folded,
    tile,
    view_channels_first,
)

_CHUNK: Final = 256 << 10  # bytes of rows that are worked on at once


def take_rows(x: Array, layout: str) -> Array:
    """Return images as rows ``(M, C)``, copied if their channels are not last in memory."""
    last = np.ascontiguousarray(x) if layout == "NHWC" else as_channels_last(x)
    return last.reshape(-1, last.shape[-1])


def restore_shape(rows: Array, x: Array, layout: str) -> Array:
    """Return rows as a view in the shape of the images ``x`` that they came from."""
    if layout == "NHWC":
        return rows.reshape(x.shape)
    return view_channels_first(rows.reshape(len(x), *x.shape[2:], x.shape[1]))


def scale_rows(rows: Array, factor: Array, shift: Array | None) -> Array:
    """Return ``rows * factor + shift``, with one factor and one shift per channel; ``shift`` None: no
    shift.
    """
    fold = fold_rows(*rows.shape)
    factor, shift = tile(factor, fold), None if shift is None else tile(shift, fold)
    folded = rows.reshape(-1, len(factor))
    out = np.empty(folded.shape, np.result_type(rows, factor))
    for part in _split(folded):
        np.multiply(folded[part], factor, out=out[part])
        if shift is not None:
            out[part] += shift
    return out.reshape(rows.shape)


def normalize(rows: Array, scale: Array, bias: Array, epsilon: float) -> tuple[Array, Array, Array, Array]:
    """Return ``scale (rows - mean) / sqrt(var + epsilon) + bias``, mean, var and ``1 / sqrt(var + epsilon)``.

    The variance is the biased one.
    """
    count, channels = rows.shape
    fold = fold_rows(count, channels)
    folded = rows.reshape(-1, fold * channels)
    if (kernel := fast.find_moments.choose(rows.size, rows, scale, bias)) is not None:
        mean, variance = np.empty_like(scale), np.empty_like(scale)
        kernel(folded, mean, variance)
        inverse = 1 / np.sqrt(variance + epsilon)
        out = np.empty_like(folded)
        lanes = (tile(each, fold) for each in (mean, scale * inverse, bias))
        fast.scale_centered.get_compiled(rows.dtype)(folded, *lanes, out)
        return out.reshape(rows.shape), mean, variance, inverse
    mean = sum_folded(folded, channels) / count
    center = tile(mean, fold)
    out = np.empty(folded.shape, np.result_type(rows, scale))
    squares = np.zeros_like(center)
    for part in _split(folded):
        centered = np.subtract(folded[part], center, out=out[part])
        squares += np.einsum("ij,ij->j", centered, centered)
    variance = sum_folded(squares.reshape(1, -1), channels) / count
    inverse = 1 / np.sqrt(variance + epsilon)
    factor, shift = tile(scale * inverse, fold), tile(bias, fold)
    for part in _split(out):
        centered = out[part]
        centered *= factor
        centered += shift
    return out.reshape(rows.shape), mean, variance, inverse


def normalize_dx(
    rows: Array, d_rows: Array, mean: Array, inverse: Array, factor: Array, *, fixed: bool
) -> tuple[Array, Array, Array]:
    """Return ``factor (d - mean(d) - x^ mean(d x^))``, ``sum(d x^)`` and ``sum(d)``.

    Here ``d`` is the gradient and ``x^ = (rows - mean) inverse``. With ``fixed`` statistics, which do not
    depend on the rows, the means are left out.
    """
    count, channels = rows.shape
    fold = fold_rows(count, channels)
    folded, d_folded = rows.reshape(-1, fold * channels), d_rows.reshape(-1, fold * channels)
    if not fixed and (kernel := fast.sum_products.choose(rows.size, rows, d_rows, mean, factor)) is not None:
        return _normalize_dx_fast(kernel, (folded, d_folded), mean, inverse, factor, rows.shape)
    center = tile(mean, fold)
    products = np.zeros(fold * channels, d_rows.dtype)
    sums = np.zeros_like(products)
    for part in _split(folded):
        products += np.einsum("ij,ij->j", folded[part] - center, d_folded[part])
        sums += np.add.reduce(d_folded[part], axis=0)
    d_scale = sum_folded(products.reshape(1, -1), channels) * inverse
    d_bias = sum_folded(sums.reshape(1, -1), channels)
    times = tile(factor, fold)
    if fixed:
        return (d_folded * times).reshape(rows.shape), d_scale, d_bias
    slope = inverse * d_scale / count
    shift = d_bias / count - mean * slope  # together, factor (d - ((rows - mean) slope + mean(d)))
    slope, shift = tile(slope, fold), tile(shift, fold)
    dx = np.empty(folded.shape, d_rows.dtype)
    for part in _split(folded):
        out = np.multiply(folded[part], slope, out=dx[part])
        out += shift
        np.subtract(d_folded[part], out, out=out)
        out *= times
    return dx.reshape(rows.shape), d_scale, d_bias


def _normalize_dx_fast(
    sum_products: Kernel,
    pair: tuple[Array, Array],
    mean: Array,
    inverse: Array,
    factor: Array,
    shape: tuple[int, int],
) -> tuple[Array, Array, Array]:
    """Return the result of :func:`normalize_dx` for folded rows and gradients, by compiled kernels."""
    fold = pair[0].shape[1] // shape[1]
    d_scale, d_bias = np.empty_like(mean), np.empty_like(mean)
    sum_products(*pair, mean, d_scale, d_bias)
    d_scale *= inverse
    slope, shift = -factor * inverse * d_scale / shape[0], -factor * d_bias / shape[0]
    dx = np.empty_like(pair[0])
    lanes = (tile(each, fold) for each in (mean, slope, shift, factor))
    fast.combine.get_compiled(dx.dtype)(*pair, *lanes, dx)
    return dx.reshape(shape), d_scale, d_bias


def _split(folded: Array) -> Iterator[slice]:
    """Yield parts of the rows that fit into the cache."""
    step = max(1, _CHUNK // max(1, folded.shape[1] * folded.itemsize))
    for start in range(0, len(folded), step):
        yield slice(start, start + step)
