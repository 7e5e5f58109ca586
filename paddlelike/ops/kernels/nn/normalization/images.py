"""Arithmetic with one number per channel of images, and normalization, in any memory order.

Images ``(N, C, *spatial)`` in C order are computed by planes (:mod:`paddlelike.ops.kernels.nn.image.planes`),
others by rows of channels (:mod:`paddlelike.ops.kernels.nn.normalization.batch_statistics`). Results keep the
memory order.
"""

from __future__ import annotations

import math

import numpy as np

from paddlelike.framework.opdef import Array
from paddlelike.ops.kernels.nn.image.layouts import as_layout_of, empty_as, is_last_in_memory
from paddlelike.ops.kernels.nn.image.planes import (
    is_in_planes,
    normalize_planes,
    normalize_planes_dx,
    scale_planes,
)
from paddlelike.ops.kernels.nn.normalization.batch_statistics import (
    normalize,
    normalize_dx,
    restore_shape,
    scale_rows,
    take_rows,
)


def scale_channels(x: Array, factor: Array, shift: Array | None, layout: str) -> Array:
    """Return ``x * factor + shift``, with one factor and one shift per channel."""
    if is_in_planes(x, layout):
        return scale_planes(x, factor, shift)
    return restore_shape(scale_rows(take_rows(x, layout), factor, shift), x, layout)


def normalize_channels(
    x: Array, scale: Array, bias: Array, epsilon: float, layout: str
) -> tuple[Array, Array, Array, Array]:
    """Return ``scale (x - mean) / sqrt(var + epsilon) + bias``, mean, var and ``1 / sqrt(var + epsilon)``.

    Each channel has its mean and biased variance over the whole batch.
    """
    if is_in_planes(x, layout):
        return normalize_planes(x, scale, bias, epsilon)
    y, *statistics = normalize(take_rows(x, layout), scale, bias, epsilon)
    mean, variance, inverse = statistics
    return restore_shape(y, x, layout), mean, variance, inverse


def normalize_channels_dx(
    x: Array, d_y: Array, mean: Array, inverse: Array, factor: Array, layout: str, *, fixed: bool
) -> tuple[Array, Array, Array]:
    """Return ``factor (d - mean(d) - x^ mean(d x^))``, ``sum(d x^)`` and ``sum(d)``.

    Here ``d`` is the gradient and ``x^ = (x - mean) inverse``. With ``fixed`` statistics, which do not depend
    on x, the means are left out.
    """
    if is_in_planes(x, layout):
        return normalize_planes_dx(x, d_y, mean, inverse, factor, fixed=fixed)
    rows, d_rows = take_rows(x, layout), take_rows(d_y, layout)
    dx, d_scale, d_bias = normalize_dx(rows, d_rows, mean, inverse, factor, fixed=fixed)
    return restore_shape(dx, x, layout), d_scale, d_bias


def normalize_instances(x: Array, scale: Array, bias: Array, epsilon: float) -> tuple[Array, Array, Array]:
    """Return :func:`normalize_channels` of each image ``(C, *spatial)`` alone: y, and mean and inverse ``(N,
    C)``.
    """
    if not is_last_in_memory(x):
        planes = np.ascontiguousarray(x).reshape(1, math.prod(x.shape[:2]), math.prod(x.shape[2:]))
        y, mean, _, inverse = normalize_planes(planes, np.tile(scale, len(x)), np.tile(bias, len(x)), epsilon)
        return y.reshape(x.shape), mean.reshape(x.shape[:2]), inverse.reshape(x.shape[:2])
    y = empty_as(x, x.shape, np.result_type(x, scale))
    mean, inverse = np.empty((2, *x.shape[:2]), y.dtype)
    for n in range(len(x)):
        part = slice(n, n + 1)
        y[part], mean[n], _, inverse[n] = normalize_channels(x[part], scale, bias, epsilon, "NCHW")
    return y, mean, inverse


def normalize_instances_dx(
    x: Array, d_y: Array, mean: Array, inverse: Array, scale: Array
) -> tuple[Array, Array, Array]:
    """Return the gradients of :func:`normalize_instances` with respect to images, scale and bias."""
    d_y, factor = as_layout_of(x, d_y), scale * inverse
    if not is_last_in_memory(x):
        shape = (1, x.shape[0] * x.shape[1], -1)
        planes, d_planes = (np.ascontiguousarray(each).reshape(shape) for each in (x, d_y))
        each = (values.reshape(-1) for values in (mean, inverse, factor))
        dx, d_scale, d_bias = normalize_planes_dx(planes, d_planes, *each, fixed=False)
        return dx.reshape(x.shape), d_scale.reshape(x.shape[:2]).sum(0), d_bias.reshape(x.shape[:2]).sum(0)
    dx = empty_as(x, x.shape, d_y.dtype)
    total = np.zeros((2, x.shape[1]), d_y.dtype)
    for n in range(len(x)):
        part = slice(n, n + 1)
        dx[part], *sums = normalize_channels_dx(
            x[part], d_y[part], mean[n], inverse[n], factor[n], "NCHW", fixed=False
        )
        total += sums
    return dx, total[0], total[1]
