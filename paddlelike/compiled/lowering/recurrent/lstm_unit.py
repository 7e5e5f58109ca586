"""lstm_unit: one step of an LSTM cell."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from paddlelike.compiled.lowerings import lowers


@lowers("lstm_unit")
def lstm_unit(x: jax.Array, c_prev: jax.Array, *, forget_bias: float) -> tuple[jax.Array, jax.Array]:
    i, f, o, g = jnp.split(x, 4, 1)
    c = jax.nn.sigmoid(f + forget_bias) * c_prev + jax.nn.sigmoid(i) * jnp.tanh(g)
    return c, jax.nn.sigmoid(o) * jnp.tanh(c)
