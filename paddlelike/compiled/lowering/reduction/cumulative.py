"""Sums up to each element."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from paddlelike.compiled.lowerings import lowers
from paddlelike.compiled.values import Packed, Value


@lowers("cumsum", sequences=True)
def cumsum(x: jax.Array | Packed, *, axis: int, exclusive: bool, reverse: bool) -> Value:
    if not isinstance(x, Packed):
        return _add_up(x, axis, exclusive, reverse)
    # Unused rows, which come last, add nothing; in them are other rows, or zeros of a gradient, as before.
    total = _add_up(x.mask(), axis, exclusive, reverse)
    used = x.used.reshape(-1, *[1] * (total.ndim - 1))
    return x.replace(jnp.where(used, total, x.rows))


def _add_up(x: jax.Array, axis: int, exclusive: bool, reverse: bool) -> jax.Array:
    x = jnp.flip(x, axis) if reverse else x
    total = jnp.cumsum(x, axis)
    if exclusive:
        first = [(1, 0) if dim == axis % x.ndim else (0, 0) for dim in range(x.ndim)]
        total = jnp.pad(jax.lax.slice_in_dim(total, 0, x.shape[axis] - 1, axis=axis), first)
    return jnp.flip(total, axis) if reverse else total
