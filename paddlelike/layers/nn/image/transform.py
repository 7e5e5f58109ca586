"""Layers for images (N, C, H, W): resizing, rearranging and sampling pixels."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from paddlelike.errors import GraphError
from paddlelike.framework.graph.variable import Variable
from paddlelike.framework.quirks import warn_quirk
from paddlelike.layers.checks import (
    NUMBERS,
    WIDE_FLOATS,
    check_choice,
    check_variable,
    describe,
    is_whole,
)
from paddlelike.layers.emit import emit
from paddlelike.layers.helper import LayerHelper
from paddlelike.layers.tensor.constant import as_variables
from paddlelike.layers.tensor.sizes import has_variables, repeat_size, replace_variables

if TYPE_CHECKING:
    from paddlelike.core.typing import Ints
    from paddlelike.framework.typing import ShapeLike

__all__ = [
    "add_position_encoding",
    "affine_grid",
    "fsp_matrix",
    "grid_sampler",
    "image_resize",
    "image_resize_short",
    "interpolate",
    "pixel_shuffle",
    "resize_bilinear",
    "resize_nearest",
    "resize_trilinear",
    "shuffle_channel",
    "space_to_depth",
    "temporal_shift",
    "unfold",
]

_METHODS: Final = {
    "BILINEAR": "bilinear",
    "TRILINEAR": "trilinear",
    "NEAREST": "nearest",
    "BICUBIC": "bicubic",
}


class _Resize(NamedTuple):
    """Arguments that the resizing layers share."""

    name: str | None
    method: str
    actual_shape: Variable | None
    align_corners: bool
    align_mode: int
    data_format: str


def image_resize(
    input: Variable,
    out_shape: ShapeLike | None = None,
    scale: float | Variable | None = None,
    name: str | None = None,
    resample: str = "BILINEAR",
    actual_shape: Variable | None = None,
    align_corners: bool = True,
    align_mode: int = 1,
    data_format: str = "NCHW",
) -> Variable:
    """Return images (N, C, H, W) or volumes (N, C, D, H, W) interpolated to ``out_shape`` or by ``scale``.

    ``resample``: BILINEAR, NEAREST, BICUBIC, TRILINEAR (operators ``bilinear_interp``, ...). The size may
    be an int variable, or a list with variables of shape [1]; ``scale`` a variable of shape [1].
    ``align_corners``: corner pixels keep their positions; ``align_mode`` 0: pixels are areas, 1: points.
    Raises GraphError when neither size nor scale is given, or one does not fit the input.

    ``actual_shape`` is a variable that holds the size when the program runs.

    >>> from paddlelike.input import data
    >>> image_resize(data("image", [None, 3, 4, 4]), out_shape=[8, 8], resample="NEAREST").shape
    (-1, 3, 8, 8)
    """
    check_choice("image_resize", "resample", resample.upper(), tuple(_METHODS))
    method = _METHODS[resample.upper()]
    how = _Resize(name, method, actual_shape, align_corners, align_mode, data_format)
    return _resize(input, out_shape, scale, how)


def interpolate(
    input: Variable,
    out_shape: ShapeLike | None = None,
    scale: float | Variable | None = None,
    name: str | None = None,
    resample: str = "BILINEAR",
    actual_shape: Variable | None = None,
    align_corners: bool = True,
    align_mode: int = 1,
    data_format: str = "NCHW",
) -> Variable:
    """Return the same as :func:`image_resize`; this is its later name.

    ``actual_shape`` is a variable that holds the size when the program runs.

    >>> import paddlelike as fluid
    >>> x = fluid.data("x", [None, 3, 8, 8])
    >>> fluid.layers.interpolate(x, out_shape=[16, 16]).shape
    (-1, 3, 16, 16)
    """
    return image_resize(
        input, out_shape, scale, name, resample, actual_shape, align_corners, align_mode, data_format
    )


def resize_bilinear(
    input: Variable,
    out_shape: ShapeLike | None = None,
    scale: float | Variable | None = None,
    name: str | None = None,
    actual_shape: Variable | None = None,
    align_corners: bool = True,
    align_mode: int = 1,
    data_format: str = "NCHW",
) -> Variable:
    """Return images resized by the four nearest pixels, see :func:`image_resize` (``bilinear_interp``).

    ``actual_shape`` is a variable that holds the size when the program runs. The input has shape (N,
    C, H, W).

    >>> import paddlelike as fluid
    >>> x = fluid.data("x", [None, 3, 8, 8])
    >>> fluid.layers.resize_bilinear(x, scale=2.0).shape
    (-1, 3, 16, 16)
    """
    how = _Resize(name, "bilinear", actual_shape, align_corners, align_mode, data_format)
    return _resize(input, out_shape, scale, how)


def resize_nearest(
    input: Variable,
    out_shape: ShapeLike | None = None,
    scale: float | Variable | None = None,
    name: str | None = None,
    actual_shape: Variable | None = None,
    align_corners: bool = True,
    data_format: str = "NCHW",
) -> Variable:
    """Return images resized by the nearest pixel, see :func:`image_resize` (operator ``nearest_interp``).

    ``actual_shape`` is a variable that holds the size when the program runs. The input has shape (N,
    C, H, W).

    >>> import paddlelike as fluid
    >>> x = fluid.data("x", [None, 3, 8, 8])
    >>> fluid.layers.resize_nearest(x, scale=2.0).shape
    (-1, 3, 16, 16)
    """
    how = _Resize(name, "nearest", actual_shape, align_corners, 1, data_format)
    return _resize(input, out_shape, scale, how)


def resize_trilinear(
    input: Variable,
    out_shape: ShapeLike | None = None,
    scale: float | Variable | None = None,
    name: str | None = None,
    actual_shape: Variable | None = None,
    align_corners: bool = True,
    align_mode: int = 1,
    data_format: str = "NCDHW",
) -> Variable:
    """Return volumes resized by the eight nearest voxels, see :func:`image_resize` (``trilinear_interp``).

    ``actual_shape`` is a variable that holds the size when the program runs. The input has shape (N,
    C, D, H, W).

    >>> import paddlelike as fluid
    >>> x = fluid.data("x", [None, 3, 4, 8, 8])
    >>> fluid.layers.resize_trilinear(x, scale=2.0).shape
    (-1, 3, 8, 16, 16)
    """
    how = _Resize(name, "trilinear", actual_shape, align_corners, align_mode, data_format)
    return _resize(input, out_shape, scale, how)


def _resize(
    input: Variable, out_shape: ShapeLike | None, scale: float | Variable | None, how: _Resize
) -> Variable:
    check_variable("image_resize", "input", input)
    dims = len(input.shape) - 2
    described = f"layer 'image_resize': {how.method} of input {input.name!r} of shape {list(input.shape)}"
    if dims != (3 if how.method == "trilinear" else 2):
        raise GraphError(f"{described}; images have 4 dims, volumes (trilinear) 5")
    formats = ("NCHW", "NHWC") if dims == 2 else ("NCDHW", "NDHWC")
    check_choice("image_resize", "data_format", how.data_format, formats)
    if out_shape is None and scale is None:
        raise GraphError(f"{described} needs out_shape or scale")
    type = f"{how.method}_interp"
    helper = LayerHelper(type, name=how.name)
    sizes = ("out_d", "out_h", "out_w")
    inputs: dict[str, Any] = {"X": input}
    attrs: dict[str, Any] = {
        **dict.fromkeys(sizes, -1),
        "interp_method": how.method,
        "align_corners": how.align_corners,
        "align_mode": how.align_mode,
        "data_layout": "NCHW" if how.data_format.startswith("NC") else "NHWC",
    }
    if isinstance(out_shape, Variable):
        out_shape.stop_gradient = True
        inputs["OutSize"] = out_shape
    elif out_shape is not None:
        if not isinstance(out_shape, list | tuple) or len(out_shape) != dims:
            raise GraphError(
                f"{described}: out_shape is {describe(out_shape)}, expected a variable or {dims} ints"
            )
        attrs |= zip(sizes[-dims:], replace_variables(out_shape), strict=True)
        if has_variables(out_shape):
            inputs["SizeTensor"] = as_variables(helper, out_shape)
    elif isinstance(scale, Variable):
        scale.stop_gradient = True
        inputs["Scale"] = scale
    elif scale is not None:
        if scale <= 0:
            raise GraphError(f"{described}: scale is {scale}, expected a positive number")
        attrs["scale"] = float(scale)
    if isinstance(how.actual_shape, Variable):
        how.actual_shape.stop_gradient = True
        inputs["OutSize"] = how.actual_shape
    return emit(type, inputs, attrs, helper=helper)


def image_resize_short(input: Variable, out_short_len: int, resample: str = "BILINEAR") -> Variable:
    """Return images resized so that the shorter side is ``out_short_len``, in the same proportions.

    Raises TypeError unless ``input`` is a variable, GraphError unless height and width are known.

    ``resample`` names the way, as in ``image_resize``. The result has shape (N, C, H, W).

    >>> import paddlelike as fluid
    >>> x = fluid.data("x", [None, 3, 20, 40])
    >>> fluid.layers.image_resize_short(x, out_short_len=10).shape
    (-1, 3, 10, 20)
    """
    check_variable("image_resize_short", "input", input)
    if len(input.shape) != 4 or min(input.shape[2:]) < 0:
        raise GraphError(
            f"layer 'image_resize_short': input {input.name!r} of shape {list(input.shape)} must be "
            "(N, C, H, W) with known H and W"
        )
    short = min(input.shape[2:])
    size = [int(side / short * out_short_len + 0.5) for side in input.shape[2:]]
    return image_resize(input, size, resample=resample)


def pixel_shuffle(x: Variable, upscale_factor: int) -> Variable:
    """Return (N, C * r * r, H, W) as (N, C, H * r, W * r), channels as pixels (operator ``pixel_shuffle``).

    Raises TypeError unless ``x`` is a variable of a supported dtype.

    Height and width are multiplied by ``upscale_factor``.

    >>> import paddlelike as fluid
    >>> x = fluid.data("x", [None, 8, 4, 4])
    >>> fluid.layers.pixel_shuffle(x, upscale_factor=2).shape
    (-1, 2, 8, 8)
    """
    check_variable("pixel_shuffle", "x", x, WIDE_FLOATS)
    if not is_whole(upscale_factor):
        raise TypeError(
            f"layer 'pixel_shuffle': upscale_factor must be an int, got {describe(upscale_factor)}"
        )
    return emit("pixel_shuffle", {"X": x}, {"upscale_factor": upscale_factor})


def space_to_depth(x: Variable, blocksize: int, name: str | None = None) -> Variable:
    """Return (N, C, H, W) as (N, C * b * b, H / b, W / b), pixels as channels (``space_to_depth``).

    Raises TypeError unless ``x`` is a variable of a supported dtype, GraphError unless ``blocksize`` is an
    int.

    >>> import paddlelike as fluid
    >>> x = fluid.data("x", [None, 4, 8, 8])
    >>> fluid.layers.space_to_depth(x, blocksize=2).shape
    (-1, 16, 4, 4)
    """
    check_variable("space_to_depth", "x", x, NUMBERS)
    if not is_whole(blocksize):
        raise GraphError(f"layer 'space_to_depth': blocksize must be an int, got {describe(blocksize)}")
    return emit("space_to_depth", {"X": x}, {"blocksize": blocksize}, name=name)


def shuffle_channel(x: Variable, group: int, name: str | None = None) -> Variable:
    """Return the channels in the order across ``group`` groups, not group by group (``shuffle_channel``).

    Its gradient is Fluid's, which is odd unless there are ``group * group`` channels: see ``fluid.quirks()``.
    Raises TypeError unless ``x`` is a variable of a supported dtype.

    >>> import paddlelike as fluid
    >>> x = fluid.data("x", [None, 4, 8, 8])
    >>> fluid.layers.shuffle_channel(x, group=2).shape
    (-1, 4, 8, 8)
    """
    check_variable("shuffle_channel", "x", x, WIDE_FLOATS)
    if group * group != x.shape[1]:
        warn_quirk("shuffle_channel_gradient")
    return emit("shuffle_channel", {"X": x}, {"group": group}, name=name)


def temporal_shift(x: Variable, seg_num: int, shift_ratio: float = 0.25, name: str | None = None) -> Variable:
    """Return (N * T, C, H, W) with part of the channels moved one step forward or back in time.

    Operator ``temporal_shift``. Raises TypeError unless ``x`` is a variable of a supported dtype.

    The rows of ``x`` (N * T, C, H, W) are videos of T = ``seg_num`` frames; ``shift_ratio`` of the
    channels move each way.

    >>> import paddlelike as fluid
    >>> x = fluid.data("x", [None, 4, 8, 8])
    >>> fluid.layers.temporal_shift(x, seg_num=2).shape
    (-1, 4, 8, 8)
    """
    check_variable("temporal_shift", "x", x, WIDE_FLOATS)
    attrs = {"seg_num": seg_num, "shift_ratio": shift_ratio}
    return emit("temporal_shift", {"X": x}, attrs, name=name)


def unfold(
    x: Variable,
    kernel_sizes: Ints,
    strides: Ints = 1,
    paddings: Ints = 0,
    dilations: Ints = 1,
    name: str | None = None,
) -> Variable:
    """Return the windows of (N, C, H, W) as columns: (N, C * height * width, windows) (operator ``unfold``).

    ``paddings`` is an int, [vertical, horizontal], or [top, left, bottom, right]. Raises TypeError unless
    ``x`` is a variable of a supported dtype.

    ``kernel_sizes`` is the window's height and width, ``strides`` the distance of neighbouring
    windows, ``dilations`` that of its elements; each one int for both, or two.

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


def affine_grid(theta: Variable, out_shape: ShapeLike, name: str | None = None) -> Variable:
    """Return the coordinates of pixels of ``out_shape`` (N, C, H, W) under the maps ``theta`` (N, 2, 3).

    They are (N, H, W, 2) in [-1, 1], for :func:`grid_sampler` (operator ``affine_grid``). Raises TypeError
    unless ``theta`` is a variable of a supported dtype.

    >>> import numpy as np
    >>> import paddlelike as fluid
    >>> mirror = fluid.layers.assign(np.array([[[-1, 0, 0], [0, 1, 0]]], "float32"))
    >>> grid = fluid.layers.affine_grid(mirror, out_shape=[1, 1, 2, 2])
    >>> fluid.Executor().run(fetch_list=[grid])
    [array([[[[ 1., -1.],
             [-1., -1.]],
    <BLANKLINE>
            [[ 1.,  1.],
             [-1.,  1.]]]], dtype=float32)]
    """
    check_variable("affine_grid", "theta", theta, WIDE_FLOATS)
    inputs, attrs = {"Theta": theta}, {}
    if isinstance(out_shape, Variable):
        inputs["OutputShape"] = out_shape
    else:
        attrs["output_shape"] = list(out_shape)
    return emit("affine_grid", inputs, attrs, slot="Output")


def grid_sampler(x: Variable, grid: Variable, name: str | None = None) -> Variable:
    """Return ``x`` (N, C, H, W) at the coordinates of ``grid`` (N, H, W, 2), interpolated bilinearly.

    Operator ``grid_sampler``. Raises TypeError unless ``x`` and ``grid`` are variables of supported dtypes.

    >>> import paddlelike as fluid
    >>> x = fluid.data("x", [None, 3, 8, 8])
    >>> y = fluid.data("y", [None, 8, 8, 2])
    >>> fluid.layers.grid_sampler(x, y).shape
    (-1, 3, 8, 8)
    """
    check_variable("grid_sampler", "x", x, WIDE_FLOATS)
    check_variable("grid_sampler", "grid", grid, WIDE_FLOATS)
    return emit("grid_sampler", {"X": x, "Grid": grid}, slot="Output", name=name)


def fsp_matrix(x: Variable, y: Variable) -> Variable:
    """Return the flow matrices (N, I, J): the means over pixels of ``x[n, i] * y[n, j]``.

    Operator ``fsp``. Raises TypeError unless ``x`` and ``y`` are variables of supported dtypes.

    >>> import paddlelike as fluid
    >>> x = fluid.data("x", [None, 2, 8, 8])
    >>> y = fluid.data("y", [None, 3, 8, 8])
    >>> fluid.layers.fsp_matrix(x, y).shape
    (-1, 2, 3)
    """
    check_variable("fsp_matrix", "x", x, WIDE_FLOATS)
    check_variable("fsp_matrix", "y", y, WIDE_FLOATS)
    return emit("fsp", {"X": x, "Y": y}, layer="fsp_matrix")


def add_position_encoding(input: Variable, alpha: float, beta: float, name: str | None = None) -> Variable:
    """Return ``alpha * input + beta * sines and cosines of the position`` for (N, T, D).

    Operator ``add_position_encoding``. Raises TypeError unless ``input`` is a variable of a supported
    dtype.

    >>> import paddlelike as fluid
    >>> x = fluid.data("x", [None, 6, 8])
    >>> fluid.layers.add_position_encoding(x, alpha=1.0, beta=1.0).shape
    (-1, 6, 8)
    """
    check_variable("add_position_encoding", "input", input, WIDE_FLOATS)
    attrs = {"alpha": alpha, "beta": beta}
    return emit("add_position_encoding", {"X": input}, attrs, name=name)
