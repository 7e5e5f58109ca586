"""Operators on the channels of images: affine_channel, similarity_focus, and operators that move channels."""

from __future__ import annotations

import numpy as np

from paddlelike.errors import ShapeError
from paddlelike.framework import follows_fluid
from paddlelike.framework.opdef import Array, Float, Gradient, Int, Ints, Long, OpDef, Spec, String, register
from paddlelike.ops.kernels.nn.image.windows import check_image, to_channels_first, to_format
from paddlelike.ops.kernels.nn.normalization.images import normalize_channels_dx, scale_channels
from paddlelike.ops.kernels.sorting import argsort_unstable
from paddlelike.ops.later import register_kernel
from paddlelike.ops.operands import can_be_equal


@register
class AffineChannel(OpDef):
    """``Out = Scale[c] X + Bias[c]``; the channels are the last dim unless ``data_layout`` is NCHW."""

    type = "affine_channel"
    by_row = True
    inputs = ("X", "Scale", "Bias")
    attrs = {"data_layout": String("AnyLayout")}
    lod = "X"
    any_order = True
    gradient = Gradient("X", "Scale", "Out@GRAD", outputs=("X@GRAD", "Scale@GRAD", "Bias@GRAD"))

    @staticmethod
    def infer(x: Spec, scale: Spec, bias: Spec, *, data_layout: str) -> Spec:
        channels = x.shape[1 if data_layout == "NCHW" else -1]
        for name, spec in (("Scale", scale), ("Bias", bias)):
            if len(spec.shape) != 1 or not can_be_equal(spec.shape[0], channels):
                raise ShapeError(
                    f"affine_channel: X of shape {x.shape} ({data_layout}) has {channels} channels, "
                    f"{name} has shape {spec.shape}"
                )
        return Spec(x.shape, x.dtype)

    @staticmethod
    def forward(x: Array, scale: Array, bias: Array, *, data_layout: str) -> Array:
        return scale_channels(x, scale, bias, _find_layout(data_layout))

    @staticmethod
    def backward(
        x: Array, scale: Array, d_out: Array, *, data_layout: str, wanted: tuple[bool, bool, bool]
    ) -> tuple[Array | None, Array | None, Array | None]:
        layout = _find_layout(data_layout)
        if not any(wanted[1:]):
            return scale_channels(d_out, scale, None, layout), None, None
        plain = np.zeros_like(scale), np.ones_like(scale)
        return normalize_channels_dx(x, d_out, *plain, scale, layout, fixed=True)


def _find_layout(layout: str) -> str:
    return "NCHW" if layout == "NCHW" else "NHWC"


@register
class SimilarityFocus(OpDef):
    """``Out``: 1 at the chosen positions, along all of ``axis``, else 0; it has the shape of X.

    X is ``(N, A, B, C)``. Each of ``indexes`` along ``axis`` (1, 2 or 3) is a matrix of ``X[n]``. Its numbers
    are chosen from the greatest down, at most one in each row and column.
    """

    type = "similarity_focus"
    lod = "X"
    attrs = {"axis": Int(), "indexes": Ints()}

    @staticmethod
    def infer(x: Spec, *, axis: int, indexes: list[int]) -> Spec:
        if len(x.shape) != 4 or axis not in (1, 2, 3) or not indexes:
            raise ShapeError(
                f"similarity_focus: X has shape {x.shape}, axis is {axis} and indexes {list(indexes)}; "
                "expected 4 dims, an axis of 1, 2 or 3, and an index or more"
            )
        if x.shape[axis] >= 0 and not all(0 <= i < x.shape[axis] for i in indexes):
            raise ShapeError(
                f"similarity_focus: indexes is {list(indexes)}, dim {axis} of X {x.shape} has {x.shape[axis]}"
            )
        return Spec(x.shape, x.dtype)

    @staticmethod
    def forward(x: Array, *, axis: int, indexes: list[int]) -> Array:
        out = np.zeros_like(x)
        for image, mask in zip(np.moveaxis(x, axis, 1), np.moveaxis(out, axis, 1), strict=True):
            for index in indexes:
                rows, columns = _choose(image[index])
                mask[:, rows, columns] = 1
        return out


def _choose(matrix: Array) -> tuple[list[int], list[int]]:
    """Return the rows and columns of the largest elements; no two share a row or column."""
    height, width = matrix.shape
    rows: list[int] = []
    columns: list[int] = []
    free_rows, free_columns = [True] * height, [True] * width
    for place in argsort_unstable(matrix.reshape(-1)).tolist():
        row, column = divmod(place, width)
        if free_rows[row] and free_columns[column]:
            free_rows[row] = free_columns[column] = False
            rows.append(row)
            columns.append(column)
            if len(rows) == min(height, width):
                break
    return rows, columns


@register
class PixelShuffle(OpDef):
    """``(N, C r^2, H, W)`` to ``(N, C, H r, W r)``: channels become pixels. Shi et al., 2016."""

    type = "pixel_shuffle"
    by_row = True
    any_order = True
    attrs = {"upscale_factor": Int(1)}
    gradient = Gradient("Out@GRAD")

    @staticmethod
    def infer(x: Spec, *, upscale_factor: int) -> Spec:
        check_image("pixel_shuffle", x)
        n, c, h, w = x.shape
        r = upscale_factor
        if r < 1 or c % r**2:
            raise ShapeError(
                f"pixel_shuffle: X of shape {x.shape} has {c} channels; upscale_factor {r} needs a "
                f"multiple of {r**2}"
            )
        return Spec((n, c // r**2, h * r, w * r), x.dtype)

    @staticmethod
    def forward(x: Array, *, upscale_factor: int) -> Array:
        n, c, h, w = x.shape
        r = upscale_factor
        pixels = x.reshape(n, c // r**2, r, r, h, w).transpose(0, 1, 4, 2, 5, 3)
        return pixels.reshape(n, c // r**2, h * r, w * r)

    @staticmethod
    def backward(d_out: Array, *, upscale_factor: int) -> Array:
        n, c, h, w = d_out.shape
        r = upscale_factor
        channels = d_out.reshape(n, c, h // r, r, w // r, r).transpose(0, 1, 3, 5, 2, 4)
        return channels.reshape(n, c * r**2, h // r, w // r)


@register
class SpaceToDepth(OpDef):
    """``(N, C, H, W)`` to ``(N, C b^2, H / b, W / b)`` in the order of YOLO's reorganisation layer.

    As in that layer, channels are first spread over pixels, ``(N, C / b^2, H b, W b)``; this array is then
    reshaped to the output's shape.
    """

    type = "space_to_depth"
    until = "1"
    lod = "X"
    attrs = {"blocksize": Long(2)}
    gradient = Gradient("X", "Out@GRAD", outputs=("X@GRAD",))

    @staticmethod
    def infer(x: Spec, *, blocksize: int) -> Spec:
        check_image("space_to_depth", x)
        n, c, h, w = x.shape
        b = blocksize
        if b < 2 or c % b**2 or any(size > 0 and size % b for size in (h, w)):
            raise ShapeError(
                f"space_to_depth: blocksize {b} must be 2 or more, divide height and width of X of shape "
                f"{x.shape}, and {b**2} its channels"
            )
        return Spec((n, c * b**2, h // b, w // b), x.dtype)

    @staticmethod
    def forward(x: Array, *, blocksize: int) -> Array:
        n, c, h, w = x.shape
        b = blocksize
        spread = x.reshape(n, b, b, c // b**2, h, w).transpose(0, 3, 4, 1, 5, 2)
        return spread.reshape(n, c * b**2, h // b, w // b)

    @staticmethod
    def backward(x: Array, d_out: Array, *, blocksize: int) -> Array:
        n, c, h, w = x.shape
        b = blocksize
        return d_out.reshape(n, c // b**2, h, b, w, b).transpose(0, 3, 5, 1, 2, 4).reshape(x.shape)


@register
class ShuffleChannel(OpDef):
    """Channel ``j`` of group ``g`` becomes channel ``j group + g``. Zhang et al., ShuffleNet, 2017.

    Paddle 1.8 shuffles the gradient by the same rule, not by its inverse: see ``fluid.quirks()``.
    """

    type = "shuffle_channel"
    by_row = True
    attrs = {"group": Int(1)}
    gradient = Gradient("Out@GRAD")

    @staticmethod
    def infer(x: Spec, *, group: int) -> Spec:
        check_image("shuffle_channel", x)
        if group < 1 or x.shape[1] % group:
            raise ShapeError(
                f"shuffle_channel: X of shape {x.shape} has {x.shape[1]} channels, which {group} groups "
                "do not divide"
            )
        return Spec(x.shape, x.dtype)

    @staticmethod
    def forward(x: Array, *, group: int) -> Array:
        return _transpose_channels(x, group)

    @staticmethod
    def backward(d_out: Array, *, group: int) -> Array:
        forward = follows_fluid("shuffle_channel_gradient")
        return _transpose_channels(d_out, group if forward else d_out.shape[1] // group)


def _transpose_channels(x: Array, group: int) -> Array:
    grouped = x.reshape(len(x), group, x.shape[1] // group, *x.shape[2:])
    return grouped.swapaxes(1, 2).reshape(x.shape)


@register
class TemporalShift(OpDef):
    """Rows are frames, ``seg_num`` per video: some channels come from the previous frame, some from the next.

    The first ``int(C shift_ratio)`` channels come from the previous frame, the same number of channels after
    them from the next frame. A missing frame is zeros. Lin et al., TSM, 2018.
    """

    type = "temporal_shift"
    lod = "X"
    attrs = {"seg_num": Int(), "shift_ratio": Float(0.25)}
    gradient = Gradient("Out@GRAD")

    @staticmethod
    def infer(x: Spec, *, seg_num: int, shift_ratio: float) -> Spec:
        check_image("temporal_shift", x)
        if seg_num < 1 or (x.shape[0] > 0 and x.shape[0] % seg_num) or not 0 < shift_ratio < 0.5:
            raise ShapeError(
                f"temporal_shift: seg_num {seg_num} must divide the rows of X of shape {x.shape}, and "
                f"shift_ratio {shift_ratio} be between 0 and 0.5"
            )
        return Spec(x.shape, x.dtype)

    @staticmethod
    def forward(x: Array, *, seg_num: int, shift_ratio: float) -> Array:
        return _shift_frames(x, seg_num, shift_ratio, 1)

    @staticmethod
    def backward(d_out: Array, *, seg_num: int, shift_ratio: float) -> Array:
        return _shift_frames(d_out, seg_num, shift_ratio, -1)


def _shift_frames(x: Array, seg_num: int, ratio: float, step: int) -> Array:
    videos = x.reshape(len(x) // seg_num, seg_num, *x.shape[1:])
    out = videos.copy()
    one, two = int(x.shape[1] * ratio), int(x.shape[1] * 2 * ratio)
    for channels, by in ((slice(0, one), step), (slice(one, two), -step)):
        here, there = (slice(1, None), slice(None, -1))[::by]
        out[:, :, channels] = 0
        out[:, here, channels] = videos[:, there, channels]
    return out.reshape(x.shape)


_SHUFFLE = {"upscale_factor": Int(1), "data_format": String("NCHW")}


@register_kernel("pixel_shuffle", "X -> Out", _SHUFFLE, changed=True)
def _pixel_shuffle(x: Array, *, upscale_factor: int, data_format: str) -> Array:
    """Channels as pixels, as in Fluid 1.8; the channels may be the last dim of input and output."""
    shuffled = PixelShuffle.forward(to_channels_first(x, data_format), upscale_factor=upscale_factor)
    return to_format(shuffled, data_format)


@register_kernel("pixel_unshuffle", "X -> Out", {"downscale_factor": Int(1), "data_format": String("NCHW")})
def _pixel_unshuffle(x: Array, *, downscale_factor: int, data_format: str) -> Array:
    """Squares of pixels as channels."""
    x, r = to_channels_first(x, data_format), downscale_factor
    n, c, h, w = x.shape
    parts = x.reshape(n, c, h // r, r, w // r, r).transpose(0, 1, 3, 5, 2, 4)
    return to_format(parts.reshape(n, c * r * r, h // r, w // r), data_format)


@register_kernel("channel_shuffle", "X -> Out", {"groups": Int(1), "data_format": String("NCHW")})
def _channel_shuffle(x: Array, *, groups: int, data_format: str) -> Array:
    """Channels, taken from each group in turn."""
    x = to_channels_first(x, data_format)
    n, c, h, w = x.shape
    mixed = x.reshape(n, groups, c // groups, h, w).swapaxes(1, 2)
    return to_format(mixed.reshape(n, c, h, w), data_format)
