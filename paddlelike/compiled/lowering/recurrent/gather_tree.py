"""gather_tree: the beams of a search."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from paddlelike.compiled.lowerings import lowers


@lowers("gather_tree")
def gather_tree(ids: jax.Array, parents: jax.Array) -> jax.Array:
    start = jnp.broadcast_to(jnp.arange(ids.shape[2], dtype=parents.dtype), ids.shape[1:])

    def step(beams: jax.Array, given: tuple[jax.Array, ...]) -> tuple[jax.Array, jax.Array]:
        row, above = given
        return jnp.take_along_axis(above, beams, 1), jnp.take_along_axis(row, beams, 1)

    _, out = jax.lax.scan(step, start, (ids, parents), reverse=True)
    return out
