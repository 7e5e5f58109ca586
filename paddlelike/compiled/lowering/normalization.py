"""Normalizations: over a batch, a sample, groups and planes of channels; affine channels, lrn, l2 norms."""

from __future__ import annotations

import functools
import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from paddlelike.compiled.refusals import LoweringError
from paddlelike.compiled.table import lowers

Results = tuple[Any, ...]


def _normalize(x: Any, axes: Any, epsilon: float) -> tuple[Any, Any, Any, Any]:
    """Return the normalized values, mean, biased variance, and the inverse of the deviation."""
    mean = jnp.mean(x, axes, keepdims=True)
    centered = x - mean
    variance = jnp.mean(centered * centered, axes, keepdims=True)
    inverse = 1 / jnp.sqrt(variance + epsilon)
    return centered * inverse, mean, variance, inverse


@lowers("batch_norm", without={"Mean": "Scale", "Variance": "Scale"})
def batch_norm(
    x: Any, scale: Any, bias: Any, mean: Any, variance: Any, momentum_tensor: Any,
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
    batch_mean, batch_variance, inverse = map(jax.lax.stop_gradient, found)
    keep = momentum if momentum_tensor is None else momentum_tensor.reshape(()).astype(mean.dtype)
    pairs = ((mean, batch_mean), (variance, batch_variance))
    moved = [old * keep + (1 - keep) * new for old, new in pairs]
    return y, *moved, batch_mean, inverse, None


@functools.partial(jax.custom_vjp, nondiff_argnums=(0, 1))
def _normalize_batch(channel: int, epsilon: float, x: Any, scale: Any, bias: Any) -> Results:
    """Return Y, and of each channel mean, biased variance, and the inverse of the deviation.

    JAX's own gradient reads and writes X about twice as often as this one.
    """
    return _normalize_batch_forward(channel, epsilon, x, scale, bias)[0]


def _normalize_batch_forward(
    channel: int, epsilon: float, x: Any, scale: Any, bias: Any
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


def _along(channel: int, x: Any) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return all axes but that of the channels, and the shape that broadcasts one value per channel."""
    others = tuple(i for i in range(x.ndim) if i != channel)
    return others, tuple(-1 if i == channel else 1 for i in range(x.ndim))


@lowers("inplace_abn")
def inplace_abn(
    x: Any, scale: Any, bias: Any, mean: Any, variance: Any, momentum_tensor: Any,
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
def layer_norm(x: Any, scale: Any, bias: Any, *, epsilon: float, begin_norm_axis: int) -> Results:
    matrix = x.reshape(math.prod(x.shape[:begin_norm_axis]), -1)
    y, mean, variance, _ = _normalize(matrix, 1, epsilon)
    y = y if scale is None else y * scale
    y = y if bias is None else y + bias
    return y.reshape(x.shape), mean.reshape(-1), variance.reshape(-1)


@lowers("group_norm")
def group_norm(x: Any, scale: Any, bias: Any, *, epsilon: float, groups: int, data_layout: str) -> Results:
    last = data_layout == "NHWC"
    channels = x.shape[-1 if last else 1]
    shape = (
        (x.shape[0], -1, groups, channels // groups) if last else (x.shape[0], groups, channels // groups, -1)
    )
    y, mean, variance, _ = _normalize(x.reshape(shape), (1, 3) if last else (2, 3), epsilon)
    per_channel = (1, 1, groups, -1) if last else (1, groups, -1, 1)
    y = y if scale is None else y * scale.reshape(per_channel)
    y = y if bias is None else y + bias.reshape(per_channel)
    return y.reshape(x.shape), mean.reshape(x.shape[0], groups), variance.reshape(x.shape[0], groups)


@lowers("instance_norm")
def instance_norm(x: Any, scale: Any, bias: Any, *, epsilon: float) -> Results:
    y, mean, _, inverse = _normalize(x.reshape(*x.shape[:2], -1), 2, epsilon)
    y = y * scale.reshape(-1, 1) + bias.reshape(-1, 1)
    return y.reshape(x.shape), mean.reshape(-1), inverse.reshape(-1)


@lowers("affine_channel")
def affine_channel(x: Any, scale: Any, bias: Any, *, data_layout: str) -> Any:
    shape = [1] * x.ndim
    shape[1 if data_layout == "NCHW" else -1] = -1
    return x * scale.reshape(shape) + bias.reshape(shape)


@lowers("norm")
def norm(x: Any, *, axis: int, epsilon: float) -> Results:
    length = jnp.sqrt(jnp.sum(x * x, axis, keepdims=True) + epsilon)
    return length, x / length


@lowers("lrn")
def lrn(x: Any, *, n: int, k: float, alpha: float, beta: float, data_format: str) -> Results:
    channel = 3 if data_format == "NHWC" else 1
    before = (n - 1) // 2
    window = [n if i == channel else 1 for i in range(4)]
    pads = [(before, n - 1 - before) if i == channel else (0, 0) for i in range(4)]
    total = jax.lax.reduce_window(x * x, np.zeros((), x.dtype)[()], jax.lax.add, window, [1] * 4, pads)
    middle = k + alpha * total
    return x * middle**-beta, middle
