"""Norms, distances, cosines."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from paddlelike.compiled.lowerings import Results, lowers


@lowers("cos_sim")
def cos_sim(x: jax.Array, y: jax.Array) -> Results:
    a, b = x.reshape(x.shape[0], -1), y.reshape(y.shape[0], -1)
    a_norm, b_norm = (jnp.sqrt(jnp.maximum((z * z).sum(1, keepdims=True), 1e-8)) for z in (a, b))
    return (a * b).sum(1, keepdims=True) / (a_norm * b_norm), a_norm, b_norm


@lowers("dist")
def dist(x: jax.Array, y: jax.Array, *, p: float) -> jax.Array:
    return jnp.linalg.norm((x - y).reshape(-1), p).reshape(1).astype(x.dtype)


@lowers("norm")
def norm(x: jax.Array, *, axis: int, epsilon: float) -> Results:
    length = jnp.sqrt(jnp.sum(x * x, axis, keepdims=True) + epsilon)
    return length, x / length
