"""Losses of labels: nll, center."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from paddlelike.compiled.lowering.loss.cross_entropy import pick_labels
from paddlelike.compiled.lowerings import Results, lowers
from paddlelike.compiled.tracing.context import OpContext


def check_labels(label: jax.Array, count: int, ctx: OpContext) -> None:
    ctx.check((label >= 0) & (label < count), f"Label holds a value outside of 0 to {count - 1}")


@lowers("nll_loss")
def nll_loss(
    x: jax.Array,
    label: jax.Array,
    weight: jax.Array | None,
    *,
    ignore_index: int,
    reduction: str,
    ctx: OpContext,
) -> Results:
    flat = label.reshape(-1)
    ignored = flat == ignore_index
    safe = jnp.where(ignored, 0, flat)
    check_labels(safe, x.shape[1], ctx)
    weights = jnp.ones(x.shape[1], x.dtype) if weight is None else weight
    weights = jnp.where(ignored, 0, jnp.take(weights, safe, mode="clip")).astype(x.dtype)
    rows = jnp.moveaxis(x, 1, -1).reshape(-1, x.shape[1])
    loss = -weights * jnp.take_along_axis(rows, safe[:, None], 1, mode="clip")[:, 0]
    if reduction == "none":
        return loss.reshape(label.shape), jnp.zeros(1, x.dtype)
    total = weights.sum()
    out = loss.sum()
    if reduction == "mean":
        out = jnp.where(total != 0, out / jnp.where(total != 0, total, 1), out)
    return out.reshape(1), total.reshape(1)


@lowers("center_loss")
def center_loss(
    x: jax.Array, label: jax.Array, centers: jax.Array, rate: jax.Array, *, need_update: bool, ctx: OpContext
) -> Results:
    flat = label.reshape(-1)
    check_labels(flat, centers.shape[0], ctx)
    difference = x - jnp.take(centers, flat, axis=0, mode="clip")
    loss = (difference * difference).sum(1, keepdims=True) / 2
    if not need_update:
        return centers, difference, loss
    count = 1 + jnp.zeros(centers.shape[0], jnp.int32).at[flat].add(1)
    total = jnp.zeros_like(centers).at[flat].add(difference)
    step = total * (rate[0] / count[:, None]).astype(x.dtype)
    return jax.lax.stop_gradient(centers + step), difference, loss


@lowers("bpr_loss")
def bpr_loss(x: jax.Array, label: jax.Array, *, ctx: OpContext) -> jax.Array:
    flat, picked, _ = pick_labels(x, label, None, ctx)
    rows = x.reshape(-1, x.shape[-1])
    others = jnp.arange(x.shape[-1]) != flat[:, None]
    terms = jnp.where(others, jnp.log1p(jnp.exp(rows - picked[:, None])), 0)
    return (terms.sum(1, keepdims=True) / (x.shape[-1] - 1)).reshape(*x.shape[:-1], 1).astype(x.dtype)
