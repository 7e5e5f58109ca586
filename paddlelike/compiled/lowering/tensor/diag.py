"""Diagonals."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from paddlelike.compiled.lowerings import lowers


@lowers("diag_embed")
def diag_embed(x: jax.Array, *, offset: int, dim1: int, dim2: int) -> jax.Array:
    size = x.shape[-1] + abs(offset)
    place = jnp.arange(x.shape[-1])
    out = jnp.zeros((*x.shape[:-1], size, size), x.dtype)
    out = out.at[..., place + max(-offset, 0), place + max(offset, 0)].set(x)
    return jnp.moveaxis(out, (-2, -1), (dim1 % out.ndim, dim2 % out.ndim))
