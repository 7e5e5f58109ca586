"""Losses of pairs."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from paddlelike.compiled.lowerings import lowers


@lowers("rank_loss")
def rank_loss(label: jax.Array, left: jax.Array, right: jax.Array) -> jax.Array:
    gap = left - right
    return jnp.logaddexp(0, gap) - label * gap
