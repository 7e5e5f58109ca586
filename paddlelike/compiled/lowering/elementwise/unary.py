"""Elementwise functions that replace numpy kernels which write into their intermediate results."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from paddlelike.compiled.formulas import stands_for
from paddlelike.ops.kernels import special


@stands_for(special.bound_below)
def bound_below(x: jax.Array, bound: float) -> jax.Array:
    return jnp.maximum(x, jnp.asarray(bound, x.dtype))


@stands_for(special.complement)
def complement(x: jax.Array) -> jax.Array:
    return 1 - x


@stands_for(special.softplus)
def softplus(x: jax.Array) -> jax.Array:
    return jnp.logaddexp(x, jnp.zeros((), x.dtype))


stands_for(special.sigmoid)(jax.nn.sigmoid)
stands_for(special.erf)(jax.scipy.special.erf)
