"""Products with their biases and activations."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from paddlelike.compiled.lowerings import lowers


@lowers("fusion_repeated_fc_relu")
def fusion_repeated_fc_relu(
    x: jax.Array, weights: list[jax.Array], biases: list[jax.Array]
) -> tuple[list[jax.Array], jax.Array]:
    outs = []
    for weight, bias in zip(weights, biases, strict=True):
        x = jnp.maximum(x @ weight + bias.reshape(-1), 0)
        outs.append(x)
    return outs[:-1], outs[-1]
