"""Operators that move channels: pixel_shuffle, space_to_depth, shuffle_channel, temporal_shift."""

from __future__ import annotations

from paddlelike.errors import ShapeError
from paddlelike.framework import follows_fluid
from paddlelike.framework.opdef import Array, Float, Gradient, Int, Long, OpDef, Spec, String, register
from paddlelike.ops.kernels.nn.image.windows import check_image, to_channels_first, to_format
from paddlelike.ops.later import register_kernel


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

    As there, channels are spread over pixels first, ``(N, C / b^2, H b, W b)``, and these numbers
    in their order in memory are the output.
    """

    type = "space_to_depth"
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

    Paddle 1.8 shuffles the gradient forward once more: see ``fluid.quirks()``.
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
    """Rows are frames, ``seg_num`` to a video: some channels come from the frame before, some from the next.

    The first ``int(C shift_ratio)`` channels come from the frame before, as many after them from the
    next; zeros where there is none. Lin et al., TSM, 2018.
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
    """The same as in Fluid 1.8; the channels may be the last dim of input and output."""
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
    """Channels taken from each group in turn."""
    x = to_channels_first(x, data_format)
    n, c, h, w = x.shape
    mixed = x.reshape(n, groups, c // groups, h, w).swapaxes(1, 2)
    return to_format(mixed.reshape(n, c, h, w), data_format)
