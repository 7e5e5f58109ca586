"""Tensors repeated along their dims."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp

from paddlelike.compiled.lowerings import lowers
from paddlelike.ops.operands import read_numbers


@lowers("expand", constants=True)
def expand(x: Any, times: Any, several: list[Any], *, expand_times: list[int]) -> Any:
    return jnp.tile(x, read_numbers(expand_times, times, several))


@lowers("expand_as")
def expand_as(x: Any, target: Any) -> Any:
    return jnp.tile(x, [size // dim for size, dim in zip(target.shape, x.shape, strict=True)])
