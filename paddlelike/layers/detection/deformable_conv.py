"""deformable_conv: a convolution whose windows take their elements from places that the network computes.

Parameters
----------
input
    (N, C, H, W).
offset
    (N, 2 * deformable_groups * h * w, H', W'): how far each element of each window is moved, down and to
    the right.
mask
    (N, deformable_groups * h * w, H', W'): what it is multiplied by; not read unless ``modulated``.
num_filters
    The count of channels of the result.
filter_size
    The size of the filter: an int for both dims, or two.
stride
    The step between windows: an int, or two.
padding
    Zeros around the image: an int, or two.
dilation
    The distance between elements of a window: an int, or two.
groups
    How many groups of channels are convolved apart; None for 1.
deformable_groups
    How many groups of channels have offsets of their own; None for 1.
im2col_step
    How many images Fluid computes at once; None for 64. It has no effect on the numbers.
modulated
    Whether there is a mask.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from paddlelike.framework.graph.variable import Variable
from paddlelike.initializer import Normal
from paddlelike.layers.checks import WIDE_FLOATS, check_variable
from paddlelike.layers.helper import LayerHelper
from paddlelike.layers.sizes import repeat_size

if TYPE_CHECKING:
    from paddlelike.core.typing import Ints, PaddingLike
    from paddlelike.param_attr import ParamAttrLike

__all__ = ["deformable_conv"]


def deformable_conv(
    input: Variable,
    offset: Variable,
    mask: Variable | None,
    num_filters: int,
    filter_size: Ints,
    stride: Ints = 1,
    padding: PaddingLike = 0,
    dilation: Ints = 1,
    groups: int | None = None,
    deformable_groups: int | None = None,
    im2col_step: int | None = None,
    param_attr: ParamAttrLike = None,
    bias_attr: ParamAttrLike = None,
    modulated: bool = True,
    name: str | None = None,
) -> Variable:
    """Return ``conv2d`` of ``input`` whose windows are deformed by ``offset``, and weighted by ``mask``.

    Operator ``deformable_conv``, or ``deformable_conv_v1`` without a mask if not ``modulated``. ``input``
    (N, C, H, W) gives (N, num_filters, H', W'); ``offset`` (N, 2 * deformable_groups * h * w, H', W') says
    how far every element of every window is moved down and to the right, ``mask`` (N, deformable_groups *
    h * w, H', W') by what it is multiplied. Any batch can be computed; real Fluid computes only whole
    multiples of ``im2col_step`` (64) images, so that programs for it should pass 1. Raises TypeError for
    inputs that are not float variables, ValueError when ``groups`` does not divide the channels. Zhu et al.,
    2018.

    ``filter_size``, ``stride``, ``padding`` and ``dilation`` are one int for both dims, or two.

    >>> from paddlelike.input import data
    >>> x, offset = data("x", [None, 4, 8, 8]), data("offset", [None, 18, 8, 8])
    >>> mask = data("mask", [None, 9, 8, 8])
    >>> deformable_conv(x, offset, mask, num_filters=6, filter_size=3, padding=1, im2col_step=1).shape
    (-1, 6, 8, 8)
    """
    layer = "deformable_conv"
    check_variable(layer, "input", input, WIDE_FLOATS)
    check_variable(layer, "offset", offset, WIDE_FLOATS)
    if mask is not None:
        check_variable(layer, "mask", mask)
    channels = input.shape[1]
    if groups is not None and channels % groups:
        raise ValueError(f"layer {layer!r}: {channels} channels cannot be divided into {groups} groups")
    window = repeat_size(layer, "filter_size", filter_size, 2)
    helper = LayerHelper(layer, name=name, param_attr=param_attr, bias_attr=bias_attr)
    weight = helper.create_parameter(
        helper.param_attr,
        [num_filters, channels // (groups or 1), *window],
        input.dtype,
        default_initializer=Normal(0.0, math.sqrt(2.0 / (math.prod(window) * channels)), 0),
    )
    out = helper.create_variable_for_type_inference(input.dtype)
    inputs = {"Input": input, "Filter": weight, "Offset": offset}
    attrs = {
        "strides": repeat_size(layer, "stride", stride, 2),
        "paddings": repeat_size(layer, "padding", padding, 2),
        "dilations": repeat_size(layer, "dilation", dilation, 2),
        "groups": groups,
        "deformable_groups": deformable_groups,
        "im2col_step": im2col_step,
    }
    helper.append_op(
        type="deformable_conv" if modulated else "deformable_conv_v1",
        inputs=inputs | ({"Mask": mask} if modulated else {}),
        outputs={"Output": out},
        attrs={key: value for key, value in attrs.items() if value is not None},
    )
    return helper.append_bias_op(out, 1, 2)
