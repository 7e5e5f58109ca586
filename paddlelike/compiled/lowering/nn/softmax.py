"""softmax, maxout."""

from __future__ import annotations

import jax.numpy as jnp
from jax import Array

from paddlelike.compiled.lowerings import lowers


@lowers("softmax", traces_gradient=True)
def softmax(x: Array, *, axis: int) -> Array:
    shifted = jnp.maximum(x - x.max(axis, keepdims=True), -64).astype(x.dtype)
    raised = jnp.exp(shifted)
    return raised / raised.sum(axis, keepdims=True)


@lowers("maxout")
def maxout(x: Array, *, groups: int, axis: int) -> Array:
    axis = axis % x.ndim
    shape = (*x.shape[:axis], x.shape[axis] // groups, groups, *x.shape[axis + 1 :])
    parts = x.reshape(shape)
    first = jnp.argmax(parts, axis + 1, keepdims=True)  # of equal ones: its gradient is the whole one
    return jnp.take_along_axis(parts, first, axis + 1).squeeze(axis + 1)
