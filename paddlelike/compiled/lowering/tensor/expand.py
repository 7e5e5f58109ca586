"""Tensors repeated along their dims."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from paddlelike.compiled.lowerings import lowers
from paddlelike.core.tensor import Array
from paddlelike.ops.operands import read_numbers


@lowers("expand", constants=True)
def expand(x: jax.Array, times: Array | None, several: list[Array], *, expand_times: list[int]) -> jax.Array:
    return jnp.tile(x, read_numbers(expand_times, times, several))


@lowers("expand_as")
def expand_as(x: jax.Array, target: jax.Array) -> jax.Array:
    return jnp.tile(x, [size // dim for size, dim in zip(target.shape, x.shape, strict=True)])
