"""The focal loss."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from paddlelike.compiled.lowerings import lowers


@lowers("sigmoid_focal_loss")
def sigmoid_focal_loss(
    x: jax.Array, label: jax.Array, fg_num: jax.Array, *, gamma: float, alpha: float
) -> jax.Array:
    classes = jnp.arange(1, x.shape[1] + 1)
    positive = label == classes
    negative = (label != -1) & ~positive
    count = jnp.maximum(fg_num.reshape(-1)[0], 1).astype(jnp.float64)
    up = positive * (alpha / count).astype(x.dtype)
    down = negative * ((1 - alpha) / count).astype(x.dtype)
    p, log_p = jax.nn.sigmoid(x), -jnp.logaddexp(jnp.zeros((), x.dtype), -x)
    return -up * (1 - p) ** gamma * log_p - down * p**gamma * (log_p - x)
