"""Convolutions over two and three dims."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from paddlelike.errors import ShapeError
from paddlelike.framework import follows_fluid
from paddlelike.framework.opdef import (
    Array,
    Attrs,
    Bool,
    Float,
    Floats,
    Gradient,
    Int,
    Ints,
    OpDef,
    Shapes,
    Spec,
    String,
    register,
)
from paddlelike.ops.kernels.nn.conv.convolve import convolve, convolve_dw, convolve_dx
from paddlelike.ops.kernels.nn.image.windows import (
    Windows,
    has_windows,
    is_channels_last,
    make_windows,
    to_channels_first,
    to_format,
)
from paddlelike.ops.operands import can_be_equal


class ConvAttrs(Attrs):
    """Attributes that every convolution reads; the defaults fit two spatial dims."""

    strides: list[int] = Ints([1, 1])
    paddings: list[int] = Ints([0, 0])
    padding_algorithm: str = String("EXPLICIT")
    groups: int = Int(1)
    dilations: list[int] = Ints([1, 1])
    data_format: str = String("NCHW")

    def windows(self, op: str, spatial: Sequence[int], kernel: Sequence[int]) -> Windows:
        """Return the windows of a filter over data of these spatial dims; raise ShapeError if none fit."""
        return make_windows(
            op, spatial, kernel, self.strides, self.paddings, self.dilations, self.padding_algorithm
        )


class _ForwardConvAttrs(ConvAttrs):
    fuse_residual_connection: bool = Bool(False)


THREE_DIMS = {"strides": Ints([1, 1, 1]), "paddings": Ints([0, 0, 0]), "dilations": Ints([1, 1, 1])}
BACKENDS = {"use_cudnn": Bool(False), "use_mkldnn": Bool(False), "workspace_size_MB": Int(512)}
#: Set by Paddle's inference passes; kept, so that programs can be exchanged with Paddle.
FUSED = {
    "fuse_relu": Bool(False),
    "fuse_activation": String(""),
    "fuse_alpha": Float(0.0),
    "fuse_beta": Float(0.0),
    "is_test": Bool(False),
}
_CONV = BACKENDS | FUSED | {"exhaustive_search": Bool(False), "force_fp32_output": Bool(False)}
_QUANTIZED = {
    "Scale_in": Float(1.0),
    "Scale_in_eltwise": Float(1.0),
    "Scale_out": Float(1.0),
    "Scale_weights": Floats([1.0]),
    "fuse_brelu": Bool(False),
    "fuse_brelu_threshold": Float(6.0),
    "fuse_relu_before_depthwise_conv": Bool(False),
    "use_quantizer": Bool(False),
}


def _spatial(shape: Sequence[int], data_format: str) -> tuple[int, ...]:
    return tuple(shape[1:-1] if is_channels_last(data_format) else shape[2:])


def shape_in_format(batch: int, channels: int, spatial: Sequence[int], data_format: str) -> tuple[int, ...]:
    """Return the shape of a batch in a data format."""
    if is_channels_last(data_format):
        return (batch, *spatial, channels)
    return (batch, channels, *spatial)


def check_sizes(
    op: str, x: Spec, w: Spec, groups: int, data_format: str, *, transposed: bool
) -> tuple[int, int, tuple[int, ...]]:
    """Return channels in, channels out and spatial dims of the input.

    Raises ShapeError when the filter does not fit the input.
    """
    if len(x.shape) != len(w.shape) or len(x.shape) not in (4, 5):
        raise ShapeError(f"{op}: Input has shape {x.shape} and Filter {w.shape}; both need 4 dims, or both 5")
    channels = x.shape[-1 if is_channels_last(data_format) else 1]
    first, second = w.shape[:2]
    taken, given = (first, second * groups) if transposed else (second * groups, first)
    ignores = transposed and first >= groups and follows_fluid("conv_transpose_groups")
    if not can_be_equal(channels, taken) or (first % groups and not ignores):
        raise ShapeError(
            f"{op}: Input of shape {x.shape} ({data_format}) has {channels} channels; "
            f"Filter of shape {w.shape} in {groups} groups takes {taken}",
            hint="data_format says where the channels are; groups must divide both channel counts",
        )
    return channels, given, _spatial(x.shape, data_format)


class _Conv(OpDef):
    """A convolution; ``added`` holds Bias and ResidualData, or ResidualData alone."""

    outputs = ("Output",)
    any_order = reorders = True
    lod = "Input"

    @classmethod
    def infer(cls, x: Spec, w: Spec, *added: Spec | None, attrs: ConvAttrs) -> Spec:
        _, channels, spatial = check_sizes(cls.type, x, w, attrs.groups, attrs.data_format, transposed=False)
        windows = attrs.windows(cls.type, spatial, w.shape[2:])
        count = windows.counts(spatial)
        if not has_windows(spatial, count):
            raise ShapeError(
                f"{cls.type}: Input of shape {x.shape} is smaller than one window of "
                f"{windows.extent} (Filter of shape {w.shape}, paddings {windows.pads})",
                hint="add padding, take a smaller filter, or pool less before",
            )
        return Spec(shape_in_format(x.shape[0], channels, count, attrs.data_format), x.dtype)

    @staticmethod
    def count_products(shapes: Shapes, attrs: Mapping[str, Any]) -> int:
        return math.prod(shapes["Output"]) * math.prod(shapes["Filter"][1:])

    @classmethod
    def forward(cls, x: Array, w: Array, *added: Array | None, attrs: _ForwardConvAttrs) -> Array:
        x = to_channels_first(x, attrs.data_format)
        windows = attrs.windows(cls.type, x.shape[2:], w.shape[2:])
        out = convolve(x, w, windows, attrs.groups)
        bias, residual = added if len(added) == 2 else (None, added[0])
        if bias is not None:
            out += bias.reshape(-1, *(1,) * len(windows.kernel))
        out = to_format(out, attrs.data_format)
        if attrs.fuse_residual_connection and residual is not None:
            out += residual
        return out

    @classmethod
    def backward(
        cls, x: Array, w: Array, _: Array | None, d_out: Array, *, attrs: ConvAttrs, wanted: tuple[bool, ...]
    ) -> tuple[Array | None, ...]:
        x, d_out = to_channels_first(x, attrs.data_format), to_channels_first(d_out, attrs.data_format)
        windows = attrs.windows(cls.type, x.shape[2:], w.shape[2:])
        dx = convolve_dx(d_out, w, windows, attrs.groups, x.shape[2:]) if wanted[0] else None
        dw = convolve_dw(x, d_out, windows, attrs.groups) if wanted[1] else None
        results = (None if dx is None else to_format(dx, attrs.data_format), dw)
        return results if len(wanted) == 2 else (*results, bias_gradient(d_out) if wanted[2] else None)


def bias_gradient(d_out: Array) -> Array:
    """Return the gradient of a bias with one number per channel."""
    return d_out.reshape(*d_out.shape[:2], -1).sum((0, 2))


@register
class Conv2d(_Conv):
    """``Output[n, o, i, j] = sum of Filter[o, c, k, l] Input[n, c, i s + k d - p, j s + l d - p]``.

    Input ``(N, C, H, W)``, or ``(N, H, W, C)`` with ``data_format`` NHWC; Filter ``(O, C / groups, h, w)``.
    Bias ``(O,)`` is added, and ResidualData with ``fuse_residual_connection``. s is the stride, p the
    padding, d the dilation.
    """

    type = "conv2d"
    keeps_dtype = True
    by_row = True
    inputs = ("Input", "Filter", "Bias?", "ResidualData?")
    fluid_order = (
        "is_test strides paddings padding_algorithm groups dilations use_cudnn "
        "fuse_relu_before_depthwise_conv use_mkldnn use_quantizer fuse_relu fuse_brelu "
        "fuse_brelu_threshold fuse_activation fuse_alpha fuse_beta fuse_residual_connection Scale_in "
        "Scale_out Scale_in_eltwise Scale_weights force_fp32_output data_format workspace_size_MB "
        "exhaustive_search"
    )
    attrs = _ForwardConvAttrs.table(**_CONV, **_QUANTIZED)
    gradient = Gradient(
        "Input", "Filter", "Bias", "Output@GRAD", outputs=("Input@GRAD", "Filter@GRAD", "Bias@GRAD")
    )


@register
class DepthwiseConv2d(Conv2d):
    """``conv2d`` in which every channel is a separate group."""

    type = "depthwise_conv2d"
    by_row = True


@register
class Conv3d(_Conv):
    """``conv2d`` with a third spatial dim: Input ``(N, C, D, H, W)``, Filter with ``(d, h, w)``."""

    type = "conv3d"
    keeps_dtype = True
    by_row = True
    inputs = ("Input", "Filter", "ResidualData?")
    fluid_order = (
        "is_test strides paddings padding_algorithm groups dilations use_cudnn use_mkldnn fuse_relu "
        "fuse_activation fuse_alpha fuse_beta fuse_residual_connection data_format force_fp32_output "
        "workspace_size_MB exhaustive_search"
    )
    attrs = _ForwardConvAttrs.table(data_format=String("NCDHW"), **THREE_DIMS, **_CONV)
    gradient = Gradient(
        "Input", "Filter", "ResidualData", "Output@GRAD", outputs=("Input@GRAD", "Filter@GRAD")
    )
