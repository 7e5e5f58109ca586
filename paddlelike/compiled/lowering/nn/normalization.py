"""Normalizations: over a batch, a sample, groups and planes of channels; affine channels, lrn, l2 norms."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterable

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from paddlelike.compiled.lowerings import Results, lowers
from paddlelike.compiled.packing import LoweringError
from paddlelike.compiled.tracing.context import OpContext
from paddlelike.compiled.values import Packed
from paddlelike.framework import follows_fluid


def _normalize(x: Array, axes: int | tuple[int, int], epsilon: float) -> tuple[Array, Array, Array, Array]:
    """Return the normalized values, mean, biased variance, and the inverse of the deviation."""
    mean = jnp.mean(x, axes, keepdims=True)
    centered = x - mean
    variance = jnp.mean(centered * centered, axes, keepdims=True)
    inverse = 1 / jnp.sqrt(variance + epsilon)
    return centered * inverse, mean, variance, inverse


@lowers("batch_norm", without={"Mean": "Scale", "Variance": "Scale"})
def batch_norm(
    x: Array, scale: Array, bias: Array, mean: Array, variance: Array,
    momentum_tensor: Array | None,
    *, momentum: float, epsilon: float, is_test: bool, use_global_stats: bool, trainable_statistics: bool,
    data_layout: str,
) -> Results:  # fmt: skip
    channel = x.ndim - 1 if data_layout == "NHWC" else 1
    shape = [1] * x.ndim
    shape[channel] = -1
    if use_global_stats or (is_test and not trainable_statistics):
        inverse = 1 / jnp.sqrt(variance + epsilon)
        factor = scale * inverse
        y = x * factor.reshape(shape) + (bias - mean * factor).reshape(shape)
        return y, mean, variance, mean, inverse, None
    if x.size == scale.size:  # one element for each channel: as in Paddle, nothing happens
        return x, mean, variance, jnp.zeros_like(mean), jnp.zeros_like(mean), None
    y, *found = _normalize_batch(channel, epsilon, x, scale, bias)
    return y, *_move_statistics(mean, variance, found, momentum, momentum_tensor)


def _move_statistics(
    mean: Array,
    variance: Array,
    found: Iterable[Array],
    momentum: float,
    tensor: Array | None,
) -> Results:
    """Return the moving statistics, the batch's mean and inverse deviation, and None for the reserved
    space.
    """
    batch_mean, batch_variance, inverse = map(jax.lax.stop_gradient, found)
    keep = momentum if tensor is None else tensor.reshape(()).astype(mean.dtype)
    pairs = ((mean, batch_mean), (variance, batch_variance))
    moved = [old * keep + (1 - keep) * new for old, new in pairs]
    return *moved, batch_mean, inverse, None


@lowers("batch_norm", across_rows=True)
def batch_norm_of_rows(
    x: Packed, scale: Array, bias: Array, mean: Array, variance: Array,
    momentum_tensor: Array | None,
    *, momentum: float, epsilon: float, is_test: bool, use_global_stats: bool, trainable_statistics: bool,
    data_layout: str, ctx: OpContext,
) -> Results:  # fmt: skip
    """Normalize the rows in use by their own statistics or by the moving statistics."""
    if use_global_stats or (is_test and not trainable_statistics):
        y, *others = batch_norm(
            x.rows, scale, bias, mean, variance, momentum_tensor, momentum=momentum, epsilon=epsilon,
            is_test=is_test, use_global_stats=use_global_stats, trainable_statistics=trainable_statistics,
            data_layout=data_layout,
        )  # fmt: skip
        return x.replace(y), *others
    axes, shape = _along(x.rows.ndim - 1 if data_layout == "NHWC" else 1, x.rows)
    count = x.total * (x.rows.size // (x.rows.shape[0] * scale.size))
    ctx.require(count > 1, "a batch with one element per channel has no statistics")
    size = jnp.maximum(count, 1).astype(x.rows.dtype)
    batch_mean = x.mask().sum(axes) / size
    centered = x.rows - batch_mean.reshape(shape)
    batch_variance = x.mask(centered * centered).sum(axes) / size
    inverse = 1 / jnp.sqrt(batch_variance + epsilon)
    y = centered * (inverse * scale).reshape(shape) + bias.reshape(shape)
    found = (batch_mean, batch_variance, inverse)
    return x.replace(y), *_move_statistics(mean, variance, found, momentum, momentum_tensor)


@functools.partial(jax.custom_vjp, nondiff_argnums=(0, 1))
def _normalize_batch(channel: int, epsilon: float, x: Array, scale: Array, bias: Array) -> Results:
    """Return Y, and the mean, biased variance and inverse deviation of each channel.

    JAX's own gradient reads and writes X about twice as often.
    """
    return _normalize_batch_forward(channel, epsilon, x, scale, bias)[0]


def _normalize_batch_forward(
    channel: int, epsilon: float, x: Array, scale: Array, bias: Array
) -> tuple[Results, Results]:
    axes, shape = _along(channel, x)
    mean = jnp.mean(x, axes)
    centered = x - mean.reshape(shape)
    variance = jnp.mean(centered * centered, axes)
    inverse = 1 / jnp.sqrt(variance + epsilon)
    y = centered * inverse.reshape(shape) * scale.reshape(shape) + bias.reshape(shape)
    return (y, mean, variance, inverse), (x, scale, mean, inverse)


def _normalize_batch_backward(channel: int, epsilon: float, kept: Results, gradients: Results) -> Results:
    x, scale, mean, inverse = kept
    d_y = gradients[0]
    axes, shape = _along(channel, x)
    count = x.size // scale.size
    centered = x - mean.reshape(shape)
    d_bias = jnp.sum(d_y, axes)
    d_scale = jnp.sum(d_y * centered, axes) * inverse
    slope = (d_scale * inverse / count).reshape(shape)
    d_x = (scale * inverse).reshape(shape) * (d_y - (d_bias / count).reshape(shape) - centered * slope)
    return d_x, d_scale, d_bias


_normalize_batch.defvjp(_normalize_batch_forward, _normalize_batch_backward)


def _along(channel: int, x: Array) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return all axes except the channels, and the shape that broadcasts one value per channel."""
    others = tuple(i for i in range(x.ndim) if i != channel)
    return others, tuple(-1 if i == channel else 1 for i in range(x.ndim))


@lowers("inplace_abn")
def inplace_abn(
    x: Array, scale: Array, bias: Array, mean: Array, variance: Array,
    momentum_tensor: Array | None,
    *, momentum: float, epsilon: float, is_test: bool, use_global_stats: bool, trainable_statistics: bool,
    data_layout: str, activation: str, alpha: float,
) -> Results:  # fmt: skip
    y, *statistics = batch_norm(
        x, scale, bias, mean, variance, momentum_tensor, momentum=momentum, epsilon=epsilon, is_test=is_test,
        use_global_stats=use_global_stats, trainable_statistics=trainable_statistics, data_layout=data_layout,
    )  # fmt: skip
    if activation == "leaky_relu":
        y = jnp.where(y > 0, y, alpha * y)
    elif activation == "elu":
        y = jnp.where(y > 0, y, alpha * jnp.expm1(jnp.minimum(y, 0)))
    elif activation not in ("", "identity"):
        raise LoweringError(f"activation is {activation!r}")
    return y, *statistics


@lowers("layer_norm")
def layer_norm(
    x: Array, scale: Array | None, bias: Array | None, *, epsilon: float, begin_norm_axis: int
) -> Results:
    matrix = x.reshape(math.prod(x.shape[:begin_norm_axis]), -1)
    y, mean, variance, _ = _normalize(matrix, 1, epsilon)
    y = y if scale is None else y * scale
    y = y if bias is None else y + bias
    return y.reshape(x.shape), mean.reshape(-1), variance.reshape(-1)


@lowers("group_norm")
def group_norm(
    x: Array,
    scale: Array | None,
    bias: Array | None,
    *,
    epsilon: float,
    groups: int,
    data_layout: str,
) -> Results:
    grouped, axes, per_channel = _group_channels(x, groups, data_layout)
    y, mean, variance, _ = _normalize(grouped, axes, epsilon)
    y = y if scale is None else y * scale.reshape(per_channel)
    y = y if bias is None else y + bias.reshape(per_channel)
    return y.reshape(x.shape), mean.reshape(x.shape[0], groups), variance.reshape(x.shape[0], groups)


@lowers("group_norm_grad")
def group_norm_grad(
    y: Array,
    scale: Array | None,
    bias: Array | None,
    variance: Array,
    d_y: Array,
    *,
    epsilon: float,
    groups: int,
    data_layout: str,
) -> Results:
    """Return the gradients computed from Y, as in Paddle; with a scale of 0, normalized values count as 0."""
    (normal, axes, per_channel), g = _group_channels(y, groups, data_layout), d_y
    g = g.reshape(normal.shape)
    kept = tuple(i for i in range(4) if per_channel[i] == 1)
    d_bias = g.sum(kept).reshape(-1)
    if bias is not None:
        normal = normal - bias.reshape(per_channel)
    if scale is not None:
        factor = scale.reshape(per_channel)
        normal = jnp.where(factor != 0, normal / jnp.where(factor != 0, factor, 1), 0)
    d_scale = (g * normal).sum(kept).reshape(-1)
    g = g if scale is None else g * factor
    along = (g * normal).mean(axes, keepdims=True)
    d_x = g - normal * along
    if scale is not None or not follows_fluid("group_norm_gradient"):
        d_x -= g.mean(axes, keepdims=True)
    d_x /= jnp.sqrt(variance.reshape(along.shape) + epsilon)
    return d_x.reshape(y.shape), d_scale, d_bias


def _group_channels(x: Array, groups: int, data_layout: str) -> tuple[Array, tuple[int, int], list[int]]:
    """Return x by groups, the axes of a group, and the shape of one number for each channel."""
    if x.shape[-1 if data_layout == "NHWC" else 1] % groups:
        raise LoweringError("its groups have several sizes")
    if data_layout == "NHWC":
        size = x.shape[-1] // groups
        return x.reshape(x.shape[0], -1, groups, size), (1, 3), [1, 1, groups, size]
    size = x.shape[1] // groups
    return x.reshape(x.shape[0], groups, size, -1), (2, 3), [1, groups, size, 1]


@lowers("instance_norm", without={"Bias": "Scale"})
def instance_norm(x: Array, scale: Array, bias: Array, *, epsilon: float) -> Results:
    y, mean, _, inverse = _normalize(x.reshape(*x.shape[:2], -1), 2, epsilon)
    y = y * scale.reshape(-1, 1) + bias.reshape(-1, 1)
    return y.reshape(x.shape), mean.reshape(-1), inverse.reshape(-1)


@lowers("affine_channel", without={"Bias": "Scale"})
def affine_channel(x: Array, scale: Array, bias: Array, *, data_layout: str) -> Array:
    shape = [1] * x.ndim
    shape[1 if data_layout == "NCHW" else -1] = -1
    return x * scale.reshape(shape) + bias.reshape(shape)


@lowers("lrn")
def lrn(x: Array, *, n: int, k: float, alpha: float, beta: float, data_format: str) -> Results:
    channel = 3 if data_format == "NHWC" else 1
    before = (n - 1) // 2
    window = [n if i == channel else 1 for i in range(4)]
    pads = [(before, n - 1 - before) if i == channel else (0, 0) for i in range(4)]
    total = jax.lax.reduce_window(x * x, np.zeros((), x.dtype)[()], jax.lax.add, window, [1] * 4, pads)
    middle = k + alpha * total
    return x * middle**-beta, middle
