"""Pools of several sizes side by side, and the inverse of a pool."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import Array

from paddlelike.compiled.lowering.nn.image.pool import reduce_windows
from paddlelike.compiled.lowerings import lowers
from paddlelike.compiled.tracing.context import OpContext
from paddlelike.ops.kernels.nn.image import pool as pool_kernels
from paddlelike.ops.nn.image.pyramid_pool import list_levels


@lowers("spp")
def spp(x: Array, *, pyramid_height: int, pooling_type: str) -> Array:
    outs = []
    for _, axes in list_levels(x.shape, pyramid_height):
        if pooling_type == "max":
            out = reduce_windows(x, axes, jax.lax.max, -jnp.inf, jnp.max)
        else:
            counts = pool_kernels.count_elements(axes, x.dtype, exclusive=True)
            out = reduce_windows(x, axes, jax.lax.add, 0, jnp.sum) / jnp.asarray(counts, x.dtype)
        outs.append(out.reshape(x.shape[0], -1))
    return jnp.concatenate(outs, 1)


@lowers("unpool")
def unpool(
    x: Array,
    indices: Array,
    *,
    ksize: list[int],
    strides: list[int],
    paddings: list[int],
    ctx: OpContext,
) -> Array:
    height, width = (
        (size - 1) * stride - 2 * pad + kernel
        for size, kernel, stride, pad in zip(x.shape[2:], ksize, strides, paddings, strict=True)
    )
    ctx.check((indices >= 0) & (indices < height * width), "Indices are not pixels of Out")
    flat = indices.reshape(x.shape[0] * x.shape[1], -1)
    out = jnp.zeros((flat.shape[0], height * width), x.dtype)
    out = out.at[jnp.arange(flat.shape[0])[:, None], flat].set(x.reshape(flat.shape))
    return out.reshape(*x.shape[:2], height, width)


@lowers("unpool_grad")
def unpool_grad(x: Array, indices: Array, out: Array, d_out: Array) -> Array:
    flat = indices.reshape(*x.shape[:2], -1)
    return jnp.take_along_axis(d_out.reshape(*x.shape[:2], -1), flat, 2, mode="clip").reshape(x.shape)
