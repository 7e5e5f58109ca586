"""unfold: windows of images as columns."""

from __future__ import annotations

import jax

from paddlelike.compiled.lowerings import lowers


@lowers("unfold")
def unfold(
    x: jax.Array, *, kernel_sizes: list[int], strides: list[int], paddings: list[int], dilations: list[int]
) -> jax.Array:
    top, left, bottom, right = paddings
    patches = jax.lax.conv_general_dilated_patches(
        x, kernel_sizes, strides, ((top, bottom), (left, right)), rhs_dilation=dilations
    )
    return patches.reshape(x.shape[0], patches.shape[1], -1)
