"""similarity_focus: the greatest numbers of matrices, no two of them in one row or column."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from jax import Array

from paddlelike.compiled.lowerings import lowers
from paddlelike.compiled.tracing.context import OpContext


@lowers("similarity_focus")
def similarity_focus(x: Array, *, axis: int, indexes: list[int], ctx: OpContext) -> Array:
    moved = jnp.moveaxis(x, axis, 1)
    matrices = moved[:, jnp.asarray(indexes)]
    chosen, is_plain = jax.vmap(jax.vmap(_choose))(matrices)
    ctx.require(is_plain, "the order of equal numbers depends on the sort of C++")
    mask = jnp.broadcast_to(chosen.any(1)[:, None], moved.shape).astype(x.dtype)
    return jnp.moveaxis(mask, 1, axis)


def _choose(matrix: Array) -> tuple[Array, Array]:
    """Return a mask of the chosen numbers, and whether the choice was unique despite ties."""
    height, width = matrix.shape

    def choose(_: Array, state: Array) -> tuple[Any, Any, Any]:
        free, chosen, is_plain = state
        left = jnp.where(free, matrix, -jnp.inf)
        row, column = jnp.divmod(jnp.argmax(left), width)
        is_plain &= (free & (matrix >= left[row, column])).sum() == 1
        taken = (jnp.arange(height) == row)[:, None] | (jnp.arange(width) == column)
        return free & ~taken, chosen.at[row, column].set(True), is_plain

    start = (jnp.ones(matrix.shape, bool), jnp.zeros(matrix.shape, bool), jnp.ones((), bool))
    _, chosen, is_plain = jax.lax.fori_loop(0, min(height, width), choose, start)
    return chosen, is_plain
