"""Clipped elements."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from paddlelike.compiled.lowerings import lowers
from paddlelike.compiled.values import SparseRows


@lowers("clip_by_norm")
def clip_by_norm(x: jax.Array | SparseRows, *, max_norm: float) -> jax.Array:
    dense = x.to_dense() if isinstance(x, SparseRows) else x
    length = jnp.sqrt(jnp.sum(dense * dense))
    scaled = dense * (max_norm / jnp.where(length == 0, 1, length))
    return jnp.where(length <= max_norm, dense, scaled).astype(dense.dtype)
