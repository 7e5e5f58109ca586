"""Pixels and channels in another order: pixel_shuffle, space_to_depth, shuffle_channel, temporal_shift.

Parameters
----------
x
    (N, C, H, W).
upscale_factor
    The factor r of height and width.
group
    The count of groups of channels.
blocksize
    The side b of a block of pixels.
seg_num
    The count T of frames of a video; there are N * T rows.
shift_ratio
    The share of the channels that moves each way.
"""

from __future__ import annotations

from paddlelike.errors import GraphError
from paddlelike.framework.graph.variable import Variable
from paddlelike.framework.quirks import warn_quirk
from paddlelike.layers.checks import NUMBERS, WIDE_FLOATS, check_variable, describe, is_whole
from paddlelike.layers.emit import emit

__all__ = ["pixel_shuffle", "shuffle_channel", "space_to_depth", "temporal_shift"]


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
