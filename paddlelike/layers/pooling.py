"""Pools: the greatest or the mean of windows over images (N, C, H, W) and volumes (N, C, D, H, W)."""

from __future__ import annotations

from typing import Any

from paddlelike.core.dtypes import VarType
from paddlelike.errors import GraphError
from paddlelike.framework.variable import Variable
from paddlelike.layers.checks import (
    FLOATS,
    INTEGERS,
    WIDE_FLOATS,
    check_choice,
    check_variable,
)
from paddlelike.layers.emit import emit
from paddlelike.layers.helper import LayerHelper
from paddlelike.layers.sizes import repeated
from paddlelike.layers.windows import channel_axis, window_padding

__all__ = [
    "adaptive_pool2d",
    "adaptive_pool3d",
    "pool2d",
    "pool3d",
    "prroi_pool",
    "psroi_pool",
    "roi_align",
    "roi_pool",
]


def pool2d(
    input: Variable,
    pool_size: Any = -1,
    pool_type: str = "max",
    pool_stride: Any = 1,
    pool_padding: Any = 0,
    global_pooling: bool = False,
    use_cudnn: bool = True,
    ceil_mode: bool = False,
    name: str | None = None,
    exclusive: bool = True,
    data_format: str = "NCHW",
) -> Variable:
    """The ``"max"`` or ``"avg"`` of every window of ``pool_size`` (operator ``pool2d``).

    (N, C, H, W) gives (N, C, H', W') with H' = (H + padding - size) / stride + 1, rounded up in
    ``ceil_mode``. ``global_pooling``: one window over everything. ``exclusive``: means do not count the
    padding.

    >>> from paddlelike.input import data
    >>> pool2d(data("x", [None, 3, 8, 8]), pool_size=2, pool_stride=2).shape
    (-1, 3, 4, 4)
    """
    settings = (pool_stride, pool_padding, global_pooling, use_cudnn, ceil_mode, exclusive)
    return _pool("pool2d", 2, input, pool_size, pool_type, settings, data_format, name)


def pool3d(
    input: Variable,
    pool_size: Any = -1,
    pool_type: str = "max",
    pool_stride: Any = 1,
    pool_padding: Any = 0,
    global_pooling: bool = False,
    use_cudnn: bool = True,
    ceil_mode: bool = False,
    name: str | None = None,
    exclusive: bool = True,
    data_format: str = "NCDHW",
) -> Variable:
    """:func:`pool2d` over three dims (operator ``pool3d``)."""
    settings = (pool_stride, pool_padding, global_pooling, use_cudnn, ceil_mode, exclusive)
    return _pool("pool3d", 3, input, pool_size, pool_type, settings, data_format, name)


def _pool(
    type: str,
    dims: int,
    input: Variable,
    pool_size: Any,
    pool_type: str,
    settings: tuple[Any, ...],
    data_format: str,
    name: str | None,
) -> Variable:
    stride, padding, everything, use_cudnn, ceil_mode, exclusive = settings
    check_variable(type, "input", input, FLOATS)
    check_choice(type, "pool_type", pool_type, ("max", "avg"))
    axis = channel_axis(type, data_format, dims)
    if not everything and pool_size == -1:
        raise GraphError(f"layer {type!r} needs pool_size", hint="or global_pooling=True for one window")
    sides = window_padding(type, "pool_padding", padding, dims, channels_last=axis != 1)
    if sides.algorithm == "VALID" and ceil_mode:
        raise GraphError(f"layer {type!r}: pool_padding 'VALID' and ceil_mode exclude each other")
    attrs = {
        "pooling_type": pool_type,
        "ksize": repeated(type, "pool_size", pool_size, dims),
        "global_pooling": everything,
        "strides": repeated(type, "pool_stride", stride, dims),
        "paddings": sides.sizes,
        "padding_algorithm": sides.algorithm,
        "use_cudnn": use_cudnn,
        "ceil_mode": ceil_mode,
        "use_mkldnn": False,
        "exclusive": exclusive,
        "data_format": data_format,
    }
    return emit(type, {"X": input}, attrs, name=name)


def adaptive_pool2d(
    input: Variable,
    pool_size: Any,
    pool_type: str = "max",
    require_index: bool = False,
    name: str | None = None,
) -> Any:
    """The ``"max"`` or ``"avg"`` of (N, C, H, W) in ``pool_size`` (H', W') windows of about equal size.

    Operators ``max_pool2d_with_index`` and ``pool2d``. ``require_index`` adds where the greatest are.
    """
    return _adaptive(2, input, pool_size, pool_type, require_index, name)


def adaptive_pool3d(
    input: Variable,
    pool_size: Any,
    pool_type: str = "max",
    require_index: bool = False,
    name: str | None = None,
) -> Any:
    """:func:`adaptive_pool2d` over three dims (``max_pool3d_with_index``, ``pool3d``)."""
    return _adaptive(3, input, pool_size, pool_type, require_index, name)


def _adaptive(
    dims: int, input: Variable, pool_size: Any, pool_type: str, require_index: bool, name: str | None
) -> Any:
    layer = f"adaptive_pool{dims}d"
    check_variable(layer, "input", input, (*WIDE_FLOATS, *INTEGERS))
    check_choice(layer, "pool_type", pool_type, ("max", "avg"))
    greatest = pool_type == "max"
    if require_index and not greatest:
        raise GraphError(f"layer {layer!r}: require_index goes with pool_type 'max' only")
    size = repeated(layer, "pool_size", pool_size, dims)
    type = f"max_pool{dims}d_with_index" if greatest else f"pool{dims}d"
    helper = LayerHelper(type, name=name)
    out = helper.create_variable_for_type_inference(input.dtype)
    outputs = {"Out": out}
    if greatest:
        outputs["Mask"] = helper.create_variable_for_type_inference(input.dtype)
    attrs = {"pooling_type": pool_type, "ksize": size, "adaptive": True}
    helper.append_op(type=type, inputs={"X": input}, outputs=outputs, attrs=attrs)
    return (out, outputs["Mask"]) if require_index else out


def roi_pool(
    input: Variable,
    rois: Variable,
    pooled_height: int = 1,
    pooled_width: int = 1,
    spatial_scale: float = 1.0,
    rois_lod: Variable | None = None,
) -> Variable:
    """The greatest of each of the cells of every region (x1, y1, x2, y2) of ``rois`` (``roi_pool``)."""
    check_variable("roi_pool", "input", input)
    check_variable("roi_pool", "rois", rois)
    helper = LayerHelper("roi_pool")
    out = helper.create_variable_for_type_inference(input.dtype)
    where = helper.create_variable_for_type_inference(VarType.INT32)
    inputs = {"X": input, "ROIs": rois}
    if rois_lod is not None:
        inputs["RoisLod"] = rois_lod
    attrs = {
        "pooled_height": pooled_height,
        "pooled_width": pooled_width,
        "spatial_scale": spatial_scale,
    }
    outputs = {"Out": out, "Argmax": where}
    helper.append_op(type="roi_pool", inputs=inputs, outputs=outputs, attrs=attrs)
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
    """The means of bilinear samples in each of the cells of every region of ``rois`` (``roi_align``)."""
    check_variable("roi_align", "input", input, WIDE_FLOATS)
    check_variable("roi_align", "rois", rois, WIDE_FLOATS)
    attrs = {
        "pooled_height": pooled_height,
        "pooled_width": pooled_width,
        "spatial_scale": spatial_scale,
        "sampling_ratio": sampling_ratio,
    }
    inputs = {"X": input, "ROIs": rois, "RoisLod": rois_lod}
    return emit("roi_align", inputs, attrs, name=name)


def psroi_pool(
    input: Variable,
    rois: Variable,
    output_channels: int,
    spatial_scale: float,
    pooled_height: int,
    pooled_width: int,
    name: str | None = None,
) -> Variable:
    """The mean of each cell of every region, each cell from channels of its own (``psroi_pool``)."""
    check_variable("psroi_pool", "input", input)
    check_variable("psroi_pool", "rois", rois)
    attrs = {
        "output_channels": output_channels,
        "spatial_scale": spatial_scale,
        "pooled_height": pooled_height,
        "pooled_width": pooled_width,
    }
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
    """The exact mean of the interpolated image in each cell of every region (``prroi_pool``)."""
    check_variable("prroi_pool", "input", input, (VarType.FP32,))
    check_variable("prroi_pool", "rois", rois, (VarType.FP32,))
    attrs = {
        "spatial_scale": spatial_scale,
        "pooled_height": pooled_height,
        "pooled_width": pooled_width,
    }
    inputs = {"X": input, "ROIs": rois, "BatchRoINums": batch_roi_nums}
    return emit("prroi_pool", inputs, attrs, name=name)
