"""Convolutions, and the windows that they read.

Parameters
----------
input
    Images (N, C, H, W); ``data_format`` gives the position of the channels. C must be known.
num_filters
    The number of channels of the result.
filter_size
    The size of the filter: an int for all spatial dims, or one per dim, ``[height, width]``.
stride
    The step between windows: an int, or one per spatial dim.
padding
    Zeros around the image: an int, one per spatial dim, or two per spatial dim (before and after);
    or ``"SAME"`` or ``"VALID"``.
dilation
    The distance between the elements of a window: an int, or one per spatial dim.
groups
    The number of groups of channels, convolved separately; None for 1. It divides both channel numbers.
output_size
    The spatial dims of the result: an int, or one per dim; None to compute them from ``filter_size``.
x
    (N, C, H, W).
kernel_sizes
    The height and width of a window: one int for both, or two.
strides
    The step between windows, given like ``kernel_sizes``.
paddings
    Zeros around the image: an int, two (vertical, horizontal) or four (top, left, bottom, right).
dilations
    The distance between elements of a window, given like ``kernel_sizes``.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from paddlelike.errors import GraphError
from paddlelike.framework import Variable, warn_quirk
from paddlelike.initializer import Normal
from paddlelike.layers.emit import FLOATS, WIDE_FLOATS, check_variable, describe, emit, is_whole, repeat_size
from paddlelike.layers.helper import LayerHelper
from paddlelike.layers.nn.windows import Padding, channel_axis, parse_padding
from paddlelike.param_attr import ParamAttr

if TYPE_CHECKING:
    from paddlelike.core.typing import Ints, PaddingLike
    from paddlelike.param_attr import ParamAttrLike

__all__ = ["conv2d", "conv2d_transpose", "conv3d", "conv3d_transpose", "unfold"]


def conv2d(
    input: Variable,
    num_filters: int,
    filter_size: Ints,
    stride: Ints = 1,
    padding: PaddingLike = 0,
    dilation: Ints = 1,
    groups: int | None = None,
    param_attr: ParamAttrLike = None,
    bias_attr: ParamAttrLike = None,
    use_cudnn: bool = True,
    act: str | None = None,
    name: str | None = None,
    data_format: str = "NCHW",
) -> Variable:
    """Return ``act(input * filter + bias)``; ``*`` is a convolution over two dims (operator ``conv2d``).

    The weight is (num_filters, C / groups, height, width), drawn from a normal distribution of mean 0 and
    variance 2 / (height * width * C). The bias is (num_filters,).

    Returns
    -------
    Variable
        (N, num_filters, H', W') with H' = (H + top + bottom - dilation * (height - 1) - 1) // stride + 1, and
        W' likewise; with ``"NHWC"`` (N, H', W', num_filters). In the dtype of ``input``.

    Raises
    ------
    GraphError
        ``groups`` does not divide the channels or the filters, or C is unknown.
    TypeError
        ``input`` is not a variable of float16, float32 or float64.

    >>> from paddlelike.input import data
    >>> conv2d(data("image", [None, 3, 32, 32]), num_filters=8, filter_size=3, padding=1).shape
    (-1, 8, 32, 32)
    """
    settings = (stride, padding, dilation, groups, param_attr, bias_attr, use_cudnn, act, name)
    return _conv("conv2d", 2, input, num_filters, filter_size, settings, data_format)


def conv3d(
    input: Variable,
    num_filters: int,
    filter_size: Ints,
    stride: Ints = 1,
    padding: PaddingLike = 0,
    dilation: Ints = 1,
    groups: int | None = None,
    param_attr: ParamAttrLike = None,
    bias_attr: ParamAttrLike = None,
    use_cudnn: bool = True,
    act: str | None = None,
    name: str | None = None,
    data_format: str = "NCDHW",
) -> Variable:
    """Return the convolution over three dims; see :func:`conv2d` (operator ``conv3d``).

    Parameters
    ----------
    input
        Volumes (N, C, D, H, W); ``data_format`` gives the position of the channels. C must
        be known.
    data_format
        The position of the channels: ``"NCDHW"`` for dim 1, ``"NDHWC"`` for the last dim.

    Returns
    -------
    Variable
        (N, num_filters, D', H', W') with the sizes of :func:`conv2d`, in the dtype of ``input``.

    Raises
    ------
    GraphError, TypeError
        The same as in :func:`conv2d`.

    >>> import paddlelike as fluid
    >>> x = fluid.data("x", [None, 3, 8, 16, 16])
    >>> fluid.layers.conv3d(x, num_filters=4, filter_size=3, padding=1).shape
    (-1, 4, 8, 16, 16)
    """
    settings = (stride, padding, dilation, groups, param_attr, bias_attr, use_cudnn, act, name)
    return _conv("conv3d", 3, input, num_filters, filter_size, settings, data_format)


def _conv(
    type: str,
    dims: int,
    input: Variable,
    num_filters: int,
    filter_size: Ints,
    settings: tuple[Any, ...],
    data_format: str,
) -> Variable:
    stride, padding, dilation, given_groups, param_attr, bias_attr, use_cudnn, act, name = settings
    axis, channels, groups = _split_channels(type, dims, input, given_groups, data_format)
    _check_filters(type, num_filters)
    if num_filters % groups:
        raise GraphError(f"layer {type!r}: {num_filters} filters cannot be divided into {groups} groups")
    # As in Fluid, the comparison comes before None becomes 1: one channel without groups is not depthwise.
    if dims == 2 and channels == given_groups and num_filters % channels == 0 and not use_cudnn:
        type = "depthwise_conv2d"
    window = repeat_size(type, "filter_size", filter_size, dims)
    helper = LayerHelper(type, name=name, act=act, bias_attr=bias_attr, use_cudnn=use_cudnn)
    initialized = getattr(ParamAttr._to_attr(param_attr), "initializer", None) is not None
    all_channels = groups == 1 or initialized or warn_quirk("conv_group_channels")
    deviation = math.sqrt(2.0 / (math.prod(window) * (channels if all_channels else channels // groups)))
    weight = helper.create_parameter(
        param_attr,
        [num_filters, channels // groups, *window],
        input.dtype,
        default_initializer=Normal(0.0, deviation, 0),
    )
    sides = parse_padding(type, "padding", padding, dims, channels_last=axis != 1)
    attrs = {
        "strides": repeat_size(type, "stride", stride, dims),
        "dilations": repeat_size(type, "dilation", dilation, dims),
        "groups": given_groups,
        "use_cudnn": use_cudnn,
        "use_mkldnn": False,
    }
    if dims == 2:
        attrs["fuse_relu_before_depthwise_conv"] = False
    if str(padding).upper() == "SAME" and max(attrs["dilations"]) > 1:
        warn_quirk("same_padding_dilation")
    return _append_conv(helper, type, input, weight, sides, attrs, data_format, axis)


def _check_filters(layer: str, num_filters: object) -> None:
    if not is_whole(num_filters):
        raise TypeError(f"layer {layer!r}: num_filters is {describe(num_filters)}, expected an int")


def _split_channels(
    layer: str, dims: int, input: Variable, groups: int | None, data_format: str
) -> tuple[int, int, int]:
    """Return the channel axis, the number of channels and the number of groups."""
    check_variable(layer, "input", input, FLOATS)
    axis = channel_axis(layer, data_format, dims)
    described = f"layer {layer!r}: input {input.name!r} of shape {list(input.shape)}"
    if len(input.shape) != dims + 2:
        raise GraphError(f"{described} has {len(input.shape)} dims, expected {dims + 2} ({data_format})")
    channels = input.shape[axis]
    if channels < 0:
        raise GraphError(
            f"{described} has an unknown channel count (dim {axis})",
            hint="declare that dim: the shape of the filter depends on it",
        )
    groups = 1 if groups is None else groups
    if groups <= 0 or channels % groups:
        ignored = layer.endswith("_transpose") and channels > groups
        if not (ignored and warn_quirk("conv_transpose_groups")):
            raise GraphError(
                f"{described} has {channels} channels, which cannot be divided into {groups} groups"
            )
    return axis, channels, groups


def _append_conv(
    helper: LayerHelper,
    type: str,
    input: Variable,
    weight: Variable,
    padding: Padding,
    attrs: dict[str, Any],
    data_format: str,
    axis: int,
) -> Variable:
    """Append the operator, its bias and its activation, and return the output."""
    out = helper.create_variable_for_type_inference(input.dtype)
    helper.append_op(
        type=type,
        inputs={"Input": input, "Filter": weight},
        outputs={"Output": out},
        attrs={
            **attrs,
            "paddings": padding.sizes,
            "padding_algorithm": padding.algorithm,
            "data_format": data_format,
        },
    )
    return helper.append_activation(helper.append_bias_op(out, axis, axis + 1))


def conv2d_transpose(
    input: Variable,
    num_filters: int,
    output_size: Ints | None = None,
    filter_size: Ints | None = None,
    padding: PaddingLike = 0,
    stride: Ints = 1,
    dilation: Ints = 1,
    groups: int | None = None,
    param_attr: ParamAttrLike = None,
    bias_attr: ParamAttrLike = None,
    use_cudnn: bool = True,
    act: str | None = None,
    name: str | None = None,
    data_format: str = "NCHW",
) -> Variable:
    """Return the transposed convolution, which is the gradient of a convolution (``conv2d_transpose``).

    ``input`` (N, C, H, W) gives (N, num_filters, H', W') with H' = (H - 1) * stride - padding + dilation *
    (filter - 1) + 1, or ``output_size``. The filter is (C, num_filters / groups, height, width); if
    ``filter_size`` is None, its size follows from ``output_size``.

    Returns
    -------
    Variable
        (N, num_filters, H', W'), in the dtype of ``input``; with ``"NHWC"`` (N, H', W', num_filters).

    Raises
    ------
    GraphError
        Neither ``filter_size`` nor ``output_size`` is given.
    TypeError
        ``input`` is not a variable of floats.

    >>> from paddlelike.input import data
    >>> conv2d_transpose(data("x", [None, 3, 8, 8]), num_filters=4, filter_size=3, stride=2).shape
    (-1, 4, 17, 17)
    """
    settings = (padding, stride, dilation, groups, param_attr, bias_attr, use_cudnn, act, name)
    sizes = (output_size, filter_size)
    return _conv_transpose("conv2d_transpose", 2, input, num_filters, sizes, settings, data_format)


def conv3d_transpose(
    input: Variable,
    num_filters: int,
    output_size: Ints | None = None,
    filter_size: Ints | None = None,
    padding: PaddingLike = 0,
    stride: Ints = 1,
    dilation: Ints = 1,
    groups: int | None = None,
    param_attr: ParamAttrLike = None,
    bias_attr: ParamAttrLike = None,
    use_cudnn: bool = True,
    act: str | None = None,
    name: str | None = None,
    data_format: str = "NCDHW",
) -> Variable:
    """Return the transposed convolution over three dims; see :func:`conv2d_transpose`.

    Operator ``conv3d_transpose``.

    Parameters
    ----------
    input
        Volumes (N, C, D, H, W); ``data_format`` gives the position of the channels. C must
        be known.
    data_format
        The position of the channels: ``"NCDHW"`` for dim 1, ``"NDHWC"`` for the last dim.

    Returns
    -------
    Variable
        (N, num_filters, D', H', W') with the sizes of :func:`conv2d_transpose`, in the dtype of ``input``.

    Raises
    ------
    GraphError
        The same as in :func:`conv2d_transpose`.
    TypeError
        ``input`` is not a variable of floats.

    >>> import paddlelike as fluid
    >>> x = fluid.data("x", [None, 3, 8, 16, 16])
    >>> fluid.layers.conv3d_transpose(x, num_filters=4, filter_size=2, stride=2).shape
    (-1, 4, 16, 32, 32)
    """
    settings = (padding, stride, dilation, groups, param_attr, bias_attr, use_cudnn, act, name)
    sizes = (output_size, filter_size)
    return _conv_transpose("conv3d_transpose", 3, input, num_filters, sizes, settings, data_format)


def _conv_transpose(
    type: str,
    dims: int,
    input: Variable,
    num_filters: int,
    sizes: tuple[Any, Any],
    settings: tuple[Any, ...],
    data_format: str,
) -> Variable:
    padding, stride, dilation, given_groups, param_attr, bias_attr, use_cudnn, act, name = settings
    axis, channels, groups = _split_channels(type, dims, input, given_groups, data_format)
    _check_filters(type, num_filters)
    if dims == 2 and channels == given_groups == num_filters and not use_cudnn:
        type = "depthwise_conv2d_transpose"
    strides = repeat_size(type, "stride", stride, dims)
    dilations = repeat_size(type, "dilation", dilation, dims)
    sides = parse_padding(type, "padding", padding, dims, channels_last=axis != 1)
    output_size, filter_size = sizes
    result = [] if output_size is None else repeat_size(type, "output_size", output_size, dims)
    if filter_size is not None:
        window = repeat_size(type, "filter_size", filter_size, dims)
    elif result:
        image = input.shape[2:] if axis == 1 else input.shape[1:-1]
        window = _infer_filter_size(result, image, strides, dilations, sides)
    else:
        raise GraphError(f"layer {type!r} needs filter_size or output_size")
    helper = LayerHelper(type, name=name, act=act, bias_attr=bias_attr, use_cudnn=use_cudnn)
    weight = helper.create_parameter(param_attr, [channels, num_filters // groups, *window], input.dtype)
    attrs: dict[str, Any] = {
        "output_size": result,
        "strides": strides,
        "dilations": dilations,
        "groups": groups,
        "use_cudnn": use_cudnn,
    }
    # As in Fluid, the format of images is written for volumes, too.
    data_format = "NCHW" if axis == 1 else "NHWC"
    return _append_conv(helper, type, input, weight, sides, attrs, data_format, axis)


def _infer_filter_size(
    result: list[int], image: tuple[int, ...], strides: list[int], dilations: list[int], padding: Padding
) -> list[int]:
    """Return the filter size with which ``image`` becomes ``result``."""
    sizes = padding.sizes
    both = [2 * one for one in sizes] if len(sizes) == len(image) else [
        sum(pair) for pair in zip(sizes[::2], sizes[1::2], strict=True)
    ]  # fmt: skip
    return [
        (out - (size - 1) * step + pad - 1) // spread + 1
        for out, size, step, pad, spread in zip(result, image, strides, both, dilations, strict=True)
    ]


def unfold(
    x: Variable,
    kernel_sizes: Ints,
    strides: Ints = 1,
    paddings: Ints = 0,
    dilations: Ints = 1,
    name: str | None = None,
) -> Variable:
    """Return the windows of (N, C, H, W) as columns: (N, C * height * width, windows) (operator ``unfold``).

    Returns
    -------
    Variable
        (N, C * height * width, L), in the dtype of ``x``: a column for each of the L windows.

    Raises
    ------
    TypeError
        ``x`` is not a variable of float32 or float64.

    >>> import paddlelike as fluid
    >>> x = fluid.data("x", [None, 3, 8, 8])
    >>> fluid.layers.unfold(x, kernel_sizes=3).shape
    (-1, 27, 36)
    """
    check_variable("unfold", "x", x, WIDE_FLOATS)
    sides = paddings if isinstance(paddings, list | tuple) and len(paddings) == 4 else (
        repeat_size("unfold", "paddings", paddings, 2) * 2
    )  # fmt: skip
    attrs = {
        "kernel_sizes": repeat_size("unfold", "kernel_sizes", kernel_sizes, 2),
        "strides": repeat_size("unfold", "strides", strides, 2),
        "paddings": list(sides),
        "dilations": repeat_size("unfold", "dilations", dilations, 2),
    }
    return emit("unfold", {"X": x}, attrs, slot="Y", name=name)
