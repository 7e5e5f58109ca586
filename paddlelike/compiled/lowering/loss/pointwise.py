"""Losses of each element."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from paddlelike.compiled.lowerings import lowers
from paddlelike.compiled.tracing.context import OpContext
from paddlelike.compiled.tracing.matching import add_unused
from paddlelike.compiled.values import Packed, Value


@lowers("sigmoid_cross_entropy_with_logits")
def sigmoid_cross_entropy_with_logits(
    x: jax.Array, label: jax.Array, *, ignore_index: int, normalize: bool
) -> jax.Array:
    loss = jnp.where(x > 0, x, 0) - x * label + jnp.log1p(jnp.exp(-jnp.abs(x)))
    return _drop_ignored(loss, label, ignore_index, normalize).astype(x.dtype)


@lowers("sigmoid_cross_entropy_with_logits_grad")
def sigmoid_cross_entropy_with_logits_grad(
    d_out: jax.Array, x: jax.Array, label: jax.Array, *, ignore_index: int, normalize: bool
) -> jax.Array:
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


def _ignore_unused(ctx: OpContext, ignore_index: int, *values: Value) -> tuple[Packed, list[jax.Array]]:
    """Return the sequences and the rows of all values.

    The last value holds labels; in unused rows they are set to the ignored label.
    """
    like: Packed = next(value for value in values if isinstance(value, Packed))
    rows = [
        value.rows if isinstance(value, Packed) else add_unused(ctx, value, like, is_gradient=False)
        for value in values
    ]
    used = like.used.reshape(-1, *[1] * (rows[-1].ndim - 1))
    rows[-1] = jnp.where(used, rows[-1], jnp.asarray(ignore_index, rows[-1].dtype))
    return like, rows


def _drop_ignored(values: jax.Array, label: jax.Array, ignore_index: int, normalize: bool) -> jax.Array:
    """Return ``values``, 0 where the label is ignored; if wanted, divided by the number of others."""
    ignored = label.astype(jnp.int64) == ignore_index
    values = jnp.where(ignored, 0, values)
    return values / jnp.maximum((~ignored).sum(), 1).astype(values.dtype) if normalize else values
