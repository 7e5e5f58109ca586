"""Images in other sizes: the four interpolations."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp

from paddlelike.compiled.refusals import LoweringError
from paddlelike.compiled.table import lowers
from paddlelike.ops.kernels.images.windows import is_channels_last
from paddlelike.ops.nn.images.interpolate import TAPS


@lowers("nearest_interp", "bilinear_interp", "trilinear_interp", "bicubic_interp")
def interpolate(
    x: Any, out_size: Any, size_tensors: list[Any], scale_tensor: Any,
    *, out_d: int, out_h: int, out_w: int, scale: float, interp_method: str, align_corners: bool,
    align_mode: int, data_layout: str,
) -> Any:  # fmt: skip
    if out_size is not None or size_tensors or scale_tensor is not None:
        raise LoweringError("the size is a variable")
    last = is_channels_last(data_layout)
    x = jnp.moveaxis(x, -1, 1) if last else x
    size = [out_d, out_h, out_w][2 - x.ndim :]
    if scale > 0:
        size = [int(n * scale) for n in x.shape[2:]]
    for dim, n in enumerate(size, 2):
        taps = TAPS[interp_method](x.shape[dim], n, align_corners, align_mode)
        shape = [-1 if axis == dim else 1 for axis in range(x.ndim)]
        parts = [jnp.take(x, index, dim) * weight.astype(x.dtype).reshape(shape) for index, weight in taps]
        x = sum(parts[1:], parts[0])
    return jnp.moveaxis(x, 1, -1) if last else x
