"""Tensors with borders."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp

from paddlelike.compiled.lowerings import lowers
from paddlelike.compiled.refusals import LoweringError


@lowers("pad")
def pad(x: Any, *, paddings: Any, pad_value: float) -> Any:
    widths = list(zip(paddings[::2], paddings[1::2], strict=True))
    return jnp.pad(x, widths, constant_values=jnp.asarray(pad_value, x.dtype))


@lowers("pad_constant_like")
def pad_constant_like(x: Any, y: Any, *, pad_value: float) -> Any:
    widths = [(0, dim - part) for dim, part in zip(x.shape, y.shape, strict=True)]
    return jnp.pad(y, widths, constant_values=jnp.asarray(pad_value, y.dtype))


@lowers("pad2d")
def pad2d(x: Any, tensor: Any, *, paddings: Any, pad_value: float, mode: str, data_format: str) -> Any:
    if tensor is not None:
        raise LoweringError("Paddings is a variable")
    height, width = (2, 3) if data_format == "NCHW" else (1, 2)
    widths = [(0, 0)] * 4
    widths[height], widths[width] = tuple(paddings[:2]), tuple(paddings[2:])
    if mode == "constant":
        return jnp.pad(x, widths, constant_values=jnp.asarray(pad_value, x.dtype))
    return jnp.pad(x, widths, mode=mode)
