"""top_k, argsort."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from paddlelike.compiled.lowerings import Results, lowers
from paddlelike.compiled.refusals import LoweringError


@lowers("top_k")
def top_k(x: jax.Array, k_tensor: jax.Array | None, *, k: int) -> Results:
    if k_tensor is not None:
        raise LoweringError("K is a variable")
    values, indices = jax.lax.top_k(x, k)
    return values, indices.astype(jnp.int64)


@lowers("argsort")
def argsort(x: jax.Array, *, axis: int, descending: bool) -> Results:
    order = jnp.argsort(-x if descending else x, axis, stable=True)
    return jnp.take_along_axis(x, order, axis), order.astype(jnp.int64)
