"""Cross entropies of classes."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import Array

from paddlelike.compiled.lowerings import lowers
from paddlelike.compiled.packing import LoweringError
from paddlelike.compiled.tracing.context import OpContext
from paddlelike.framework import follows_fluid

_LARGEST = 1e20  # Paddle's number for an infinite logarithm


def _negative_log(x: Array) -> Array:
    return jnp.minimum(-jnp.log(x), _LARGEST).astype(x.dtype)


def pick_labels(
    x: Array, label: Array, ignore_index: int | None, ctx: OpContext
) -> tuple[Array, Array, Array]:
    """Return the labels, the elements of ``x`` (N, classes) at the labels, and a mask of ignored labels."""
    if jnp.issubdtype(label.dtype, jnp.floating):
        raise LoweringError("Label holds floating-point numbers")
    flat = label.reshape(-1)
    ignored = jnp.zeros(flat.shape, bool) if ignore_index is None else flat == ignore_index
    classes = x.shape[-1]
    ctx.check_below(flat, classes, "Label holds a value", ignored)
    flat = jnp.where(ignored, 0, flat)
    matrix = x.reshape(-1, classes)
    return flat, jnp.take_along_axis(matrix, flat[:, None], 1, mode="clip")[:, 0], ignored


@lowers("cross_entropy")
def cross_entropy(x: Array, label: Array, *, soft_label: bool, ignore_index: int, ctx: OpContext) -> Array:
    if soft_label:
        return (label * _negative_log(x)).sum(-1, keepdims=True)
    _, picked, ignored = pick_labels(x, label, ignore_index, ctx)
    safe = jnp.where(ignored, 1, picked)
    return jnp.where(ignored, 0, _negative_log(safe)).reshape(label.shape).astype(x.dtype)


@lowers("cross_entropy_grad")
def cross_entropy_grad(
    d_y: Array, x: Array, label: Array, *, soft_label: bool, ignore_index: int, ctx: OpContext
) -> Array:
    if soft_label:
        return -(d_y * label / x)
    flat, picked, ignored = pick_labels(x, label, ignore_index, ctx)
    values = jnp.where(ignored, 0, -(d_y.reshape(-1) / picked))
    return _scatter(values, flat, x)


def _scatter(values: Array, labels: Array, like: Array) -> Array:
    out = jnp.zeros((labels.shape[0], like.shape[-1]), values.dtype)
    return out.at[jnp.arange(labels.shape[0]), labels].set(values).reshape(like.shape)


@lowers("cross_entropy2")
def cross_entropy2(x: Array, label: Array, *, ignore_index: int, ctx: OpContext) -> tuple[Array, ...]:
    _, picked, ignored = pick_labels(x, label, ignore_index, ctx)
    y = jnp.where(ignored, 0, _negative_log(jnp.where(ignored, 1, picked))).astype(x.dtype)
    match = jnp.where(ignored, 0, picked)
    return y.reshape(label.shape), jnp.zeros((*x.shape, 0), x.dtype), match.reshape(*x.shape[:-1], 1)


@lowers("cross_entropy_grad2")
def cross_entropy_grad2(
    d_y: Array,
    match: Array,
    label: Array,
    x_shape: Array,
    *,
    ignore_index: int,
    ctx: OpContext,
) -> Array:
    like = jax.ShapeDtypeStruct(x_shape.shape[:-1], match.dtype)
    flat = label.reshape(-1)
    ignored = flat == ignore_index
    values = jnp.where(ignored, 0, -(d_y.reshape(-1) / jnp.where(ignored, 1, match.reshape(-1))))
    return _scatter(values, jnp.where(ignored, 0, flat), like)


@lowers("softmax_with_cross_entropy")
def softmax_with_cross_entropy(
    logits: Array, label: Array, *, soft_label: bool, ignore_index: int, axis: int, ctx: OpContext
) -> tuple[Array, Array]:
    shifted = logits - logits.max(axis, keepdims=True)
    shifted = jnp.maximum(shifted, -64).astype(logits.dtype)
    raised = jnp.exp(shifted)
    total = raised.sum(axis, keepdims=True)
    softmax = raised / total
    logs = shifted - jnp.log(total)
    if soft_label:
        return softmax, -(label * logs).sum(axis, keepdims=True)
    last, moved = jnp.moveaxis(logs, axis, -1), jnp.moveaxis(label, axis, -1)
    _, picked, ignored = pick_labels(last, moved, ignore_index, ctx)
    loss = jnp.where(ignored, 0, -picked).reshape(moved.shape).astype(logits.dtype)
    return softmax, jnp.moveaxis(loss, -1, axis)


@lowers("softmax_with_cross_entropy_grad")
def softmax_with_cross_entropy_grad(
    d_loss: Array, softmax: Array, label: Array, *, soft_label: bool, ignore_index: int, axis: int
) -> Array:
    if soft_label:
        return (softmax - label) * d_loss
    last = jnp.moveaxis(softmax, axis, -1)
    moved = jnp.moveaxis(label, axis, -1)[..., 0]
    hot = jax.nn.one_hot(moved, last.shape[-1], dtype=last.dtype)
    d_last = jnp.moveaxis(d_loss, axis, -1)[..., 0]
    if not follows_fluid("ignored_labels"):
        d_last = jnp.where(moved == ignore_index, 0, d_last).astype(last.dtype)
    return jnp.moveaxis((last - hot) * d_last[..., None], -1, axis)
