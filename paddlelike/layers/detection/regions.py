"""Pools over regions of images, and deformable convolutions.

Parameters
----------
input
    The feature map, (N, C, H, W).
rois
    Regions (R, 4) in pixels of the image, one sequence per image.
spatial_scale
    The factor from pixels of the image to pixels of the feature map.
pooled_height, pooled_width
    The number of bins in each direction.
trans
    Offsets of the bins, (R, 2 * classes, part height, part width).
no_trans
    Whether offsets are not read.
group_size
    The number of groups of channels, down and across.
part_size
    The number of parts of a region that have their own offsets; None for one per bin.
sample_per_part
    The number of points of a bin that are averaged in each direction.
trans_std
    The factor of the offsets.
position_sensitive
    Whether each bin reads channels of its own.
output_channels, num_filters
    The number of channels of the result.
sampling_ratio
    The number of points of a bin that are averaged in each direction; -1 for about one per pixel.
rois_lod
    The offsets of the images' regions, int64 (N + 1,); None to take them from the LoD.
transformed_height, transformed_width
    The height and width of the rectangles, in pixels.
offset
    (N, 2 * deformable_groups * h * w, H', W'): the shift of each element of each window, down and to the
    right.
mask
    (N, deformable_groups * h * w, H', W'): the factor of each element; not read unless ``modulated``.
filter_size
    The size of the filter: an int for both dims, or two.
stride
    The step between windows: an int, or two.
padding
    Zeros around the image: an int, or two.
dilation
    The distance between elements of a window: an int, or two.
groups
    The number of groups of channels that are convolved apart; None for 1.
deformable_groups
    The number of groups of channels that have offsets of their own; None for 1.
im2col_step
    The number of images that Fluid computes at once; None for 64. Where it divides N, Fluid mixes up their
    results: see ``fluid.quirks()``.
modulated
    Whether there is a mask.

Returns
-------
Variable
    (R, C, pooled_height, pooled_width), in the dtype of ``input`` (N, C, H, W).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from paddlelike.errors import GraphError
from paddlelike.framework import Variable
from paddlelike.initializer import Normal
from paddlelike.layers.emit import WIDE_FLOATS, as_list, check_variable, describe, emit, emit_all, repeat_size
from paddlelike.layers.helper import LayerHelper

if TYPE_CHECKING:
    from paddlelike.core.typing import Ints, PaddingLike
    from paddlelike.param_attr import ParamAttrLike

__all__ = [
    "deformable_conv",
    "deformable_roi_pooling",
    "prroi_pool",
    "psroi_pool",
    "roi_align",
    "roi_perspective_transform",
    "roi_pool",
]


def roi_pool(
    input: Variable,
    rois: Variable,
    pooled_height: int = 1,
    pooled_width: int = 1,
    spatial_scale: float = 1.0,
    rois_lod: Variable | None = None,
) -> Variable:
    """Return the maximum of each of ``pooled_height`` x ``pooled_width`` bins of every region.

    Operator ``roi_pool``. ``input`` (N, C, H, W), ``rois`` (R, 4) with one sequence per image, or with the
    offsets (N + 1,) int64 of the sequences in ``rois_lod``; the result is (R, C, pooled_height,
    pooled_width). Corners are rounded to pixels. Girshick, Fast R-CNN, 2015.

    Raises
    ------
    TypeError
        ``input`` or ``rois`` is not a variable.

    >>> from paddlelike.input import data
    >>> features = data("features", [None, 8, 16, 16])
    >>> roi_pool(features, data("rois", [None, 4], lod_level=1), 7, 7, spatial_scale=1 / 16).shape
    (-1, 8, 7, 7)
    """
    check_variable("roi_pool", "input", input)
    inputs = {"X": input, "ROIs": rois, "RoisLod": rois_lod}
    outputs = {"Out": input.dtype, "Argmax": "int32"}
    out, _ = emit_all("roi_pool", inputs, outputs, _sizes(pooled_height, pooled_width, spatial_scale))
    return out


def roi_align(
    input: Variable,
    rois: Variable,
    pooled_height: int = 1,
    pooled_width: int = 1,
    spatial_scale: float = 1.0,
    sampling_ratio: int = -1,
    name: str | None = None,
    rois_lod: Variable | None = None,
) -> Variable:
    """Return the mean of ``input`` over each bin of every region; the regions are not rounded to pixels.

    Operator ``roi_align``. The mean is over ``sampling_ratio`` ^ 2 points per bin, interpolated between
    pixels; -1 means about one point per pixel. He et al., Mask R-CNN, 2017.

    Raises
    ------
    TypeError
        ``input`` or ``rois`` is not a variable of float32 or float64.

    >>> from paddlelike.input import data
    >>> features = data("features", [None, 8, 16, 16])
    >>> roi_align(features, data("rois", [None, 4], lod_level=1), 7, 7, 1 / 16, sampling_ratio=2).shape
    (-1, 8, 7, 7)
    """
    check_variable("roi_align", "input", input, WIDE_FLOATS)
    check_variable("roi_align", "rois", rois, WIDE_FLOATS)
    attrs = {**_sizes(pooled_height, pooled_width, spatial_scale), "sampling_ratio": sampling_ratio}
    return emit("roi_align", {"X": input, "ROIs": rois, "RoisLod": rois_lod}, attrs, name=name)


def psroi_pool(
    input: Variable,
    rois: Variable,
    output_channels: int,
    spatial_scale: float,
    pooled_height: int,
    pooled_width: int,
    name: str | None = None,
) -> Variable:
    """Return the mean of each bin of every region; each bin reads its own channels.

    Operator ``psroi_pool``. ``input`` (N, output_channels * pooled_height * pooled_width, H, W), ``rois`` (R,
    4) with one sequence per image; the result is (R, output_channels, pooled_height, pooled_width). Dai et
    al., R-FCN, 2016.

    Returns
    -------
    Variable
        (R, output_channels, pooled_height, pooled_width), in the dtype of ``input``.

    Raises
    ------
    TypeError
        ``input`` or ``rois`` is not a variable, a size is not an int, or the scale is not a float.

    >>> from paddlelike.input import data
    >>> features = data("features", [None, 18, 16, 16])
    >>> psroi_pool(features, data("rois", [None, 4], lod_level=1), 2, 1.0, 3, 3).shape
    (-1, 2, 3, 3)
    """
    _check_types("psroi_pool", spatial_scale, output_channels=output_channels,
                 pooled_height=pooled_height, pooled_width=pooled_width)  # fmt: skip
    check_variable("psroi_pool", "input", input)
    attrs = {**_sizes(pooled_height, pooled_width, spatial_scale), "output_channels": output_channels}
    return emit("psroi_pool", {"X": input, "ROIs": rois}, attrs, name=name)


def prroi_pool(
    input: Variable,
    rois: Variable,
    spatial_scale: float = 1.0,
    pooled_height: int = 1,
    pooled_width: int = 1,
    batch_roi_nums: Variable | None = None,
    name: str | None = None,
) -> Variable:
    """Return the exact mean of ``input``, interpolated linearly between pixels, over each bin of every
    region.

    Operator ``prroi_pool``. It integrates over the bin, where :func:`roi_align` only samples points. So the
    regions have gradients too. Jiang et al., 2018.

    Parameters
    ----------
    batch_roi_nums
        The number of regions of each image, int64 (N,); None to take it from the LoD.

    Raises
    ------
    TypeError
        ``input`` or ``rois`` is not a variable, a size is not an int, or the scale is not a float.

    >>> from paddlelike.input import data
    >>> features = data("features", [None, 8, 16, 16])
    >>> prroi_pool(features, data("rois", [None, 4], lod_level=1), 1.0, 7, 7).shape
    (-1, 8, 7, 7)
    """
    _check_types("prroi_pool", spatial_scale, pooled_height=pooled_height, pooled_width=pooled_width)
    check_variable("prroi_pool", "input", input)
    inputs = {"X": input, "ROIs": rois, "BatchRoINums": batch_roi_nums}
    return emit("prroi_pool", inputs, _sizes(pooled_height, pooled_width, spatial_scale), name=name)


def roi_perspective_transform(
    input: Variable,
    rois: Variable,
    transformed_height: int,
    transformed_width: int,
    spatial_scale: float = 1.0,
    name: str | None = None,
) -> tuple[Variable, Variable, Variable]:
    """Return quadrangles of ``input`` as rectangles, the mask of pixels with values, and the transforms.

    Operator ``roi_perspective_transform``. The corners of a quadrangle go clockwise from the upper left one.

    Parameters
    ----------
    rois
        Quadrangles (R, 8): four corners (x, y), one sequence per image.

    Returns
    -------
    out : Variable
        float32 (R, C, transformed_height, transformed_width).
    mask : Variable
        int32 (R, 1, transformed_height, transformed_width): 1 inside of quadrangle and image.
    matrix : Variable
        float32 (R, 9): the transforms.

    Raises
    ------
    TypeError
        ``input`` or ``rois`` is not a variable of float32, or a size is not an int.
    GraphError
        A size is not positive.

    >>> from paddlelike.input import data
    >>> quads = data("quads", [None, 8], lod_level=1)
    >>> out, mask, matrix = roi_perspective_transform(data("x", [None, 3, 32, 32]), quads, 8, 64)
    >>> out.shape, mask.shape, matrix.shape
    ((-1, 3, 8, 64), (-1, 1, 8, 64), (-1, 9))
    """
    layer = "roi_perspective_transform"
    check_variable(layer, "input", input, WIDE_FLOATS[:1])
    check_variable(layer, "rois", rois, WIDE_FLOATS[:1])
    for argument, size in (
        ("transformed_height", transformed_height),
        ("transformed_width", transformed_width),
    ):
        if not isinstance(size, int):
            raise TypeError(f"layer {layer!r}: {argument} must be an int, got {describe(size)}")
    out, mask, matrix, *_ = emit_all(
        layer,
        {"X": input, "ROIs": rois},
        {
            "Out": input.dtype,
            "Mask": "int32",
            "TransformMatrix": input.dtype,
            "Out2InIdx": "int32",
            "Out2InWeights": input.dtype,
        },
        {
            "transformed_height": transformed_height,
            "transformed_width": transformed_width,
            "spatial_scale": spatial_scale,
        },
        name=name,
    )
    return out, mask, matrix


def deformable_roi_pooling(
    input: Variable,
    rois: Variable,
    trans: Variable,
    no_trans: bool = False,
    spatial_scale: float = 1.0,
    group_size: Sequence[int] = [1, 1],
    pooled_height: int = 1,
    pooled_width: int = 1,
    part_size: Sequence[int] | None = None,
    sample_per_part: int = 1,
    trans_std: float = 0.1,
    position_sensitive: bool = False,
    name: str | None = None,
) -> Variable:
    """Return the mean of each bin of every region, where ``trans`` moves the bins.

    Operator ``deformable_psroi_pooling``. ``trans`` shifts bins to the right and down; its unit is the size
    of the region times ``trans_std``. The result is (R, D, pooled_height, pooled_width) with D = C, or C /
    pooled_height / pooled_width if ``position_sensitive``. Dai et al., 2017.

    Returns
    -------
    Variable
        (R, D, pooled_height, pooled_width), in the dtype of ``input``.

    Raises
    ------
    TypeError
        ``input``, ``rois`` or ``trans`` is not a variable of float32 or float64.
    GraphError
        ``position_sensitive`` is set, and the channels cannot be divided by the bins.

    >>> from paddlelike.input import data
    >>> rois, trans = data("rois", [None, 4], lod_level=1), data("trans", [None, 2, 7, 7])
    >>> features = data("features", [None, 8, 16, 16])
    >>> deformable_roi_pooling(features, rois, trans, pooled_height=7, pooled_width=7).shape
    (-1, 8, 7, 7)
    """
    layer = "deformable_roi_pooling"
    for argument, value in (("input", input), ("rois", rois), ("trans", trans)):
        check_variable(layer, argument, value, WIDE_FLOATS)
    as_list(layer, "group_size", group_size)
    if part_size is not None:
        as_list(layer, "part_size", part_size)
    channels, bins = input.shape[1], pooled_height * pooled_width
    if position_sensitive and channels % bins:
        raise GraphError(f"layer {layer!r}: {channels} channels cannot be divided into {bins} bins")
    parts = [pooled_height, pooled_width] if part_size is None else part_size
    out, _ = emit_all(
        "deformable_psroi_pooling",
        {"Input": input, "ROIs": rois, "Trans": trans},
        {"Output": input.dtype, "TopCount": "int32"},
        {
            **_sizes(pooled_height, pooled_width, spatial_scale),
            "no_trans": no_trans,
            "output_dim": channels // bins if position_sensitive else channels,
            "group_size": repeat_size(layer, "group_size", group_size, 2),
            "part_size": repeat_size(layer, "part_size", parts, 2),
            "sample_per_part": sample_per_part,
            "trans_std": trans_std,
        },
        name=name,
    )
    return out


def _sizes(height: int, width: int, scale: float) -> dict[str, Any]:
    return {"pooled_height": height, "pooled_width": width, "spatial_scale": scale}


def _check_sizes(layer: str, **sizes: object) -> None:
    for argument, size in sizes.items():
        if not isinstance(size, int):
            raise TypeError(f"layer {layer!r}: {argument} must be an int, got {describe(size)}")


def _check_types(layer: str, scale: object, **sizes: object) -> None:
    _check_sizes(layer, **sizes)
    if not isinstance(scale, float):
        raise TypeError(f"layer {layer!r}: spatial_scale must be a float, got {describe(scale)}")


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

    Operator ``deformable_conv``; without ``modulated`` it is ``deformable_conv_v1``, which has no mask. Any
    batch size works here. Fluid itself needs a multiple of ``im2col_step`` (64) images, so programs for Fluid
    should pass 1. Zhu et al., 2018.

    Parameters
    ----------
    input
        (N, C, H, W).

    Returns
    -------
    Variable
        (N, num_filters, H', W'), in the dtype of ``input``; H' and W' as in :func:`conv2d`.

    Raises
    ------
    TypeError
        ``input``, ``offset`` or ``mask`` is not a variable of floats.
    ValueError
        ``groups`` does not divide the channels.

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
