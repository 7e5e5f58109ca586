"""Transposed convolutions over two and three dims."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from paddlelike.errors import ShapeError
from paddlelike.framework.opdef import Array, Gradient, Ints, OpDef, Shapes, Spec, register
from paddlelike.ops.kernels.nn.conv.convolve import convolve, convolve_dw, convolve_dx
from paddlelike.ops.kernels.nn.image.windows import Windows, to_channels_first, to_format
from paddlelike.ops.later import register_kernel
from paddlelike.ops.nn.conv.conv import (
    BACKENDS,
    FUSED,
    THREE_DIMS,
    ConvAttrs,
    bias_gradient,
    check_sizes,
    shape_in_format,
)


class ConvTransposeAttrs(ConvAttrs):
    """Attributes of a transposed convolution."""

    output_size: list[int] = Ints([])


class _ConvTranspose(OpDef):
    """A transposed convolution: its kernel is the gradient of a convolution."""

    any_order = reorders = True
    outputs = ("Output",)

    @classmethod
    def infer(cls, x: Spec, w: Spec, *bias: Spec | None, attrs: ConvTransposeAttrs) -> Spec:
        _, channels, spatial = check_sizes(cls.type, x, w, attrs.groups, attrs.data_format, transposed=True)
        windows = attrs.windows(cls.type, spatial, w.shape[2:])
        out = find_output_dims(cls.type, windows, spatial, attrs.output_size)
        return Spec(shape_in_format(x.shape[0], channels, out, attrs.data_format), x.dtype)

    @staticmethod
    def count_products(shapes: Shapes, attrs: Mapping[str, Any]) -> int:
        return math.prod(shapes["Input"]) * math.prod(shapes["Filter"][1:])

    @classmethod
    def forward(cls, x: Array, w: Array, *bias: Array | None, attrs: ConvTransposeAttrs) -> Array:
        return transpose_convolve(cls.type, x, w, bias[0] if bias else None, attrs)

    @classmethod
    def backward(
        cls, x: Array, w: Array, *bias_and_d_out: Any, attrs: ConvTransposeAttrs, wanted: tuple[bool, ...]
    ) -> tuple[Array | None, ...]:
        x = to_channels_first(x, attrs.data_format)
        d_out = to_channels_first(bias_and_d_out[-1], attrs.data_format)
        windows = attrs.windows(cls.type, x.shape[2:], w.shape[2:])
        used = _count_grouped(x, attrs.groups)
        grouped = x[:, :used]
        dx = convolve(d_out, w[:used], windows, attrs.groups) if wanted[0] else None
        dw = convolve_dw(d_out, grouped, windows, attrs.groups) if wanted[1] else None
        if used < len(w):
            dx = None if dx is None else _add_zeros(dx, 1, len(w))
            dw = None if dw is None else _add_zeros(dw, 0, len(w))
        results = (None if dx is None else to_format(dx, attrs.data_format), dw)
        return results if len(wanted) == 2 else (*results, bias_gradient(d_out) if wanted[2] else None)


def _count_grouped(x: Array, groups: int) -> int:
    """Return the number of channels in whole groups; as in Fluid, remaining channels are ignored."""
    return x.shape[1] // groups * groups


def _add_zeros(x: Array, axis: int, size: int) -> Array:
    """Return an array with zeros appended up to a size of one dim."""
    missing = [(0, size - n if i == axis else 0) for i, n in enumerate(x.shape)]
    return np.pad(x, missing)


def transpose_convolve(
    op: str, x: Array, w: Array, bias: Array | None, attrs: ConvTransposeAttrs, more: Sequence[int] = ()
) -> Array:
    """Return the transposed convolution of ``x``, enlarged by ``more`` along each spatial dim.

    Raises ShapeError as :func:`find_output_dims` does.
    """
    x = to_channels_first(x, attrs.data_format)
    windows = attrs.windows(op, x.shape[2:], w.shape[2:])
    dims = find_output_dims(op, windows, x.shape[2:], attrs.output_size)
    if more and not attrs.output_size:
        dims = tuple(size + extra for size, extra in zip(dims, more, strict=True))
    used = _count_grouped(x, attrs.groups)
    out = convolve_dx(x[:, :used], w[:used], windows, attrs.groups, dims)
    if bias is not None:
        out += bias.reshape(-1, *(1,) * len(windows.kernel))
    return to_format(out, attrs.data_format)


def find_output_dims(
    op: str, windows: Windows, spatial: Sequence[int], output_size: Sequence[int]
) -> tuple[int, ...]:
    """Return the spatial dims of the output: the smallest ones that fit the windows, or the requested ones.

    Raises ShapeError when the requested ones do not give these windows.
    """
    smallest = tuple(
        -1 if n < 0 else (n - 1) * stride + extent - low - high
        for n, stride, extent, (low, high) in zip(
            spatial, windows.strides, windows.extent, windows.pads, strict=True
        )
    )
    if not output_size:
        return smallest
    if len(output_size) != len(spatial) or any(
        low >= 0 and not low <= size < low + stride
        for size, low, stride in zip(output_size, smallest, windows.strides, strict=True)
    ):
        raise ShapeError(
            f"{op}: output_size is {list(output_size)}; from {tuple(spatial)} with strides "
            f"{windows.strides} it can be {smallest} up to one stride more"
        )
    return tuple(output_size)


@register
class Conv2dTranspose(_ConvTranspose):
    """The gradient of ``conv2d`` with respect to its input, as an operator: Filter ``(C, O / groups, h, w)``.

    The output has the size ``output_size``, by default the smallest, ``(H - 1) s + (h - 1) d + 1 - 2 p``, for
    the stride s, the padding p and the dilation d.
    """

    type = "conv2d_transpose"
    by_row = True
    inputs = ("Input", "Filter", "Bias?")
    fluid_order = (
        "is_test output_size groups dilations strides paddings use_cudnn use_mkldnn fuse_relu "
        "fuse_activation fuse_alpha fuse_beta data_format padding_algorithm workspace_size_MB"
    )
    attrs = ConvTransposeAttrs.table(**BACKENDS, **FUSED)
    gradient = Gradient("Input", "Filter", "Bias", "Output@GRAD")


@register
class DepthwiseConv2dTranspose(Conv2dTranspose):
    """``conv2d_transpose`` in which every channel is a separate group."""

    type = "depthwise_conv2d_transpose"


@register
class Conv3dTranspose(_ConvTranspose):
    """``conv2d_transpose`` with a third spatial dim."""

    type = "conv3d_transpose"
    inputs = ("Input", "Filter")
    fluid_order = (
        "output_size dilations strides paddings groups use_cudnn use_mkldnn data_format padding_algorithm "
        "workspace_size_MB"
    )
    attrs = ConvTransposeAttrs.table(**THREE_DIMS, **BACKENDS)
    gradient = Gradient("Input", "Filter", "Output@GRAD")


class LaterTransposeAttrs(ConvTransposeAttrs):
    """Attributes of the later transposed convolutions."""

    output_padding: list[int] = Ints([])


def _conv_transpose(x: Array, w: Array, bias: Array | None, *, attrs: LaterTransposeAttrs) -> Array:
    """The gradient of a convolution, enlarged by ``output_padding``."""
    return transpose_convolve("conv_transpose", x, w, bias, attrs, attrs.output_padding)


for _name in ("conv2d_transpose", "depthwise_conv2d_transpose"):
    register_kernel(
        _name, "Input Filter Bias? -> Output", LaterTransposeAttrs.table(**BACKENDS, **FUSED), changed=True
    )(_conv_transpose)


register_kernel(
    "conv3d_transpose",
    "Input Filter Bias? -> Output",
    LaterTransposeAttrs.table(**THREE_DIMS, **BACKENDS),
    changed=True,
)(_conv_transpose)
