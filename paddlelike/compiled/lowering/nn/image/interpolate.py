"""Images in other sizes: the four interpolations."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from paddlelike.compiled.lowerings import lowers
from paddlelike.compiled.packing import LoweringError
from paddlelike.core import Array
from paddlelike.ops.kernels.nn.image.windows import is_channels_last
from paddlelike.ops.nn.image.interpolate import TAPS, scale_sizes
from paddlelike.ops.operands import read_numbers


@lowers("nearest_interp", "bilinear_interp", "trilinear_interp", "bicubic_interp", constants=True)
def interpolate(
    x: jax.Array, out_size: Array | None, size_tensors: list[Array], scale_tensor: Array | None,
    *, out_d: int, out_h: int, out_w: int, scale: float, interp_method: str, align_corners: bool,
    align_mode: int, data_layout: str,
) -> jax.Array:  # fmt: skip
    given = (out_size, scale_tensor, *size_tensors)
    if any(one is not None and not isinstance(one, np.ndarray) for one in given):
        raise LoweringError("the size is a variable")
    last = is_channels_last(data_layout)
    scale = scale if scale_tensor is None else float(scale_tensor.item())
    x = jnp.moveaxis(x, -1, 1) if last else x
    size = [out_d, out_h, out_w][2 - x.ndim :]
    if scale > 0:
        size = scale_sizes(x.shape[2:], [scale] * len(size))
    size = read_numbers(size, out_size, size_tensors)
    if len(size) != x.ndim - 2 or min(size) < 1:
        raise LoweringError(f"the output size is {size}")
    for dim, n in enumerate(size, 2):
        taps = TAPS[interp_method](x.shape[dim], n, align_corners, align_mode, 0.0, x.dtype)
        shape = [-1 if axis == dim else 1 for axis in range(x.ndim)]
        parts = [jnp.take(x, index, dim) * weight.astype(x.dtype).reshape(shape) for index, weight in taps]
        x = sum(parts[1:], parts[0])
    return jnp.moveaxis(x, 1, -1) if last else x
