"""Convolutions, transposed ones, and their gradients."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Any, Final

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from paddlelike.compiled.backend import computes_on_cpu
from paddlelike.compiled.lowering.nn.conv import channels_last
from paddlelike.compiled.lowerings import Results, lowers
from paddlelike.ops.kernels.nn.image.windows import Windows, is_channels_last, make_windows
from paddlelike.ops.nn.conv.conv_transpose import find_output_dims

_MOST_SHIFTS: Final = 64  # elements of a kernel; each one makes a program longer


def take_first(x: Array, data_format: str) -> Array:
    return jnp.moveaxis(x, -1, 1) if is_channels_last(data_format) else x


def put_back(x: Array, data_format: str) -> Array:
    return jnp.moveaxis(x, 1, -1) if is_channels_last(data_format) else x


def _dims(rank: int) -> tuple[str, str, str]:
    spatial = "DHW"[3 - rank :]
    return f"NC{spatial}", f"OI{spatial}", f"NC{spatial}"


@lowers("conv2d", "depthwise_conv2d")
def conv2d(
    x: Array, w: Array, bias: Array | None, residual: Array | None,
    *, strides: list[int], paddings: list[int], padding_algorithm: str, groups: int,
    dilations: list[int], data_format: str,
    fuse_residual_connection: bool,
) -> Array:  # fmt: skip
    x = take_first(x, data_format)
    windows = make_windows(
        "conv2d", x.shape[2:], w.shape[2:], strides, paddings, dilations, padding_algorithm
    )
    out = _convolve(x, w, windows, groups)
    if bias is not None:
        out = out + bias.reshape(-1, *(1,) * len(windows.kernel))
    out = put_back(out, data_format)
    return out + residual if fuse_residual_connection and residual is not None else out


@lowers("conv3d")
def conv3d(
    x: Array, w: Array, residual: Array,
    *, strides: list[int], paddings: list[int], padding_algorithm: str, groups: int,
    dilations: list[int], data_format: str,
    fuse_residual_connection: bool,
) -> Array:  # fmt: skip
    return conv2d(
        x, w, None, residual, strides=strides, paddings=paddings, padding_algorithm=padding_algorithm,
        groups=groups, dilations=dilations, data_format=data_format,
        fuse_residual_connection=fuse_residual_connection,
    )  # fmt: skip


def _convolve(x: Array, w: Array, windows: Windows, groups: int) -> Array:
    if plain := windows.without_cuts():
        return _convolve(x[windows.kept(x.shape[2:])], w, plain, groups)
    if not computes_on_cpu():
        return jax.lax.conv_general_dilated(
            x, w, windows.strides, windows.pads, rhs_dilation=windows.dilations,
            dimension_numbers=_dims(len(windows.kernel)), feature_group_count=groups,
        )  # fmt: skip
    size = math.prod(windows.kernel)
    if groups == 1:
        return _convolve_last(x, w, windows) if size > 1 else _multiply_last(x, w, windows)
    if groups == x.shape[1] == w.shape[0] and size <= _MOST_SHIFTS:
        return _convolve_planes(x, w, windows)
    if size > _MOST_SHIFTS:
        return _convolve_last(x, w, windows, groups)
    # The columns take ``size`` times the memory of x: they are computed again for the gradient.
    return jax.checkpoint(functools.partial(_multiply_columns, windows=windows, groups=groups))(x, w)


# XLA for CPUs computes the gradients of kernels of one element, and convolutions with groups, up to 400 times
# as slowly as these formulas. For 32 groups of 3 x 3 on 2 x 128 x 14 x 14, the result and the gradients of X
# and Filter take 1.3, 1.3 and 228 ms of one processor with XLA, and 0.6, 0.4 and 0.6 here. Channels come
# last, because XLA prefers them so there: tracing/orders.py.


def _convolve_last(x: Array, w: Array, windows: Windows, groups: int = 1) -> Array:
    """Compute a convolution with the channels as the last dim."""
    x, w = jnp.moveaxis(x, 1, -1), jnp.moveaxis(w, (0, 1), (-1, -2))
    if len(windows.kernel) == 3 and groups == 1:
        return jnp.moveaxis(channels_last.convolve_volumes(x, w, windows), -1, 1)
    return jnp.moveaxis(channels_last.convolve(x, w, windows, groups), -1, 1)


def _multiply_last(x: Array, w: Array, windows: Windows) -> Array:
    """Return a convolution of kernels of one element: a product of matrices."""
    (kept,) = _list_shifts(x, windows)
    return jnp.moveaxis(channels_last.multiply(jnp.moveaxis(kept, 1, -1), w.reshape(w.shape[:2])), -1, 1)


def _list_shifts(x: Array, windows: Windows) -> list[Any]:
    """Return, for each element of a kernel, the elements of ``x`` that it multiplies: shape (N, C, *out)."""
    x = jnp.pad(x, [(0, 0), (0, 0), *windows.pads])
    return list_places(x, windows.kernel, windows.strides, windows.dilations)


def list_places(
    x: Array, kernel: Sequence[int], strides: Sequence[int], dilations: Sequence[int]
) -> list[Any]:
    """Return, for each position in a window, the elements of ``x`` there: shape (N, C, *out)."""
    steps = zip(x.shape[2:], kernel, strides, dilations, strict=True)
    spans = [(size - (k - 1) * d - 1) // stride * stride + 1 for size, k, stride, d in steps]
    found = []
    for place in np.ndindex(*kernel):
        starts = [p * d for p, d in zip(place, dilations, strict=True)]
        stops = [start + span for start, span in zip(starts, spans, strict=True)]
        found.append(jax.lax.slice(x, (0, 0, *starts), (*x.shape[:2], *stops), (1, 1, *strides)))
    return found


def _convolve_planes(x: Array, w: Array, windows: Windows) -> Array:
    """Return a convolution of each channel with a kernel of its own: products that XLA fuses.

    Planes of float16 are added up in float32, as in a product of matrices.
    """
    dtype, wide = x.dtype, jnp.promote_types(x.dtype, jnp.float32)
    factors = w.astype(wide).reshape(1, w.shape[0], -1, *[1] * len(windows.kernel))
    shifts = _list_shifts(x.astype(wide), windows)
    return sum(shifted * factors[:, :, i] for i, shifted in enumerate(shifts)).astype(dtype)


def _multiply_columns(x: Array, w: Array, windows: Windows, groups: int) -> Array:
    """Return a convolution as products of matrices, one per sample and group."""
    columns = jnp.stack(_list_shifts(x, windows), 2)  # (N, C, kernel, *out)
    count, channels, size, *dims = columns.shape
    columns = columns.reshape(count, groups, channels // groups * size, -1)
    kernels = w.reshape(groups, w.shape[0] // groups, -1)
    return jnp.einsum("gok,ngkp->ngop", kernels, columns).reshape(count, w.shape[0], *dims)


@lowers("conv2d_grad_grad", "conv3d_grad_grad")
def conv_grad_grad(
    dd_w: Array | None, dd_x: Array | None, d_out: Array, w: Array, x: Array,
    *, strides: list[int], paddings: list[int], padding_algorithm: str, groups: int,
    dilations: list[int], data_format: str,
) -> Results:  # fmt: skip
    def convolve(x: Array, w: Array) -> Array:
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
    x: Array, w: Array, *bias: Array | None,
    strides: list[int], paddings: list[int], padding_algorithm: str, groups: int,
    dilations: list[int], data_format: str,
    output_size: list[int],
) -> Array:  # fmt: skip
    x = take_first(x, data_format)
    windows = make_windows(
        "conv_transpose", x.shape[2:], w.shape[2:], strides, paddings, dilations, padding_algorithm
    )
    dims = find_output_dims("conv_transpose", windows, x.shape[2:], output_size)
    used = x.shape[1] // groups * groups  # as in Fluid, channels after the last whole group are ignored
    x, w = x[:, :used], w[:used]
    out = _interleave(x, w, windows, dims, groups) if groups > 1 and computes_on_cpu() else None
    if out is None:
        data = jnp.zeros((x.shape[0], w.shape[1] * groups, *dims), x.dtype)
        (out,) = jax.vjp(lambda data: _convolve(data, w, windows, groups), data)[1](x)
    if bias and bias[0] is not None:
        out = out + bias[0].reshape(-1, *(1,) * len(windows.kernel))
    return put_back(out, data_format)


def _interleave(x: Array, w: Array, windows: Windows, dims: Sequence[int], groups: int) -> Array | None:
    """Compute a strided transposed convolution with groups as several without stride, one per remainder.

    Return None if the stride exceeds the kernel, the padding is as wide as the kernel, or the kernel is
    dilated. XLA puts zeros between the data instead: with gradients, 32 groups of 4 x 4 on 4 x 32 x 32 x 32
    take 6.2 ms that way and 2.1 ms here.
    """
    strides = windows.strides
    counts = [-(-size // step) for size, step in zip(dims, strides, strict=True)]
    kernels = w.reshape(groups, -1, *w.shape[1:])
    kernels = jnp.swapaxes(kernels, 1, 2).reshape(-1, w.shape[0] // groups, *w.shape[2:])
    parts = []
    for first in np.ndindex(*strides):
        starts = [(i + low) % step for i, (low, _), step in zip(first, windows.pads, strides, strict=True)]
        sizes = [len(range(*each)) for each in zip(starts, windows.kernel, strides, strict=True)]
        skipped = [(i + low) // step for i, (low, _), step in zip(first, windows.pads, strides, strict=True)]
        pads = tuple(
            (size - 1 - skip, skip + count - given)
            for size, skip, count, given in zip(sizes, skipped, counts, x.shape[2:], strict=True)
        )
        if min(sizes) < 1 or min(map(min, pads)) < 0 or set(windows.dilations) != {1}:
            return None
        part = kernels[
            (..., *(slice(start, None, step) for start, step in zip(starts, strides, strict=True)))
        ]
        ones = (1,) * len(sizes)
        plain = Windows(tuple(sizes), ones, pads, ones)
        parts.append(_convolve(x, jnp.flip(part, range(2, part.ndim)), plain, groups))
    out = jnp.stack(parts, -1).reshape(*parts[0].shape, *strides)
    rank = len(strides)
    order = [0, 1, *(i + side * rank for i in range(2, 2 + rank) for side in (0, 1))]
    whole = [count * step for count, step in zip(counts, strides, strict=True)]
    out = out.transpose(order).reshape(*out.shape[:2], *whole)
    return out[(..., *(slice(size) for size in dims))]
