"""Batch normalization over the batches of all workers of a job: sync_batch_norm."""

from __future__ import annotations

import numpy as np

from paddlelike.framework.opdef import Array, Context, register
from paddlelike.framework.opdef.remote import find_workers
from paddlelike.ops.nn.normalization.batch_norm import BatchNorm, BatchNormAttrs


@register
class SyncBatchNorm(BatchNorm):
    """Batch normalization by the mean and variance of all workers' batches together.

    ``BuildStrategy.sync_batch_norm`` replaces ``batch_norm`` by it. The gradients of Scale and Bias are this
    worker's part, as for every parameter.
    """

    type = "sync_batch_norm"
    any_order = reorders = False
    external = True

    @staticmethod
    def forward(  # type: ignore[override]
        ctx: Context,
        x: Array,
        scale: Array,
        bias: Array,
        mean: Array,
        variance: Array,
        momentum_tensor: Array | None,
        *,
        attrs: BatchNormAttrs,
    ) -> tuple[Array | None, ...]:
        if attrs.fixed_statistics:
            return BatchNorm.forward(x, scale, bias, mean, variance, momentum_tensor, attrs=attrs)
        axes, shape = _find_axes(x, attrs)
        workers = find_workers(ctx)
        count = x.size // scale.size
        sums = workers.reduce(ctx, np.append(x.sum(axes, dtype=np.float64), count), "sum")
        batch_mean = (sums[:-1] / sums[-1]).astype(mean.dtype)
        deviation = x - batch_mean.reshape(shape)
        squares = workers.reduce(ctx, np.square(deviation).sum(axes, dtype=np.float64), "sum")
        batch_variance = (squares / sums[-1]).astype(mean.dtype)
        inverse = 1 / np.sqrt(batch_variance + mean.dtype.type(attrs.epsilon))
        momentum = attrs.momentum if momentum_tensor is None else float(momentum_tensor.item())
        for average, batch in ((mean, batch_mean), (variance, batch_variance)):
            average *= momentum
            average += (1 - momentum) * batch
        y = deviation * (scale * inverse).reshape(shape) + bias.reshape(shape)
        return y, mean, variance, batch_mean, inverse, None

    @staticmethod
    def backward(  # type: ignore[override]
        ctx: Context,
        x: Array,
        scale: Array,
        bias: Array,
        saved_mean: Array,
        saved_variance: Array,
        reserve_space: Array | None,
        mean: Array | None,
        variance: Array | None,
        d_y: Array,
        *,
        attrs: BatchNormAttrs,
    ) -> tuple[Array, Array, Array]:
        axes, shape = _find_axes(x, attrs)
        normal = (x - saved_mean.reshape(shape)) * saved_variance.reshape(shape)
        d_bias = d_y.sum(axes, dtype=np.float64)
        d_scale = (d_y * normal).sum(axes, dtype=np.float64)
        factor = (scale * saved_variance).reshape(shape)
        parts = d_scale.astype(scale.dtype), d_bias.astype(scale.dtype)
        if attrs.fixed_statistics:
            return d_y * factor, *parts
        count = x.size // scale.size
        sums = find_workers(ctx).reduce(ctx, np.concatenate([d_bias, d_scale, [count]]), "sum")
        of_bias, of_scale = (
            part.astype(x.dtype).reshape(shape) for part in np.split(sums[:-1] / sums[-1], 2)
        )
        return factor * (d_y - of_bias - normal * of_scale), *parts


def _find_axes(x: Array, attrs: BatchNormAttrs) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return all axes of X except the channels, and the shape in which one number per channel broadcasts."""
    channel = x.ndim - 1 if attrs.data_layout == "NHWC" else 1
    axes = tuple(axis for axis in range(x.ndim) if axis != channel)
    return axes, tuple(x.shape[axis] if axis == channel else 1 for axis in range(x.ndim))
