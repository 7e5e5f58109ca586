"""Convolutions and pools. Data are taken to channels first, as the kernels do."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from paddlelike.compiled.refusals import LoweringError
from paddlelike.compiled.table import lowers
from paddlelike.ops.kernels import pool as pool_kernels
from paddlelike.ops.kernels.windows import Windows, is_channels_last, make_windows
from paddlelike.ops.nn.conv_transpose import find_output_dims
from paddlelike.ops.nn.pool import PoolAttrs, WindowAttrs

Results = tuple[Any, ...]


def _first(x: Any, data_format: str) -> Any:
    return jnp.moveaxis(x, -1, 1) if is_channels_last(data_format) else x


def _back(x: Any, data_format: str) -> Any:
    return jnp.moveaxis(x, 1, -1) if is_channels_last(data_format) else x


def _dims(rank: int) -> tuple[str, str, str]:
    spatial = "DHW"[3 - rank :]
    return f"NC{spatial}", f"OI{spatial}", f"NC{spatial}"


@lowers("conv2d", "depthwise_conv2d")
def conv2d(
    x: Any, w: Any, bias: Any, residual: Any,
    *, strides: Any, paddings: Any, padding_algorithm: str, groups: int, dilations: Any, data_format: str,
    fuse_residual_connection: bool,
) -> Any:  # fmt: skip
    x = _first(x, data_format)
    windows = make_windows(
        "conv2d", x.shape[2:], w.shape[2:], strides, paddings, dilations, padding_algorithm
    )
    out = _convolve(x, w, windows, groups)
    if bias is not None:
        out = out + bias.reshape(-1, *(1,) * len(windows.kernel))
    out = _back(out, data_format)
    return out + residual if fuse_residual_connection and residual is not None else out


@lowers("conv3d")
def conv3d(
    x: Any, w: Any, residual: Any,
    *, strides: Any, paddings: Any, padding_algorithm: str, groups: int, dilations: Any, data_format: str,
    fuse_residual_connection: bool,
) -> Any:  # fmt: skip
    return conv2d(
        x, w, None, residual, strides=strides, paddings=paddings, padding_algorithm=padding_algorithm,
        groups=groups, dilations=dilations, data_format=data_format,
        fuse_residual_connection=fuse_residual_connection,
    )  # fmt: skip


def _convolve(x: Any, w: Any, windows: Windows, groups: int) -> Any:
    return jax.lax.conv_general_dilated(
        x, w, windows.strides, windows.pads, rhs_dilation=windows.dilations,
        dimension_numbers=_dims(len(windows.kernel)), feature_group_count=groups,
    )  # fmt: skip


# Pools


@lowers("pool2d", "pool3d")
def pool(
    x: Any,
    *, ksize: Any, strides: Any, paddings: Any, global_pooling: bool, adaptive: bool, pooling_type: str,
    exclusive: bool, ceil_mode: bool, padding_algorithm: str, data_format: str,
) -> Any:  # fmt: skip
    x = _first(x, data_format)
    attrs = PoolAttrs(
        ksize=ksize, strides=strides, paddings=paddings, global_pooling=global_pooling, adaptive=adaptive,
        pooling_type=pooling_type, exclusive=exclusive, ceil_mode=ceil_mode,
        padding_algorithm=padding_algorithm, data_format=data_format,
    )  # fmt: skip
    _, axes = attrs.arrange("pool", x.shape[2:])
    if pooling_type == "max":
        out = _reduce(x, axes, jax.lax.max, -np.inf, jnp.max)
        out = jnp.maximum(out, np.finfo(x.dtype).min)  # a window beyond the data
    else:
        total = _reduce(x, axes, jax.lax.add, 0, jnp.sum)
        counts = pool_kernels.count_elements(axes, x.dtype, exclusive=exclusive or adaptive)
        out = total / jnp.asarray(counts, x.dtype)
    return _back(out, data_format)


def _reduce(x: Any, axes: Sequence[pool_kernels.Axis], function: Any, start: Any, whole: Any) -> Any:
    """Return ``function`` over every window; windows of uneven sizes one dim after the other."""
    if all(axis.stride is not None for axis in axes):
        x = x[(..., *(slice(axis.size + min(_pad_after(axis), 0)) for axis in axes))]
        return jax.lax.reduce_window(
            x, np.asarray(start, x.dtype)[()], function,
            (1, 1, *(axis.kernel for axis in axes)), (1, 1, *(axis.stride or 1 for axis in axes)),
            ((0, 0), (0, 0), *((axis.pad[0], max(_pad_after(axis), 0)) for axis in axes)),
        )  # fmt: skip
    for dim, axis in enumerate(axes, 2):
        parts = [jax.lax.slice_in_dim(x, a, b, axis=dim) for a, b in axis.clipped]
        x = jnp.stack([whole(part, dim) for part in parts], dim)
    return x


def _pad_after(axis: pool_kernels.Axis) -> int:
    """Return the padding after the data with which there are as many windows as asked for, no more."""
    assert axis.stride is not None
    return (len(axis.spans) - 1) * axis.stride + axis.kernel - axis.size - axis.pad[0]


@lowers("max_pool2d_with_index", "max_pool3d_with_index")
def max_pool_with_index(
    x: Any, *, ksize: Any, strides: Any, paddings: Any, global_pooling: bool, adaptive: bool
) -> Results:
    attrs = WindowAttrs(
        ksize=ksize, strides=strides, paddings=paddings, global_pooling=global_pooling, adaptive=adaptive
    )
    _, axes = attrs.count_windows("max_pool", x.shape[2:])
    if any(axis.stride is None for axis in axes):
        raise LoweringError("windows of uneven sizes")
    padded = jnp.pad(
        x, [(0, 0), (0, 0), *((axis.pad[0], max(_pad_after(axis), 0)) for axis in axes)],
        constant_values=np.finfo(x.dtype).min,
    )  # fmt: skip
    places = np.stack(np.meshgrid(*[np.arange(axis.kernel) for axis in axes], indexing="ij"), -1)
    values, indexes = [], []
    for place in places.reshape(-1, len(axes)):
        where = tuple(axis.at(int(p)) for axis, p in zip(axes, place, strict=True))
        values.append(padded[(..., *where)])
        starts = [
            [a + int(p) - axis.pad[0] for a, _ in axis.spans] for axis, p in zip(axes, place, strict=True)
        ]
        indexes.append(pool_kernels.flatten_indices(starts, axes))
    stacked = jnp.stack(values)
    first = jnp.argmax(stacked, 0)
    known = jnp.stack([jnp.asarray(one, jnp.int32) for one in indexes])[:, None, None]
    index = jnp.take_along_axis(jnp.broadcast_to(known, stacked.shape), first[None], 0)[0]
    return jnp.take_along_axis(stacked, first[None], 0)[0], index


# Transposed convolutions


@lowers("conv2d_transpose", "depthwise_conv2d_transpose", "conv3d_transpose")
def conv_transpose(
    x: Any, w: Any, *bias: Any,
    strides: Any, paddings: Any, padding_algorithm: str, groups: int, dilations: Any, data_format: str,
    output_size: Any,
) -> Any:  # fmt: skip
    x = _first(x, data_format)
    windows = make_windows(
        "conv_transpose", x.shape[2:], w.shape[2:], strides, paddings, dilations, padding_algorithm
    )
    dims = find_output_dims("conv_transpose", windows, x.shape[2:], output_size)
    used = x.shape[1] // groups * groups  # as in Fluid, channels after the last whole group are ignored
    x, w = x[:, :used], w[:used]
    source = jax.ShapeDtypeStruct((x.shape[0], w.shape[1] * groups, *dims), x.dtype)
    (out,) = jax.linear_transpose(lambda data: _convolve(data, w, windows, groups), source)(x)
    if bias and bias[0] is not None:
        out = out + bias[0].reshape(-1, *(1,) * len(windows.kernel))
    return _back(out, data_format)
