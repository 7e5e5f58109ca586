"""Normalization of images in C order by the statistics of a batch, and its gradient.

Images ``(N, C, *spatial)`` in C order are planes, one for each image and channel. A channel does not depend
on others, so a few channels at a time are normalized completely while they are in the cache; memory is read
and written once. The results are in C order too.

:mod:`paddlelike.ops.kernels.nn.normalization.batch_statistics` is for images with channels last in memory.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import numpy as np

from paddlelike.framework.opdef import Array
from paddlelike.ops.kernels.nn.image.layouts import is_last_in_memory

_CHUNK: Final = 1 << 20  # bytes of the planes that are worked on at once
_SHORT: Final = (
    768  # elements: with shorter planes, reading repeated numbers is cheaper than a loop over planes
)
_FEW: Final = 8  # images up to which BLAS sums the planes faster than numpy adds them first
_LEAST: Final = 8  # elements of a plane: below, moving the channels costs less than such short sums
# Lengths for which a product of vectors by BLAS is faster than einsum. OpenBLAS may divide one of more than
# 10,000 elements among threads, whose number would then change the rounding.
_DOTS: Final = range(128, 8193)


def is_in_planes(x: Array, layout: str) -> bool:
    """Return whether images are in C order with channels first, and their planes have at least 8 elements."""
    if layout == "NHWC" or x.ndim < 3 or not x.flags.c_contiguous or is_last_in_memory(x):
        return False
    return x.size >= _LEAST * x.shape[0] * x.shape[1]


def scale_planes(x: Array, factor: Array, shift: Array | None) -> Array:
    """Return ``x * factor + shift``, with one factor and one shift per channel; ``shift`` None: no shift."""
    planes = _flatten(x)
    out = np.empty(planes.shape, np.result_type(x, factor))
    for few in _split(planes):
        part = np.multiply(planes[:, few], _spread(factor[few], planes), out=out[:, few])
        if shift is not None:
            part += _spread(shift[few], planes)
    return out.reshape(x.shape)


def normalize_planes(
    x: Array, scale: Array, bias: Array, epsilon: float
) -> tuple[Array, Array, Array, Array]:
    """Return ``scale (x - mean) / sqrt(var + epsilon) + bias``, mean, var and ``1 / sqrt(var + epsilon)``.

    The variance is the biased one.
    """
    planes = _flatten(x)
    count = x.size / x.shape[1]
    out = np.empty(planes.shape, np.result_type(x, scale))
    mean, variance, inverse = (np.empty(len(scale), out.dtype) for _ in range(3))
    for few in _split(planes):
        part = out[:, few]
        mean[few] = _sum(planes[:, few]) / count
        np.subtract(planes[:, few], _spread(mean[few], planes), out=part)
        variance[few] = _sum_products(part, part) / count
        inverse[few] = 1 / np.sqrt(variance[few] + epsilon)
        part *= _spread(scale[few] * inverse[few], planes)
        part += _spread(bias[few], planes)
    return out.reshape(x.shape), mean, variance, inverse


def normalize_planes_dx(
    x: Array, d_y: Array, mean: Array, inverse: Array, factor: Array, *, fixed: bool
) -> tuple[Array, Array, Array]:
    """Return ``factor (d - mean(d) - x^ mean(d x^))``, ``sum(d x^)`` and ``sum(d)``.

    Here ``d`` is the gradient and ``x^ = (x - mean) inverse``. With ``fixed`` statistics, which do not depend
    on x, the means are left out.
    """
    planes, d_planes = _flatten(x), _flatten(np.ascontiguousarray(d_y))
    count = x.size / x.shape[1]
    dx = np.empty(planes.shape, d_y.dtype)
    d_scale, d_bias = np.empty(len(mean), d_y.dtype), np.empty(len(mean), d_y.dtype)
    for few in _split(planes):
        part, d = dx[:, few], d_planes[:, few]
        np.subtract(planes[:, few], _spread(mean[few], planes), out=part)
        d_scale[few] = _sum_products(part, d) * inverse[few]
        d_bias[few] = _sum(d)
        if fixed:
            np.multiply(d, _spread(factor[few], planes), out=part)
            continue
        part *= _spread(d_scale[few] * inverse[few] / -count, planes)
        part += _spread(d_bias[few] / -count, planes)
        part += d
        part *= _spread(factor[few], planes)
    return dx.reshape(x.shape), d_scale, d_bias


def _flatten(x: Array) -> Array:
    """Return planes ``(N, C, M)``, a view."""
    return x.reshape(*x.shape[:2], -1)


def _split(planes: Array) -> Iterator[slice]:
    """Yield groups of channels whose planes fit into the cache together."""
    images, channels, size = planes.shape
    step = max(1, _CHUNK // max(1, images * size * planes.itemsize))
    for start in range(0, channels, step):
        yield slice(start, start + step)


def _spread(values: Array, planes: Array) -> Array:
    """Return numbers of some channels in a shape for arithmetic with their planes: ``(C, M)``, or ``(C,
    1)``.
    """
    size = planes.shape[2]
    return np.repeat(values, size).reshape(len(values), size) if size < _SHORT else values[:, None]


def _sum(planes: Array) -> Array:
    """Return the sums by channel ``(C,)``."""
    if len(planes) < _FEW and planes.shape[2] in _DOTS:
        total: Array = np.add.reduce(planes @ np.ones(planes.shape[2], planes.dtype), axis=0)
        return total
    total = planes[0] if len(planes) == 1 else np.add.reduce(planes, axis=0)
    return np.add.reduce(total, axis=1)


def _sum_products(x: Array, y: Array) -> Array:
    """Return the sums by channel ``(C,)`` of the products of two arrays of planes."""
    if x.shape[2] in _DOTS:
        products: Any = x[:, :, None, :] @ y[:, :, :, None]
        return np.add.reduce(products[:, :, 0, 0], axis=0)
    return np.add.reduce(np.einsum("ncm,ncm->cm", x, y), axis=1)
