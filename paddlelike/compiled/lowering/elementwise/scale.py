"""Scaled and clipped elements, sums up to each."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from paddlelike.compiled.lowerings import lowers
from paddlelike.compiled.values import Packed, SparseRows


@lowers("cumsum", sequences=True)
def cumsum(x: Any, *, axis: int, exclusive: bool, reverse: bool) -> Any:
    if not isinstance(x, Packed):
        return _add_up(x, axis, exclusive, reverse)
    # Unused rows, which come last, add nothing; in them are other rows, or zeros of a gradient, as before.
    total = _add_up(x.mask(), axis, exclusive, reverse)
    used = x.used.reshape(-1, *[1] * (total.ndim - 1))
    return x.replace(jnp.where(used, total, x.rows))


def _add_up(x: Any, axis: int, exclusive: bool, reverse: bool) -> Any:
    x = jnp.flip(x, axis) if reverse else x
    total = jnp.cumsum(x, axis)
    if exclusive:
        first = [(1, 0) if dim == axis % x.ndim else (0, 0) for dim in range(x.ndim)]
        total = jnp.pad(jax.lax.slice_in_dim(total, 0, x.shape[axis] - 1, axis=axis), first)
    return jnp.flip(total, axis) if reverse else total


@lowers("clip_by_norm")
def clip_by_norm(x: Any, *, max_norm: float) -> Any:
    if isinstance(x, SparseRows):
        x = x.to_dense()
    length = jnp.sqrt(jnp.sum(x * x))
    scaled = x * (max_norm / jnp.where(length == 0, 1, length))
    return jnp.where(length <= max_norm, x, scaled).astype(x.dtype)
