"""Convolutions in two and three dims."""

from __future__ import annotations

from collections.abc import Sequence

from paddlelike.errors import ShapeError
from paddlelike.framework.opdef import (
    Array,
    Attr,
    Bool,
    Float,
    Floats,
    Gradient,
    Int,
    Ints,
    OpDef,
    Spec,
    String,
    register,
)
from paddlelike.ops.kernels.convolution import convolve, convolve_dw, convolve_dx
from paddlelike.ops.kernels.windows import channels_first, in_format, is_channels_last, windows_of
from paddlelike.ops.operands import same_or_unknown

__all__ = [
    "FUSED",
    "Conv2d",
    "Conv3d",
    "DepthwiseConv2d",
    "checked_sizes",
    "d_bias",
    "geometry",
    "shaped",
]


def geometry(rank: int) -> dict[str, Attr]:
    """The attributes of every convolution."""
    return {
        "strides": Ints([1] * rank),
        "paddings": Ints([0] * rank),
        "padding_algorithm": String("EXPLICIT"),
        "groups": Int(1),
        "dilations": Ints([1] * rank),
        "use_cudnn": Bool(False),
        "use_mkldnn": Bool(False),
        "workspace_size_MB": Int(512),
    }


# Set by Paddle's inference passes; kept, so that programs travel.
FUSED = {
    "fuse_relu": Bool(False),
    "fuse_activation": String(""),
    "fuse_alpha": Float(0.0),
    "fuse_beta": Float(0.0),
    "is_test": Bool(False),
}
_CONV = FUSED | {
    "exhaustive_search": Bool(False),
    "force_fp32_output": Bool(False),
    "fuse_residual_connection": Bool(False),
}
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


def shaped(batch: int, channels: int, spatial: Sequence[int], data_format: str) -> tuple[int, ...]:
    """A shape in a data format."""
    if is_channels_last(data_format):
        return (batch, *spatial, channels)
    return (batch, channels, *spatial)


def checked_sizes(
    op: str, x: Spec, w: Spec, groups: int, data_format: str, *, transposed: bool
) -> tuple[int, int, tuple[int, ...]]:
    """Channels in, channels out and spatial dims of the input, checked against the filter."""
    if len(x.shape) != len(w.shape) or len(x.shape) not in (4, 5):
        raise ShapeError(f"{op}: Input has shape {x.shape} and Filter {w.shape}; both need 4 dims, or both 5")
    channels = x.shape[-1 if is_channels_last(data_format) else 1]
    first, second = w.shape[:2]
    taken, given = (first, second * groups) if transposed else (second * groups, first)
    if not same_or_unknown(channels, taken) or first % groups:
        raise ShapeError(
            f"{op}: Input of shape {x.shape} ({data_format}) has {channels} channels; "
            f"Filter of shape {w.shape} in {groups} groups takes {taken}",
            hint="data_format says where the channels are; groups must divide both channel counts",
        )
    return channels, given, _spatial(x.shape, data_format)


class _Conv(OpDef):
    """What the convolutions share; ``added`` are Bias and ResidualData, or the latter alone."""

    outputs = ("Output",)
    lod = "Input"

    @classmethod
    def infer(
        cls,
        x: Spec,
        w: Spec,
        *added: Spec | None,
        strides: list[int],
        paddings: list[int],
        dilations: list[int],
        groups: int,
        padding_algorithm: str,
        data_format: str,
    ) -> Spec:
        _, channels, spatial = checked_sizes(cls.type, x, w, groups, data_format, transposed=False)
        windows = windows_of(cls.type, spatial, w.shape[2:], strides, paddings, dilations, padding_algorithm)
        count = windows.counts(spatial)
        if any(n == 0 or n < -1 for n in count):
            raise ShapeError(
                f"{cls.type}: Input of shape {x.shape} is smaller than one window of "
                f"{windows.extent} (Filter of shape {w.shape}, paddings {windows.pads})"
            )
        return Spec(shaped(x.shape[0], channels, count, data_format), x.dtype)

    @classmethod
    def forward(
        cls,
        x: Array,
        w: Array,
        *added: Array | None,
        strides: list[int],
        paddings: list[int],
        dilations: list[int],
        groups: int,
        padding_algorithm: str,
        data_format: str,
        fuse_residual_connection: bool,
    ) -> Array:
        x = channels_first(x, data_format)
        windows = windows_of(
            cls.type, x.shape[2:], w.shape[2:], strides, paddings, dilations, padding_algorithm
        )
        out = convolve(x, w, windows, groups)
        bias, residual = added if len(added) == 2 else (None, added[0])
        if bias is not None:
            out += bias.reshape(-1, *(1,) * len(windows.kernel))
        out = in_format(out, data_format)
        if fuse_residual_connection and residual is not None:
            out += residual
        return out

    @classmethod
    def backward(
        cls,
        x: Array,
        w: Array,
        _: Array | None,
        d_out: Array,
        *,
        strides: list[int],
        paddings: list[int],
        dilations: list[int],
        groups: int,
        padding_algorithm: str,
        data_format: str,
        wanted: tuple[bool, ...],
    ) -> tuple[Array | None, ...]:
        x, d_out = channels_first(x, data_format), channels_first(d_out, data_format)
        windows = windows_of(
            cls.type, x.shape[2:], w.shape[2:], strides, paddings, dilations, padding_algorithm
        )
        dx = convolve_dx(d_out, w, windows, groups, x.shape[2:]) if wanted[0] else None
        dw = convolve_dw(x, d_out, windows, groups) if wanted[1] else None
        results = (None if dx is None else in_format(dx, data_format), dw)
        return results if len(wanted) == 2 else (*results, d_bias(d_out) if wanted[2] else None)


def d_bias(d_out: Array) -> Array:
    """The gradient by a number per channel."""
    return d_out.reshape(*d_out.shape[:2], -1).sum((0, 2))


@register
class Conv2d(_Conv):
    """``Output[n, o, i, j] = sum of Filter[o, c, k, l] Input[n, c, i s + k d - p, j s + l d - p]``.

    Input ``(N, C, H, W)``, or ``(N, H, W, C)`` with ``data_format`` NHWC; Filter
    ``(O, C / groups, h, w)``. Bias ``(O,)`` is added, ResidualData if ``fuse_residual_connection``.
    """

    type = "conv2d"
    inputs = ("Input", "Filter", "Bias?", "ResidualData?")
    attrs = geometry(2) | _CONV | _QUANTIZED | {"data_format": String("NCHW")}
    gradient = Gradient(
        "Input",
        "Filter",
        "Bias",
        "Output@GRAD",
        outputs=("Input@GRAD", "Filter@GRAD", "Bias@GRAD"),
    )


@register
class DepthwiseConv2d(Conv2d):
    """``conv2d`` where every channel is a group of its own."""

    type = "depthwise_conv2d"


@register
class Conv3d(_Conv):
    """``conv2d`` with a third spatial dim: Input ``(N, C, D, H, W)``, Filter with ``(d, h, w)``."""

    type = "conv3d"
    inputs = ("Input", "Filter", "ResidualData?")
    attrs = geometry(3) | _CONV | {"data_format": String("NCDHW")}
    gradient = Gradient(
        "Input", "Filter", "ResidualData", "Output@GRAD", outputs=("Input@GRAD", "Filter@GRAD")
    )
