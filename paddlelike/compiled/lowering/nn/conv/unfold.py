"""unfold: windows of images as columns."""

from __future__ import annotations

from typing import Any

import jax

from paddlelike.compiled.lowerings import lowers


@lowers("unfold")
def unfold(x: Any, *, kernel_sizes: Any, strides: Any, paddings: Any, dilations: Any) -> Any:
    top, left, bottom, right = paddings
    patches = jax.lax.conv_general_dilated_patches(
        x, kernel_sizes, strides, ((top, bottom), (left, right)), rhs_dilation=dilations
    )
    return patches.reshape(x.shape[0], patches.shape[1], -1)
