"""Layers that read images at other positions: resize them, or sample them on a grid.

Parameters
----------
input
    Images (N, C, H, W) or volumes (N, C, D, H, W); ``data_format`` gives the position of the channels.
out_shape
    The size of the result: an int32 variable, or a list of ints and int32 variables of shape [1]; None to use
    ``scale``.
scale
    The factor of the size: a number, or a variable of shape [1]; None to use ``out_shape``.
resample
    ``"BILINEAR"``, ``"NEAREST"``, ``"BICUBIC"`` or ``"TRILINEAR"``.
actual_shape
    An int32 variable that replaces ``out_shape`` at run time; None for none.
align_corners
    Whether corner pixels keep their positions.
align_mode
    Without ``align_corners``: 0 if pixels are areas, 1 if they are points.
out_short_len
    The length of the shorter side.
theta
    Affine maps (N, 2, 3).
x
    Images (N, C, H, W).
grid
    Coordinates (N, H, W, 2): x and y in [-1, 1].

Raises
------
TypeError, GraphError
    The same as in :func:`image_resize`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from paddlelike.errors import GraphError
from paddlelike.framework import Variable
from paddlelike.layers.emit import (
    WIDE_FLOATS,
    check_choice,
    check_variable,
    describe,
    emit,
    has_variables,
    replace_variables,
)
from paddlelike.layers.helper import LayerHelper
from paddlelike.layers.tensor.constant import as_variables

if TYPE_CHECKING:
    from paddlelike.framework.typing import ShapeLike

__all__ = [
    "affine_grid",
    "grid_sampler",
    "image_resize",
    "image_resize_short",
    "interpolate",
    "resize_bilinear",
    "resize_nearest",
    "resize_trilinear",
]


_METHODS: Final = {
    "BILINEAR": "bilinear",
    "TRILINEAR": "trilinear",
    "NEAREST": "nearest",
    "BICUBIC": "bicubic",
}


class _Resize(NamedTuple):
    """The arguments that all resizing layers share."""

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

    Operators ``bilinear_interp``, ``nearest_interp``, ``bicubic_interp`` and ``trilinear_interp``.

    Parameters
    ----------
    data_format
        The position of the channels: dim 1 (``"NCHW"``, ``"NCDHW"``) or the last (``"NHWC"``, ``"NDHWC"``).

    Returns
    -------
    Variable
        (N, C, H', W'), or (N, C, D', H', W') for volumes, in the dtype of ``input``; the sizes are
        ``out_shape``, or the sizes of ``input`` times ``scale``, rounded down.

    Raises
    ------
    TypeError
        ``input`` is not a variable.
    GraphError
        Neither size nor scale is given, or the given one does not fit the input.

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
    """Return the result of :func:`image_resize`, of which this is the later name.

    Parameters
    ----------
    data_format
        The position of the channels: dim 1 (``"NCHW"``, ``"NCDHW"``) or the last (``"NHWC"``, ``"NDHWC"``).

    Returns
    -------
    Variable
        (N, C, H', W'), or (N, C, D', H', W') for volumes, in the dtype of ``input``; the sizes are
        ``out_shape``, or the sizes of ``input`` times ``scale``, rounded down.

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
    """Return images resized from the four nearest pixels; see :func:`image_resize` (``bilinear_interp``).

    Parameters
    ----------
    input
        Images (N, C, H, W); ``data_format`` gives the position of the channels.

    Returns
    -------
    Variable
        (N, C, H', W'), in the dtype of ``input``, with the sizes of :func:`image_resize`.

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
    """Return images resized from the nearest pixel; see :func:`image_resize` (operator ``nearest_interp``).

    Parameters
    ----------
    input
        Images (N, C, H, W); ``data_format`` gives the position of the channels.

    Returns
    -------
    Variable
        (N, C, H', W'), in the dtype of ``input``, with the sizes of :func:`image_resize`.

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
    """Return volumes resized from the eight nearest voxels; see :func:`image_resize` (``trilinear_interp``).

    Parameters
    ----------
    data_format
        The position of the channels: ``"NCDHW"`` for dim 1, ``"NDHWC"`` for the last dim.
    input
        Volumes (N, C, D, H, W); ``data_format`` gives the position of the channels.

    Returns
    -------
    Variable
        (N, C, D', H', W'), in the dtype of ``input``, with the sizes of :func:`image_resize`.

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

    Operators as in :func:`image_resize`.

    Parameters
    ----------
    input
        Images (N, C, H, W).

    Returns
    -------
    Variable
        (N, C, H', W'), in the dtype of ``input``; the shorter side is ``out_short_len``.

    Raises
    ------
    TypeError
        ``input`` is not a variable.
    GraphError
        Height or width is unknown.

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


def affine_grid(theta: Variable, out_shape: ShapeLike, name: str | None = None) -> Variable:
    """Return the coordinates of the pixels of ``out_shape`` (N, C, H, W), mapped by ``theta`` (N, 2, 3).

    The coordinates are (N, H, W, 2) in [-1, 1], for :func:`grid_sampler` (operator ``affine_grid``).

    Parameters
    ----------
    out_shape
        (N, C, H, W): four ints, or an int32 variable (4,).

    Returns
    -------
    Variable
        (N, H, W, 2), in the dtype of ``theta``: x and y of each pixel, from -1 to 1.

    Raises
    ------
    TypeError
        ``theta`` is not a variable of float32 or float64.

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

    Operator ``grid_sampler``.

    Returns
    -------
    Variable
        (N, C, H, W) with H and W of ``grid``, in the dtype of ``x``.

    Raises
    ------
    TypeError
        ``x`` or ``grid`` is not a variable of float32 or float64.

    >>> import paddlelike as fluid
    >>> x = fluid.data("x", [None, 3, 8, 8])
    >>> y = fluid.data("y", [None, 8, 8, 2])
    >>> fluid.layers.grid_sampler(x, y).shape
    (-1, 3, 8, 8)
    """
    check_variable("grid_sampler", "x", x, WIDE_FLOATS)
    check_variable("grid_sampler", "grid", grid, WIDE_FLOATS)
    return emit("grid_sampler", {"X": x, "Grid": grid}, slot="Output", name=name)
