"""deformable_psroi_pooling: the mean of an image in the bins of a region, where the network moves each bin.

Dai et al., Deformable convolutional networks, 2017.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from paddlelike.core import VarType
from paddlelike.errors import EnforceNotMet, ShapeError
from paddlelike.framework.opdef import (
    Array,
    Attrs,
    Bool,
    Context,
    Float,
    Gradient,
    Int,
    Ints,
    OpDef,
    Spec,
    register,
)
from paddlelike.ops.kernels.detection.regions import check_regions, index_images, round_half_away, scatter_add
from paddlelike.ops.operands import can_be_equal


class _Attrs(Attrs):
    no_trans: bool = Bool()
    spatial_scale: float = Float()
    output_dim: int = Int()
    group_size: list[int] = Ints()
    pooled_height: int = Int()
    pooled_width: int = Int()
    part_size: list[int] = Ints()
    sample_per_part: int = Int()
    trans_std: float = Float()


@register
class DeformablePsRoiPooling(OpDef):
    """``Output[r, o, i, j]``: the mean of Input at ``sample_per_part`` ^ 2 points of bin (i, j) of region r.

    Input ``(N, output_dim * group height * group width, H, W)``; ROIs ``(R, 4)`` as (x1, y1, x2, y2), one
    sequence per image; Trans ``(R, 2 * classes, part height, part width)`` times ``trans_std`` is the shift
    of each part to the right and down, in sizes of the region (unless ``no_trans``). Output ``(R, output_dim,
    pooled_height, pooled_width)``; TopCount: the number of points inside the image.
    """

    type = "deformable_psroi_pooling"
    inputs = ("Input", "ROIs", "Trans")
    outputs = ("TopCount", "Output")
    attrs = _Attrs.table()
    gradient = Gradient(
        "Input", "ROIs", "Trans", "TopCount", "Output@GRAD", outputs=("Input@GRAD", "Trans@GRAD")
    )

    @classmethod
    def infer(cls, x: Spec, rois: Spec, trans: Spec, *, attrs: _Attrs) -> tuple[Spec, Spec]:
        check_regions(cls.type, x, rois)
        wanted = (rois.shape[0], -1, *attrs.part_size)
        if len(trans.shape) != 4 or not all(map(can_be_equal, trans.shape, wanted)) or trans.shape[1] % 2:
            raise ShapeError(
                f"{cls.type}: Trans has shape {trans.shape}; it needs (R, 2 * classes, rows, columns), "
                f"and part_size is {list(attrs.part_size)}"
            )
        shape = (rois.shape[0], attrs.output_dim, attrs.pooled_height, attrs.pooled_width)
        # TopCount has the dtype of Input; declared as Paddle's layer does.
        return Spec(shape, VarType.INT32), Spec(shape, x.dtype)

    @staticmethod
    def forward(ctx: Context, x: Array, rois: Array, trans: Array, *, attrs: _Attrs) -> tuple[Array, Array]:
        points = _place_points(ctx, x, rois, trans, attrs)
        flat = x.reshape(-1)
        total = sum(
            flat[corner] * weight for corner, weight in zip(points.corners, points.weights, strict=True)
        )
        count = points.inside.sum((-2, -1)).astype(x.dtype)
        return count, (total * points.inside).sum((-2, -1), dtype=x.dtype) / np.maximum(count, 1)

    @staticmethod
    def backward(
        ctx: Context, x: Array, rois: Array, trans: Array, count: Array, d_out: Array, *, attrs: _Attrs
    ) -> tuple[Array, Array]:
        points = _place_points(ctx, x, rois, trans, attrs)
        each = (d_out / np.maximum(count, 1))[..., None, None] * points.inside
        dx = scatter_add(x.size, points.corners, points.weights * each).reshape(x.shape)
        d_trans = np.zeros_like(trans)
        if not attrs.no_trans:
            lower, right = points.fraction
            upper_left, lower_left, upper_right, lower_right = x.reshape(-1)[points.corners]
            by_x = (lower_right - lower_left) * lower + (upper_right - upper_left) * (1 - lower)
            by_y = (lower_right - upper_right) * right + (lower_left - upper_left) * (1 - right)
            moved = [
                (by * each).sum((-2, -1)) * size for by, size in zip((by_x, by_y), points.size, strict=True)
            ]
            steps = np.stack(moved) * x.dtype.type(attrs.trans_std)
            d_trans = scatter_add(trans.size, points.part, steps).reshape(trans.shape)
        return dx, d_trans


class _Points(NamedTuple):
    """The points of all bins: (R, D, H', W', S, S), or arrays that broadcast to that shape."""

    corners: Array  # (4, ...) flat indices into the input: upper left, lower left, upper right, lower right
    weights: Array  # (4, ...)
    fraction: tuple[Array, Array]  # how far a point is below and to the right of the upper left pixel
    inside: Array  # bool
    part: Array  # (2, R, D, H', W') flat indices into Trans: to the right, down
    size: tuple[Array, Array]  # (R, 1, 1, 1): width and height of the regions


def _place_points(ctx: Context, x: Array, rois: Array, trans: Array, attrs: _Attrs) -> _Points:
    real, (_, channels, height, width) = x.dtype.type, x.shape
    owners = index_images(ctx, len(rois), len(x))
    if channels != attrs.output_dim * attrs.group_size[0] * attrs.group_size[1]:
        raise EnforceNotMet(
            f"deformable_psroi_pooling: Input has {channels} channels; output_dim {attrs.output_dim} and "
            f"group_size {list(attrs.group_size)} require the product of both"
        )
    corners = round_half_away(rois.astype(x.dtype, copy=False)) + np.array([0, 0, 1, 1], x.dtype)
    corners = (corners * real(attrs.spatial_scale) - real(0.5))[:, :, None, None, None]
    left, top, right, bottom = corners.swapaxes(0, 1)
    wide, tall = np.maximum(right - left, real(0.1)), np.maximum(bottom - top, real(0.1))
    part = _index_parts(trans, attrs)
    move = (
        np.zeros((2, 1, 1, 1, 1), x.dtype)
        if attrs.no_trans
        else trans.reshape(-1)[part] * real(attrs.trans_std)
    )
    rows, columns = np.arange(attrs.pooled_height)[:, None], np.arange(attrs.pooled_width)
    start_x, step_x = _cut(left, wide, columns, attrs.pooled_width, attrs.sample_per_part)
    start_y, step_y = _cut(top, tall, rows, attrs.pooled_height, attrs.sample_per_part)
    samples = np.arange(attrs.sample_per_part).astype(x.dtype)
    at_x = (start_x + move[0] * wide)[..., None, None] + samples * step_x[..., None, None]
    at_y = (start_y + move[1] * tall)[..., None, None] + samples[:, None] * step_y[..., None, None]
    inside = (at_x >= -0.5) & (at_x <= width - 0.5) & (at_y >= -0.5) & (at_y <= height - 0.5)
    at_x, at_y = np.clip(at_x, 0, width - 1), np.clip(at_y, 0, height - 1)
    x1, y1 = np.floor(at_x), np.floor(at_y)
    lower, to_right = at_y - y1, at_x - x1
    plane = (owners[:, None, None, None] * channels + _index_channels(attrs))[..., None, None] * (
        height * width
    )
    y2, x2 = np.ceil(at_y), np.ceil(at_x)
    pixels = [plane + (y * width + x).astype(np.int64) for x, y in ((x1, y1), (x1, y2), (x2, y1), (x2, y2))]
    weights = [across * along for across in (1 - to_right, to_right) for along in (1 - lower, lower)]
    return _Points(
        np.stack(np.broadcast_arrays(*pixels)),
        np.stack(np.broadcast_arrays(*weights, pixels[0])[:4]),
        (lower, to_right),
        np.broadcast_to(inside, np.broadcast_shapes(inside.shape, pixels[0].shape)),
        part,
        (wide, tall),
    )


def _cut(start: Array, size: Array, index: Array, bins: int, samples: int) -> tuple[Array, Array]:
    """Return where each bin begins along one dim, and the distance of its points."""
    step = size / size.dtype.type(bins)
    return index.astype(size.dtype) * step + start, step / size.dtype.type(samples)


def _index_parts(trans: Array, attrs: _Attrs) -> Array:
    """Return the flat indexes into Trans for the moves of every bin: (2, R, D, H', W')."""
    count, pairs, tall, wide = trans.shape
    classes = 1 if attrs.no_trans else pairs // 2
    row = scale_index(attrs.pooled_height, attrs.part_size[0])[:, None]
    column = scale_index(attrs.pooled_width, attrs.part_size[1])
    owner = np.arange(count)[:, None, None, None] * classes
    of_class = (np.arange(attrs.output_dim) // max(attrs.output_dim // classes, 1))[:, None, None]
    first = (owner + of_class) * 2
    return np.stack([((first + which) * tall + row) * wide + column for which in (0, 1)])


def _index_channels(attrs: _Attrs) -> Array:
    """Return the channel that every bin reads: (D, H', W')."""
    tall, wide = attrs.group_size
    row = np.clip(scale_index(attrs.pooled_height, tall), 0, tall - 1)[:, None]
    column = np.clip(scale_index(attrs.pooled_width, wide), 0, wide - 1)
    channel: Array = (np.arange(attrs.output_dim)[:, None, None] * tall + row) * wide + column
    return channel


def scale_index(bins: int, parts: int) -> Array:
    """Return the part that each of ``bins`` bins belongs to."""
    return np.arange(bins) * parts // bins
