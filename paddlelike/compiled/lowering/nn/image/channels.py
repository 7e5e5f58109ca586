"""Operators on the channels of images: temporal_shift, similarity_focus."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from jax import Array

from paddlelike.compiled.lowerings import lowers
from paddlelike.compiled.tracing.context import OpContext


@lowers("temporal_shift", without={"X": "Out@GRAD"})
def temporal_shift(x: Array, *, seg_num: int, shift_ratio: float) -> Array:
    frames = x.reshape(-1, seg_num, *x.shape[1:])
    first, second = int(x.shape[1] * shift_ratio), int(x.shape[1] * 2 * shift_ratio)
    zero = jnp.zeros_like(frames[:, :1])
    before = jnp.concatenate([zero, frames[:, :-1]], 1)[:, :, :first]
    after = jnp.concatenate([frames[:, 1:], zero], 1)[:, :, first:second]
    return jnp.concatenate([before, after, frames[:, :, second:]], 2).reshape(x.shape)


@lowers("similarity_focus")
def similarity_focus(x: Array, *, axis: int, indexes: list[int], ctx: OpContext) -> Array:
    moved = jnp.moveaxis(x, axis, 1)
    matrices = moved[:, jnp.asarray(indexes)]
    chosen, is_plain = jax.vmap(jax.vmap(_choose))(matrices)
    ctx.require(is_plain, "the order of equal numbers depends on the sort of C++")
    mask = jnp.broadcast_to(chosen.any(1)[:, None], moved.shape).astype(x.dtype)
    return jnp.moveaxis(mask, 1, axis)


def _choose(matrix: Array) -> tuple[Array, Array]:
    """Return a mask of the chosen elements, and whether the choice was unique despite equal values."""
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
