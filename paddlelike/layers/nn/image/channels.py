"""Layers that scale, rearrange or choose the channels of images.

Parameters
----------
x
    (N, C, H, W).
scale, bias
    Variables (C,).
upscale_factor
    The factor r of height and width.
group
    The number of groups of channels.
blocksize
    The side b of a block of pixels.
seg_num
    The number T of frames of a video; there are N * T rows.
shift_ratio
    The share of the channels that moves each way.
input
    (N, A, B, C).
axis
    The dim of the chosen matrices: 1, 2 or 3.
indexes
    The indices of the matrices along ``axis``.

Returns
-------
Variable
    In the shape and dtype of ``x``.

Raises
------
TypeError
    ``x`` is not a variable of float32 or float64.
"""

from __future__ import annotations

from paddlelike.errors import GraphError
from paddlelike.framework import Variable, warn_quirk
from paddlelike.layers.emit import NUMBERS, WIDE_FLOATS, check_variable, describe, emit, is_whole

__all__ = [
    "affine_channel",
    "pixel_shuffle",
    "shuffle_channel",
    "similarity_focus",
    "space_to_depth",
    "temporal_shift",
]


def affine_channel(
    x: Variable,
    scale: Variable | None = None,
    bias: Variable | None = None,
    data_layout: str = "NCHW",
    name: str | None = None,
    act: str | None = None,
) -> Variable:
    """Return ``act(scale * x + bias)``; ``scale`` and ``bias``, (C,), have one element per channel.

    Operator ``affine_channel``.

    Parameters
    ----------
    x
        (N, C, H, W), or (N, H, W, C) for NHWC.

    Raises
    ------
    TypeError
        ``x`` is not a variable of float32 or float64, or ``scale`` or ``bias`` is not a variable.

    >>> import paddlelike as fluid
    >>> x = fluid.data("x", [None, 3, 8, 8])
    >>> scale, bias = (fluid.layers.create_parameter([3], "float32") for _ in "ab")
    >>> fluid.layers.affine_channel(x, scale, bias).shape
    (-1, 3, 8, 8)
    """
    check_variable("affine_channel", "x", x, WIDE_FLOATS)
    check_variable("affine_channel", "scale", scale)
    check_variable("affine_channel", "bias", bias)
    inputs = {"X": x, "Scale": scale, "Bias": bias}
    return emit("affine_channel", inputs, {"data_layout": data_layout}, name=name, act=act)


def pixel_shuffle(x: Variable, upscale_factor: int) -> Variable:
    """Rearrange (N, C * r * r, H, W) to (N, C, H * r, W * r): channels become pixels (``pixel_shuffle``).

    Returns
    -------
    Variable
        (N, C, H * r, W * r) for ``x`` (N, C * r * r, H, W) and a factor of r, in the dtype of ``x``.

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
    """Rearrange (N, C, H, W) to (N, C * b * b, H / b, W / b): pixels become channels (``space_to_depth``).

    Returns
    -------
    Variable
        (N, C * b * b, H / b, W / b) for a ``blocksize`` of b, in the dtype of ``x``.

    Raises
    ------
    TypeError
        ``x`` is not a variable of float16, float32, float64, int32 or int64.
    GraphError
        ``blocksize`` is not an int.

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
    """Return the channels interleaved across ``group`` groups (operator ``shuffle_channel``).

    Its gradient is Fluid's, which is odd unless there are ``group * group`` channels: see ``fluid.quirks()``.

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

    Operator ``temporal_shift``.

    >>> import paddlelike as fluid
    >>> x = fluid.data("x", [None, 4, 8, 8])
    >>> fluid.layers.temporal_shift(x, seg_num=2).shape
    (-1, 4, 8, 8)
    """
    check_variable("temporal_shift", "x", x, WIDE_FLOATS)
    attrs = {"seg_num": seg_num, "shift_ratio": shift_ratio}
    return emit("temporal_shift", {"X": x}, attrs, name=name)


def similarity_focus(input: Variable, axis: int, indexes: list[int], name: str | None = None) -> Variable:
    """Return a mask of the largest elements of ``input``, one in each row and column.

    Operator ``similarity_focus``. The elements are chosen in the matrices at ``indexes`` along ``axis``. At
    their positions the mask is 1 along the whole ``axis``. He and Lin, 2016.

    Returns
    -------
    Variable
        In the shape and dtype of ``input``: 1 where a number was chosen, else 0.

    Raises
    ------
    TypeError
        ``input`` is not a variable, ``axis`` not an int, or ``indexes`` not a list.
    ValueError
        ``axis`` is not 1, 2 or 3, or ``indexes`` is empty.

    >>> from paddlelike.input import data
    >>> similarity_focus(data("x", [None, 3, 2, 2]), axis=1, indexes=[0]).shape
    (-1, 3, 2, 2)
    """
    layer = "similarity_focus"
    check_variable(layer, "input", input, WIDE_FLOATS)
    if not isinstance(axis, int):
        raise TypeError(f"layer {layer!r}: axis must be an int, got {describe(axis)}")
    if not isinstance(indexes, list):
        raise TypeError(f"layer {layer!r}: indexes must be a list of ints, got {describe(indexes)}")
    if axis not in (1, 2, 3):
        raise ValueError(f"layer {layer!r}: axis is {axis}, expected 1, 2 or 3")
    if not indexes:
        raise ValueError(f"layer {layer!r}: indexes is empty, expected an index or more")
    return emit(layer, {"X": input}, {"axis": axis, "indexes": indexes}, name=name)
