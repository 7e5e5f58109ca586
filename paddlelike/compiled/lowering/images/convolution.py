"""Convolutions and pools. Data are taken to channels first, as the kernels do."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Any, Final

import jax
import jax.numpy as jnp
import numpy as np

from paddlelike.compiled.backend import computes_on_cpu
from paddlelike.compiled.refusals import LoweringError
from paddlelike.compiled.table import lowers
from paddlelike.ops.kernels.images import pool as pool_kernels
from paddlelike.ops.kernels.images.windows import Windows, is_channels_last, make_windows
from paddlelike.ops.nn.convolution.conv_transpose import find_output_dims
from paddlelike.ops.nn.images.pool import PoolAttrs, WindowAttrs

Results = tuple[Any, ...]

_MOST_SHIFTS: Final = 64  # elements of a kernel, each of which makes a program longer


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
    size = math.prod(windows.kernel)
    if computes_on_cpu() and (groups > 1 or size == 1) and size <= _MOST_SHIFTS:
        if groups == x.shape[1] == w.shape[0]:
            return _convolve_planes(x, w, windows)
        # The columns take ``size`` times the memory of x: they are computed again for the gradient.
        multiply = functools.partial(_multiply_columns, windows=windows, groups=groups)
        return multiply(x, w) if size == 1 else jax.checkpoint(multiply)(x, w)
    return jax.lax.conv_general_dilated(
        x, w, windows.strides, windows.pads, rhs_dilation=windows.dilations,
        dimension_numbers=_dims(len(windows.kernel)), feature_group_count=groups,
    )  # fmt: skip


# XLA for CPUs computes the gradients of kernels of one element, and all of a convolution with groups, up
# to 400 times as slowly as these formulas. Processor milliseconds on one thread, forward, gradients of X and
# of Filter: 256 kernels of 1 x 1 on 4 x 64 x 56 x 56: 12, 14, 27, here 10, 11, 8; 64 groups of 3 x 3 on
# 4 x 64 x 32 x 32: 7.8, 7.8, 3.8, here 0.2, 0.7, 1.7; 32 groups of 3 x 3 on 2 x 128 x 14 x 14: 1.3, 1.3, 228,
# here 0.6, 0.4, 0.6.


def _list_shifts(x: Any, windows: Windows) -> list[Any]:
    """Return, for each element of a kernel, the elements of ``x`` that it meets: shape (N, C, *out)."""
    x = jnp.pad(x, [(0, 0), (0, 0), *windows.pads])
    steps = zip(x.shape[2:], windows.extent, windows.strides, strict=True)
    spans = [(size - extent) // stride * stride + 1 for size, extent, stride in steps]
    found = []
    for place in np.ndindex(*windows.kernel):
        starts = [p * d for p, d in zip(place, windows.dilations, strict=True)]
        stops = [start + span for start, span in zip(starts, spans, strict=True)]
        found.append(jax.lax.slice(x, (0, 0, *starts), (*x.shape[:2], *stops), (1, 1, *windows.strides)))
    return found


def _convolve_planes(x: Any, w: Any, windows: Windows) -> Any:
    """Return a convolution of each channel with a kernel of its own: products that XLA fuses."""
    factors = w.reshape(1, w.shape[0], -1, *[1] * len(windows.kernel))
    return sum(shifted * factors[:, :, i] for i, shifted in enumerate(_list_shifts(x, windows)))


def _multiply_columns(x: Any, w: Any, windows: Windows, groups: int) -> Any:
    """Return a convolution as products of matrices, one per sample and group."""
    columns = jnp.stack(_list_shifts(x, windows), 2)  # (N, C, kernel, *out)
    count, channels, size, *dims = columns.shape
    columns = columns.reshape(count, groups, channels // groups * size, -1)
    kernels = w.reshape(groups, w.shape[0] // groups, -1)
    return jnp.einsum("gok,ngkp->ngop", kernels, columns).reshape(count, w.shape[0], *dims)


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
        out = reduce_windows(x, axes, jax.lax.max, -np.inf, jnp.max)
        out = jnp.maximum(out, np.finfo(x.dtype).min)  # a window beyond the data
    else:
        total = reduce_windows(x, axes, jax.lax.add, 0, jnp.sum)
        counts = pool_kernels.count_elements(axes, x.dtype, exclusive=exclusive or adaptive)
        out = total / jnp.asarray(counts, x.dtype)
    return _back(out, data_format)


def reduce_windows(x: Any, axes: Sequence[pool_kernels.Axis], function: Any, start: Any, whole: Any) -> Any:
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


@lowers("conv2d_grad_grad", "conv3d_grad_grad")
def conv_grad_grad(
    dd_w: Any, dd_x: Any, d_out: Any, w: Any, x: Any,
    *, strides: Any, paddings: Any, padding_algorithm: str, groups: int, dilations: Any, data_format: str,
) -> Results:  # fmt: skip
    def convolve(x: Any, w: Any) -> Any:
        return conv2d(
            x, w, None, None, strides=strides, paddings=paddings, padding_algorithm=padding_algorithm,
            groups=groups, dilations=dilations, data_format=data_format, fuse_residual_connection=False,
        )  # fmt: skip

    parts = []
    if dd_x is not None:
        parts.append(convolve(dd_x, w))
    if dd_w is not None:
        parts.append(convolve(x, dd_w))
    d_w = None if dd_x is None else jax.vjp(lambda w: convolve(dd_x, w), w)[1](d_out)[0]
    d_x = None if dd_w is None else jax.vjp(lambda x: convolve(x, dd_w), x)[1](d_out)[0]
    return sum(parts) if parts else None, d_w, d_x


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
