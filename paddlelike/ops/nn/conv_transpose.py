"""Transposed convolutions in two and three dims."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from paddlelike.errors import ShapeError
from paddlelike.framework.opdef import Array, Gradient, Ints, OpDef, Spec, String, register
from paddlelike.ops.kernels.convolution import convolve, convolve_dw, convolve_dx
from paddlelike.ops.kernels.windows import Windows, channels_first, in_format, windows_of
from paddlelike.ops.nn.conv import FUSED, checked_sizes, d_bias, geometry, shaped

__all__ = ["Conv2dTranspose", "Conv3dTranspose", "DepthwiseConv2dTranspose"]


class _ConvTranspose(OpDef):
    """What the transposed convolutions share: the gradient of a convolution is their forward."""

    outputs = ("Output",)

    @classmethod
    def infer(
        cls,
        x: Spec,
        w: Spec,
        *bias: Spec | None,
        strides: list[int],
        paddings: list[int],
        dilations: list[int],
        groups: int,
        output_size: list[int],
        padding_algorithm: str,
        data_format: str,
    ) -> Spec:
        _, channels, spatial = checked_sizes(cls.type, x, w, groups, data_format, transposed=True)
        windows = windows_of(cls.type, spatial, w.shape[2:], strides, paddings, dilations, padding_algorithm)
        out = _spread(cls.type, windows, spatial, output_size)
        return Spec(shaped(x.shape[0], channels, out, data_format), x.dtype)

    @classmethod
    def forward(
        cls,
        x: Array,
        w: Array,
        *bias: Array | None,
        strides: list[int],
        paddings: list[int],
        dilations: list[int],
        groups: int,
        output_size: list[int],
        padding_algorithm: str,
        data_format: str,
    ) -> Array:
        x = channels_first(x, data_format)
        windows = windows_of(
            cls.type, x.shape[2:], w.shape[2:], strides, paddings, dilations, padding_algorithm
        )
        out_size = _spread(cls.type, windows, x.shape[2:], output_size)
        out = convolve_dx(x, w, windows, groups, out_size)
        if bias and bias[0] is not None:
            out += bias[0].reshape(-1, *(1,) * len(windows.kernel))
        return in_format(out, data_format)

    @classmethod
    def backward(
        cls,
        x: Array,
        w: Array,
        *bias_and_d_out: Any,
        strides: list[int],
        paddings: list[int],
        dilations: list[int],
        groups: int,
        padding_algorithm: str,
        data_format: str,
        wanted: tuple[bool, ...],
    ) -> tuple[Array | None, ...]:
        x = channels_first(x, data_format)
        d_out = channels_first(bias_and_d_out[-1], data_format)
        windows = windows_of(
            cls.type, x.shape[2:], w.shape[2:], strides, paddings, dilations, padding_algorithm
        )
        dx = convolve(d_out, w, windows, groups) if wanted[0] else None
        dw = convolve_dw(d_out, x, windows, groups) if wanted[1] else None
        results = (None if dx is None else in_format(dx, data_format), dw)
        return results if len(wanted) == 2 else (*results, d_bias(d_out) if wanted[2] else None)


def _spread(op: str, windows: Windows, spatial: Sequence[int], output_size: Sequence[int]) -> tuple[int, ...]:
    """The spatial dims that these windows come from: the smallest, or the ones asked for."""
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


_TRANSPOSE = {"output_size": Ints([]), "data_format": String("NCHW")}


@register
class Conv2dTranspose(_ConvTranspose):
    """The gradient of ``conv2d`` by its input, as an operator: Filter ``(C, O / groups, h, w)``.

    The output is as small as can be, ``(H - 1) s + (h - 1) d + 1 - 2 p``, or as ``output_size``.
    """

    type = "conv2d_transpose"
    inputs = ("Input", "Filter", "Bias?")
    attrs = geometry(2) | FUSED | _TRANSPOSE
    gradient = Gradient("Input", "Filter", "Bias", "Output@GRAD")


@register
class DepthwiseConv2dTranspose(Conv2dTranspose):
    """``conv2d_transpose`` where every channel is a group of its own."""

    type = "depthwise_conv2d_transpose"


@register
class Conv3dTranspose(_ConvTranspose):
    """``conv2d_transpose`` with a third spatial dim."""

    type = "conv3d_transpose"
    inputs = ("Input", "Filter")
    attrs = geometry(3) | _TRANSPOSE
    gradient = Gradient("Input", "Filter", "Output@GRAD")
