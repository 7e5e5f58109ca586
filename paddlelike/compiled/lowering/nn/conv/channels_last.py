"""Convolutions of images whose channels come last, for CPUs, and their gradients.

``x`` is ``(N, *dims, C)``, ``w`` is ``(*kernel, C / groups, O)``.

With few filters and channels XLA uses Eigen's kernels, which are up to ten times as slow as its own. In that
case neighbouring columns of results become the filters of one wider kernel, whose other elements are zeros.
For kernels of 3 x 3 on 32 images of 32 x 32, processor milliseconds fall from 2.2 to 0.6 for 3 channels to
16, from 1.9 to 0.7 for 8 to 8, from 3.0 to 2.0 for 16 to 16. With more filters and channels the zeros cost
too much: from 2.6 to 3.1 for 24 to 16.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any, Final

import jax
import jax.numpy as jnp
from jax import Array

from paddlelike.compiled.lowering.nn.conv import winograd
from paddlelike.compiled.lowering.nn.conv.sliding import find_kernel_gradient, slide, spread
from paddlelike.ops.kernels.nn.image.windows import Windows

Pair = tuple[Any, Any]

_FEW: Final = 256  # channels by filters
_MOST_COLUMNS: Final = 8
_WIDE: Final = 32  # filters of the wider kernel
_WIDEST: Final = 64  # up to this many channels:
_FEWEST: Final = 4


@functools.partial(jax.custom_vjp, nondiff_argnums=(2, 3))
def convolve(x: Array, w: Array, windows: Windows, groups: int) -> Array:
    """Return the convolution ``(N, *dims of the windows, O)``."""
    if winograd.pays(x, w, windows, groups):
        return winograd.convolve(x, w, windows)
    return _convolve_columns(x, w, windows, groups)


def _convolve_forward(x: Array, w: Array, windows: Windows, groups: int) -> tuple[Array, Pair]:
    return convolve(x, w, windows, groups), (x, w)


def _convolve_backward(windows: Windows, groups: int, kept: Pair, d_out: Array) -> Pair:
    x, w = kept
    return _find_dx(d_out, w, windows, groups, x.shape), _find_dw(x, d_out, windows, groups, w.shape)


convolve.defvjp(_convolve_forward, _convolve_backward)


@functools.partial(jax.custom_vjp, nondiff_argnums=(2, 3, 4))
def _find_dx(d_out: Array, w: Array, windows: Windows, groups: int, shape: tuple[int, ...]) -> Array:
    """Return the gradient of the images, as a transposed convolution, which has a gradient too."""
    turned = _turn_windows(windows, shape[1:-1], d_out.shape[1:-1])
    if turned is not None and groups == 1:
        kernel = jnp.swapaxes(jnp.flip(w, range(len(windows.kernel))), -1, -2)
        if winograd.pays(d_out, kernel, turned, groups):
            return winograd.convolve(d_out, kernel, turned)
        if _count_columns(shape[-1], d_out.shape[-1], turned, groups) > 1:
            return _convolve_columns(d_out, kernel, turned, groups)
    if groups == 1:
        return spread(windows, shape[1:-1], d_out, w)
    x = jax.ShapeDtypeStruct(shape, d_out.dtype)
    return jax.linear_transpose(lambda x: _convolve(x, w, windows, groups), x)(d_out)[0]


def _find_dx_forward(
    d_out: Array, w: Array, windows: Windows, groups: int, shape: tuple[int, ...]
) -> tuple[Array, Pair]:
    return _find_dx(d_out, w, windows, groups, shape), (d_out, w)


def _find_dx_backward(
    windows: Windows, groups: int, _shape: tuple[int, ...], kept: Pair, dd_x: Array
) -> Pair:
    d_out, w = kept
    return convolve(dd_x, w, windows, groups), _find_dw(dd_x, d_out, windows, groups, w.shape)


_find_dx.defvjp(_find_dx_forward, _find_dx_backward)


def _find_dw(x: Array, d_out: Array, windows: Windows, groups: int, shape: tuple[int, ...]) -> Array:
    """Return the gradient of the filter."""
    if groups == 1:
        return find_kernel_gradient(windows, x, d_out)
    w = jax.ShapeDtypeStruct(shape, x.dtype)
    return jax.linear_transpose(lambda w: _convolve(x, w, windows, groups), w)(d_out)[0]


def _turn_windows(windows: Windows, dims: Sequence[int], out: Sequence[int]) -> Windows | None:
    """Return the windows of the convolution that turns the gradient of the results into the gradient
    of the images.
    """
    if any(stride != 1 for stride in windows.strides):
        return None
    before = [extent - 1 - low for extent, (low, _) in zip(windows.extent, windows.pads, strict=True)]
    sizes = zip(dims, windows.extent, out, before, strict=True)
    after = [size + extent - 1 - count - low for size, extent, count, low in sizes]
    return windows._replace(pads=tuple(zip(before, after, strict=True)))


def _convolve_columns(x: Array, w: Array, windows: Windows, groups: int) -> Array:
    """Compute a convolution with several columns of the result treated as extra filters."""
    columns = _count_columns(w.shape[-1], x.shape[-1], windows, groups)
    step, (low, high) = windows.strides[-1], windows.pads[-1]
    count = (x.shape[-2] + low + high - windows.kernel[-1]) // step + 1
    if columns == 1 or count < 1:
        return _convolve(x, w, windows, groups)
    wider = [(0, 0)] * (w.ndim - 3)
    parts = [
        jnp.pad(w, [*wider, (i * step, (columns - 1 - i) * step), (0, 0), (0, 0)]) for i in range(columns)
    ]
    out = _convolve(
        x, jnp.concatenate(parts, -1),
        Windows(
            (*windows.kernel[:-1], windows.kernel[-1] + (columns - 1) * step),
            (*windows.strides[:-1], columns * step),
            (*windows.pads[:-1], (low, high + -count % columns * step)),
            windows.dilations,
        ), groups,
    )  # fmt: skip
    return out.reshape(*out.shape[:-2], -1, w.shape[-1])[..., :count, :]


def _count_columns(filters: int, channels: int, windows: Windows, groups: int) -> int:
    if len(windows.kernel) != 2 or windows.dilations[-1] != 1 or groups > 1 or channels * filters > _FEW:
        return 1
    most = min(_MOST_COLUMNS, (_WIDEST if channels <= _FEWEST else _WIDE) // filters)
    return 1 << most.bit_length() >> 1 if most else 1


def _convolve(x: Array, w: Array, windows: Windows, groups: int) -> Array:
    if groups == 1:
        return slide(windows, x, w)
    dims = "DHW"[3 - len(windows.kernel) :]
    data, kernel = f"N{dims}C", f"{dims}IO"
    return jax.lax.conv_general_dilated(
        x, w, windows.strides, windows.pads, rhs_dilation=windows.dilations,
        dimension_numbers=(data, kernel, data), feature_group_count=groups,
    )  # fmt: skip


def convolve_volumes(x: Array, w: Array, windows: Windows) -> Array:
    """Return the convolution of volumes ``(N, D, H, W, C)``.

    The depth of the kernel becomes channels of one convolution of images, since XLA computes the gradients of
    volumes with plain loops. For 32 kernels of 3 x 3 x 3 with a stride of 2 on 2 x 8 x 28 x 28 x 16, this
    takes 2.9 ms instead of 167.
    """
    (depth, *_), (step, *_), (pads, *_), (dilation, *_) = windows
    flat = Windows(windows.kernel[1:], windows.strides[1:], windows.pads[1:], windows.dilations[1:])
    x = jnp.pad(x, [(0, 0), pads, *[(0, 0)] * 3])
    starts = range(0, depth * dilation, dilation)
    span = (x.shape[1] - starts[-1] - 1) // step * step + 1
    places = [jax.lax.slice_in_dim(x, start, start + span, step, axis=1) for start in starts]
    joined = jnp.concatenate(places, -1)
    kernel = jnp.moveaxis(w, 0, 2).reshape(*w.shape[1:3], -1, w.shape[-1])
    out = convolve(joined.reshape(-1, *joined.shape[2:]), kernel, flat, 1)
    return out.reshape(*joined.shape[:2], *out.shape[1:])


@functools.partial(jax.custom_vjp, nondiff_argnums=())
def multiply(x: Array, w: Array) -> Array:
    """Return the products of ``x``, shape (N, *dims, I), and ``w``, shape (O, I)."""
    return x @ w.T


def _multiply_forward(x: Array, w: Array) -> tuple[Array, Pair]:
    return multiply(x, w), (x, w)


def _multiply_backward(kept: Pair, d_out: Array) -> Pair:
    """Return the gradients of :func:`multiply`; for ``w`` the smaller operand is transposed, sample by
    sample.

    XLA's own order takes up to 2.6 times as long, since its rows are not in the cache.
    """
    x, w = kept
    if x.shape[-1] <= d_out.shape[-1]:
        d_w = (_turn(x) @ d_out.reshape(-1, d_out.shape[-1])).T
    else:
        d_w = _turn(d_out) @ x.reshape(-1, x.shape[-1])
    return d_out @ w, d_w


multiply.defvjp(_multiply_forward, _multiply_backward)


def _turn(x: Array) -> Array:
    """Move the channels of ``x`` to the first dim."""
    samples = jnp.swapaxes(x.reshape(x.shape[0], -1, x.shape[-1]), 1, 2)
    return jnp.swapaxes(samples, 0, 1).reshape(x.shape[-1], -1)
