"""Tensors with borders."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from paddlelike.compiled.formulas import stands_for
from paddlelike.compiled.lowerings import lowers
from paddlelike.compiled.packing import LoweringError
from paddlelike.ops.tensor import pad as pads


@stands_for(pads.replace_elements)
def _replace_elements(x: jax.Array, places: np.ndarray[Any, np.dtype[Any]], values: jax.Array) -> jax.Array:
    return x.reshape(-1).at[places].set(values).reshape(x.shape)


@lowers("pad")
def pad(x: jax.Array, *, paddings: list[int], pad_value: float) -> jax.Array:
    widths = list(zip(paddings[::2], paddings[1::2], strict=True))
    return jnp.pad(x, widths, constant_values=jnp.asarray(pad_value, x.dtype))


@lowers("pad_constant_like")
def pad_constant_like(x: jax.Array, y: jax.Array, *, pad_value: float) -> jax.Array:
    widths = [(0, dim - part) for dim, part in zip(x.shape, y.shape, strict=True)]
    return jnp.pad(y, widths, constant_values=jnp.asarray(pad_value, y.dtype))


@lowers("pad2d")
def pad2d(
    x: jax.Array,
    tensor: jax.Array | None,
    *,
    paddings: list[int],
    pad_value: float,
    mode: str,
    data_format: str,
) -> jax.Array:
    if tensor is not None:
        raise LoweringError("Paddings is a variable")
    height, width = (2, 3) if data_format == "NCHW" else (1, 2)
    top, bottom, left, right = paddings
    widths = [(0, 0)] * 4
    widths[height], widths[width] = (top, bottom), (left, right)
    if mode == "constant":
        return jnp.pad(x, widths, constant_values=jnp.asarray(pad_value, x.dtype))
    return jnp.pad(x, widths, mode=mode)
