"""im2sequence: windows of images as sequences."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from paddlelike.compiled.lowerings import lowers
from paddlelike.compiled.packing import LoweringError, find_bucket
from paddlelike.compiled.values import Packed


@lowers("im2sequence")
def im2sequence(
    x: jax.Array, y: jax.Array | None, *, kernels: list[int], strides: list[int], paddings: list[int]
) -> Packed:
    if y is not None:
        raise LoweringError("the sizes of the images are values")
    top, left, bottom, right = paddings
    windows = jax.lax.conv_general_dilated_patches(x, kernels, strides, ((top, bottom), (left, right)))
    count, width, high, wide = windows.shape
    rows = jnp.moveaxis(windows, 1, -1).reshape(-1, width)
    size = find_bucket(rows.shape[0])
    unused = jnp.broadcast_to(rows[:1], (size - rows.shape[0], width))
    offsets = jnp.arange(count + 1, dtype=jnp.int32) * (high * wide)
    return Packed(jnp.concatenate([rows, unused]), (offsets,), find_bucket(high * wide))
