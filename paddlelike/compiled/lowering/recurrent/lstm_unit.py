"""lstm_unit: one step of an LSTM cell."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from paddlelike.compiled.lowerings import lowers


@lowers("lstm_unit")
def lstm_unit(x: Any, c_prev: Any, *, forget_bias: float) -> tuple[Any, Any]:
    i, f, o, g = jnp.split(x, 4, 1)
    c = jax.nn.sigmoid(f + forget_bias) * c_prev + jax.nn.sigmoid(i) * jnp.tanh(g)
    return c, jax.nn.sigmoid(o) * jnp.tanh(c)
