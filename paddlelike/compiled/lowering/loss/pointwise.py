"""Losses of each element, and of labels."""

from __future__ import annotations

import math

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from paddlelike.compiled.lowering.loss.cross_entropy import pick_labels
from paddlelike.compiled.lowerings import Results, lowers
from paddlelike.compiled.tracing.context import OpContext
from paddlelike.compiled.tracing.matching import add_unused
from paddlelike.compiled.values import Packed, Value


@lowers("sigmoid_cross_entropy_with_logits")
def sigmoid_cross_entropy_with_logits(x: Array, label: Array, *, ignore_index: int, normalize: bool) -> Array:
    loss = jnp.where(x > 0, x, 0) - x * label + jnp.log1p(jnp.exp(-jnp.abs(x)))
    return _drop_ignored(loss, label, ignore_index, normalize).astype(x.dtype)


@lowers("sigmoid_cross_entropy_with_logits_grad")
def sigmoid_cross_entropy_with_logits_grad(
    d_out: Array, x: Array, label: Array, *, ignore_index: int, normalize: bool
) -> Array:
    return _drop_ignored((jax.nn.sigmoid(x) - label) * d_out, label, ignore_index, normalize).astype(x.dtype)


@lowers("sigmoid_cross_entropy_with_logits", across_rows=True)
def normalized_by_rows(
    x: Value, label: Value, *, ignore_index: int, normalize: bool, ctx: OpContext
) -> Packed:
    like, (rows, label) = _ignore_unused(ctx, ignore_index, x, label)
    return like.replace(
        sigmoid_cross_entropy_with_logits(rows, label, ignore_index=ignore_index, normalize=normalize)
    )


@lowers("sigmoid_cross_entropy_with_logits_grad", across_rows=True)
def normalized_by_rows_grad(
    d_out: Value, x: Value, label: Value, *, ignore_index: int, normalize: bool, ctx: OpContext
) -> Packed:
    like, (d_rows, rows, label) = _ignore_unused(ctx, ignore_index, d_out, x, label)
    found = sigmoid_cross_entropy_with_logits_grad(
        d_rows, rows, label, ignore_index=ignore_index, normalize=normalize
    )
    return like.replace(found, shown=False)


def _ignore_unused(ctx: OpContext, ignore_index: int, *values: Value) -> tuple[Packed, list[Array]]:
    """Return the sequences, and the rows of all arguments with unused rows ignored.

    The last value holds labels; in unused rows they are set to the ignored label.
    """
    like: Packed = next(value for value in values if isinstance(value, Packed))
    rows = [
        value.rows if isinstance(value, Packed) else add_unused(ctx, value, like, is_gradient=False)
        for value in values
    ]
    rows[-1] = like.mask(rows[-1], ignore_index)
    return like, rows


def _drop_ignored(values: Array, label: Array, ignore_index: int, normalize: bool) -> Array:
    """Return ``values`` with 0 at ignored labels, on request divided by the number of labels that are not
    ignored.
    """
    ignored = label.astype(jnp.int64) == ignore_index
    values = jnp.where(ignored, 0, values)
    return values / jnp.maximum((~ignored).sum(), 1).astype(values.dtype) if normalize else values


@lowers("sigmoid_focal_loss")
def sigmoid_focal_loss(x: Array, label: Array, fg_num: Array, *, gamma: float, alpha: float) -> Array:
    classes = jnp.arange(1, x.shape[1] + 1)
    positive = label == classes
    negative = (label != -1) & ~positive
    count = jnp.maximum(fg_num.reshape(-1)[0], 1).astype(jnp.float64)
    up = positive * (alpha / count).astype(x.dtype)
    down = negative * ((1 - alpha) / count).astype(x.dtype)
    least = np.finfo(np.float32).tiny  # the slope of a power below 1 is infinite at 0
    p, rest = jnp.maximum(jax.nn.sigmoid(x), least), jnp.maximum(jax.nn.sigmoid(-x), least)
    log_p = -jnp.logaddexp(jnp.zeros((), x.dtype), -x)
    cut = jnp.maximum(log_p, math.log(least))
    kept = jax.lax.stop_gradient(cut) + (log_p - jax.lax.stop_gradient(log_p))  # with the slope of log_p
    return -up * rest**gamma * kept - down * p**gamma * (log_p - x)


@lowers("nll_loss")
def nll_loss(
    x: Array,
    label: Array,
    weight: Array | None,
    *,
    ignore_index: int,
    reduction: str,
    ctx: OpContext,
) -> Results:
    flat = label.reshape(-1)
    ignored = flat == ignore_index
    safe = jnp.where(ignored, 0, flat)
    ctx.check_below(safe, x.shape[1], "Label holds a value")
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
    x: Array,
    label: Array,
    centers: Array,
    rate: Array,
    *,
    cluster_num: int,
    need_update: bool,
    ctx: OpContext,
) -> Results:
    flat = label.reshape(-1)[: x.shape[0]]
    ctx.check_below(flat, centers.shape[0], "Label holds a value")
    difference = x - jnp.take(centers, flat, axis=0, mode="clip")
    loss = (difference * difference).sum(1, keepdims=True) / 2
    if not need_update:
        return centers, difference, loss
    count = 1 + jnp.zeros(centers.shape[0], jnp.int32).at[flat].add(1)
    total = jnp.zeros_like(centers).at[flat].add(difference)
    step = total * (rate[0] / count[:, None]).astype(x.dtype)
    step = jnp.where(jnp.arange(len(step))[:, None] < cluster_num, step, 0)
    return jax.lax.stop_gradient(centers + step), difference, loss


@lowers("bpr_loss")
def bpr_loss(x: Array, label: Array, *, ctx: OpContext) -> Array:
    flat, picked, _ = pick_labels(x, label, None, ctx)
    others = jnp.arange(x.shape[-1]) != flat[:, None]
    powers = jnp.exp(x.reshape(-1, x.shape[-1]) - picked[:, None])
    terms = jnp.where(others, jnp.log1p(jnp.where(jnp.isinf(powers), 1e20, powers)), 0)
    return (terms.sum(1, keepdims=True) / (x.shape[-1] - 1)).reshape(*x.shape[:-1], 1).astype(x.dtype)


@lowers("bpr_loss_grad")
def bpr_loss_grad(d_y: Array, x: Array, label: Array, *, ctx: OpContext) -> Array:
    flat, picked, _ = pick_labels(x, label, None, ctx)
    others = jnp.arange(x.shape[-1]) != flat[:, None]
    slope = jnp.where(others, jax.nn.sigmoid(x.reshape(-1, x.shape[-1]) - picked[:, None]), 0)
    slope *= d_y.reshape(-1, 1) / (x.shape[-1] - 1)
    return jnp.where(others, slope, -slope.sum(1, keepdims=True)).reshape(x.shape).astype(x.dtype)
