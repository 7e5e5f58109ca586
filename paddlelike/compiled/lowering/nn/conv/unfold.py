"""unfold: windows of images as columns."""

from __future__ import annotations

from collections.abc import Sequence

import jax
import jax.numpy as jnp

from paddlelike.compiled.lowerings import lowers


def collect_windows(
    x: jax.Array,
    kernel: Sequence[int],
    strides: Sequence[int],
    paddings: Sequence[int],
    dilations: Sequence[int] = (1, 1),
) -> jax.Array:
    """Return the windows of images (N, C, H, W) as (N, C * kernel, rows, columns).

    A convolution would multiply elements outside of a window by 0, and so turn infinities into NaN.
    """
    top, left, bottom, right = paddings
    found = jnp.pad(x, ((0, 0), (0, 0), (top, bottom), (left, right)))
    for axis, (window, stride, dilation) in enumerate(zip(kernel, strides, dilations, strict=True)):
        size = found.shape[axis - 2]
        count = (size - dilation * (window - 1) - 1) // stride + 1
        starts = range(0, dilation * window, dilation)
        found = jnp.stack(
            [
                jax.lax.slice_in_dim(found, start, start + (count - 1) * stride + 1, stride, axis - 2)
                for start in starts
            ],
            2 + axis,
        )
    return found.reshape(x.shape[0], -1, *found.shape[-2:])


@lowers("unfold")
def unfold(
    x: jax.Array, *, kernel_sizes: list[int], strides: list[int], paddings: list[int], dilations: list[int]
) -> jax.Array:
    windows = collect_windows(x, kernel_sizes, strides, paddings, dilations)
    return windows.reshape(*windows.shape[:2], -1)
