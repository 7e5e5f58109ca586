"""roi_align and prroi_pool: the mean of an image, interpolated between its pixels, over each bin of a region.

He et al., Mask R-CNN, 2017; Jiang et al., Acquisition of localization confidence (precise RoI pooling), 2018.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from paddlelike.errors import EnforceNotMet
from paddlelike.framework.opdef import Array, Attrs, Context, Float, Gradient, Int, OpDef, Spec, register
from paddlelike.ops.kernels.detection.regions import (
    AxisWeights,
    check_regions,
    crop_weights,
    index_images,
    pool_by_axes,
    pool_by_axes_dx,
)

_POINTS: Final = 1 << 18  # weighed at a time


class RoiAttrs(Attrs):
    """Attributes of every pool over regions."""

    pooled_height: int = Int(1)
    pooled_width: int = Int(1)
    spatial_scale: float = Float(1.0)


class AlignAttrs(RoiAttrs):
    """Attributes of roi_align."""

    sampling_ratio: int = Int(-1)


@register
class RoiAlign(OpDef):
    """``Out[r, c, i, j]``: the mean of X at the points of bin (i, j) of region r, linear between pixels.

    X ``(N, C, H, W)``, ROIs ``(R, 4)`` as (x1, y1, x2, y2) in the units of the input image, with one sequence
    per image or with the offsets in RoisLod; Out ``(R, C, pooled_height, pooled_width)``. A bin has
    ``sampling_ratio`` points along each dim, or about one per pixel if that is 0 or less. Points more than
    one pixel outside of the image count as 0. A region smaller than a pixel is enlarged to one pixel.
    """

    type = "roi_align"
    inputs = ("X", "ROIs", "RoisLod?")
    fluid_order = "spatial_scale pooled_height pooled_width sampling_ratio"
    attrs = AlignAttrs.table()
    gradient = Gradient("X", "ROIs", "RoisLod", "Out@GRAD", outputs=("X@GRAD",))

    @classmethod
    def infer(cls, x: Spec, rois: Spec, _: Spec | None, *, attrs: AlignAttrs) -> Spec:
        check_regions(cls.type, x, rois)
        return Spec((rois.shape[0], x.shape[1], attrs.pooled_height, attrs.pooled_width), x.dtype)

    @staticmethod
    def forward(ctx: Context, x: Array, rois: Array, offsets: Array | None, *, attrs: AlignAttrs) -> Array:
        owners = index_images(ctx, len(rois), len(x), offsets)
        if not len(rois):
            return np.empty((0, x.shape[1], attrs.pooled_height, attrs.pooled_width), x.dtype)
        return pool_by_axes(x, owners, *sample_regions(x, rois, attrs))

    @staticmethod
    def backward(
        ctx: Context, x: Array, rois: Array, offsets: Array | None, d_out: Array, *, attrs: AlignAttrs
    ) -> Array:
        owners = index_images(ctx, len(rois), len(x), offsets)
        return pool_by_axes_dx(d_out, x.shape, owners, *sample_regions(x, rois, attrs))


def sample_regions(
    x: Array, rois: Array, attrs: AlignAttrs, *, shift: float = 0.0, least: int = 1
) -> tuple[list[AxisWeights], list[AxisWeights]]:
    """Return the weights of the rows and of the columns of X in each region's bins.

    Regions are moved up and left by ``shift`` pixels, and enlarged to ``least`` pixels.
    """
    corners = rois.astype(x.dtype, copy=False) * x.dtype.type(attrs.spatial_scale) - x.dtype.type(shift)
    ratio, (height, width) = attrs.sampling_ratio, x.shape[2:]
    rows = _sample_axis(corners[:, 1], corners[:, 3], attrs.pooled_height, ratio, height, least)
    columns = _sample_axis(corners[:, 0], corners[:, 2], attrs.pooled_width, ratio, width, least)
    return rows, columns


def _sample_axis(
    start: Array, end: Array, bins: int, ratio: int, length: int, least: int
) -> list[AxisWeights]:
    """Return the weight of every pixel along one dim in the mean of each bin, for each region."""
    real = start.dtype.type
    step = np.maximum(end - start, real(least)) / real(bins)
    count = np.full(len(step), ratio) if ratio > 0 else np.ceil(step).astype(np.int64)
    found: list[AxisWeights] = []
    while len(found) < len(step):  # as many regions at once as do not take much memory
        room = max(1, _POINTS // (bins * max(1, int(count[len(found) :].max()))))
        part = slice(len(found), len(found) + room)
        weights = _weigh_pixels(start[part], step[part], count[part], bins, length)
        found.extend(map(crop_weights, weights.astype(real)))
    return found


def _weigh_pixels(start: Array, step: Array, count: Array, bins: int, length: int) -> Array:
    """Return the mean weight of every pixel in each bin: ``(regions, bins, length)``.

    Each bin is ``step`` pixels long and has ``count`` points.
    """
    real, regions = start.dtype.type, len(start)
    index = np.arange(int(count.max(initial=0)))
    points = (index.astype(np.float32) + np.float32(0.5)).astype(real)
    points = points * step[:, None] / count[:, None].astype(real)
    at = (start[:, None] + np.arange(bins).astype(real) * step[:, None])[:, :, None] + points[:, None]
    inside = (at >= -1) & (at <= length) & (index < count[:, None])[:, None]
    at = np.minimum(np.maximum(at, 0), length - 1)
    low = np.where(inside, at, 0).astype(np.int64)
    high = np.minimum(low + 1, length - 1)
    far = at - low.astype(real)
    first = np.arange(regions * bins).reshape(regions, bins, 1) * length
    taken = np.concatenate([(1 - far) * inside, far * inside], 2)
    pixels = np.concatenate([first + low, first + high], 2)
    weights = np.bincount(pixels.reshape(-1), taken.reshape(-1), regions * bins * length)
    return weights.reshape(regions, bins, length) / count[:, None, None]


@register
class PrRoiPool(OpDef):
    """``Out[r, c, i, j]``: the mean of X, linear between pixels, over bin (i, j) of region r, exactly.

    X ``(N, C, H, W)`` counts as 0 outside; ROIs ``(R, 4)`` as (x1, y1, x2, y2), with one sequence per image
    or with the number of regions per image in BatchRoINums; Out ``(R, C, pooled_height, pooled_width)``.
    Regions without area give 0. The corners of the regions have a gradient too.
    """

    type = "prroi_pool"
    until = "1"
    inputs = ("X", "ROIs", "BatchRoINums?")
    fluid_order = "spatial_scale pooled_height pooled_width"
    attrs = RoiAttrs.table()
    gradient = Gradient("X", "ROIs", "BatchRoINums", "Out", "Out@GRAD", outputs=("X@GRAD", "ROIs@GRAD"))

    @classmethod
    def infer(cls, x: Spec, rois: Spec, _: Spec | None, *, attrs: RoiAttrs) -> Spec:
        check_regions(cls.type, x, rois)
        return Spec((rois.shape[0], x.shape[1], attrs.pooled_height, attrs.pooled_width), x.dtype)

    @staticmethod
    def forward(ctx: Context, x: Array, rois: Array, counts: Array | None, *, attrs: RoiAttrs) -> Array:
        owners = _index_by_counts(ctx, rois, len(x), counts)
        if not len(rois):
            return np.empty((0, x.shape[1], attrs.pooled_height, attrs.pooled_width), x.dtype)
        bins = _make_bins(x, rois, attrs)
        return pool_by_axes(x, owners, [b.rows for b in bins], [b.columns for b in bins])

    @staticmethod
    def backward(
        ctx: Context,
        x: Array,
        rois: Array,
        counts: Array | None,
        out: Array,
        d_out: Array,
        *,
        attrs: RoiAttrs,
    ) -> tuple[Array, Array]:
        owners = _index_by_counts(ctx, rois, len(x), counts)
        bins = _make_bins(x, rois, attrs)
        dx = pool_by_axes_dx(d_out, x.shape, owners, [b.rows for b in bins], [b.columns for b in bins])
        d_rois = np.zeros(rois.shape, x.dtype)
        for n, (owner, each) in enumerate(zip(owners, bins, strict=True)):
            d_rois[n] = _move_corners(x[owner], each, out[n], d_out[n]) if each.area > 0 else np.nan
        return dx, d_rois * x.dtype.type(attrs.spatial_scale)


class _Bins(NamedTuple):
    """The bins of a region: their edges and the weights of their pixels, per dim; the area of one bin."""

    y: Array
    x: Array
    rows: AxisWeights
    columns: AxisWeights
    area: float


def _index_by_counts(ctx: Context, rois: Array, images: int, counts: Array | None) -> Array:
    if counts is None:
        return index_images(ctx, len(rois), images)
    if counts.sum() != len(rois) or len(counts) > images:
        raise EnforceNotMet(
            f"prroi_pool: BatchRoINums is {counts.reshape(-1).tolist()}, but there are {len(rois)} regions "
            f"and {images} images",
            hint="it holds the number of regions of each image; their sum is the number of all regions",
        )
    return np.repeat(np.arange(len(counts)), counts.reshape(-1))


def _make_bins(x: Array, rois: Array, attrs: RoiAttrs) -> list[_Bins]:
    corners = rois.astype(x.dtype, copy=False) * x.dtype.type(attrs.spatial_scale)
    found = []
    for x1, y1, x2, y2 in corners:
        tall, wide = max(float(y2 - y1), 0) / attrs.pooled_height, max(float(x2 - x1), 0) / attrs.pooled_width
        y = y1 + np.arange(attrs.pooled_height + 1).astype(x.dtype) * x.dtype.type(tall)
        across = x1 + np.arange(attrs.pooled_width + 1).astype(x.dtype) * x.dtype.type(wide)
        rows = _integrate_axis(y, x.shape[2], tall, x.dtype)
        columns = _integrate_axis(across, x.shape[3], wide, x.dtype)
        found.append(_Bins(y, across, rows, columns, tall * wide))
    return found


def _integrate_axis(edges: Array, length: int, size: float, dtype: np.dtype[np.generic]) -> AxisWeights:
    """Return the mean over each bin of the weight of every pixel, 1 at the pixel and 0 at its neighbours."""
    distance = np.clip(edges.astype(np.float64)[:, None] - np.arange(length), -1, 1)
    # The integral of 1 - |t| from -1 on.
    below = 0.5 + distance - np.copysign(distance * distance / 2, distance)
    weights = np.diff(below, axis=0) / size if size > 0 else np.zeros((len(edges) - 1, length))
    return crop_weights(weights.astype(dtype))


def _move_corners(image: Array, bins: _Bins, out: Array, d_out: Array) -> Array:
    """Return the gradient of one region with respect to its scaled corners: (x1, y1, x2, y2)."""
    dtype = image.dtype
    tall, wide = bins.y[1] - bins.y[0], bins.x[1] - bins.x[0]
    # The mean of the image along every edge: out changes by (it - out) / size when the edge moves.
    on_columns = bins.rows.weights @ image[:, bins.rows.part] @ _weigh_points(bins.x, image.shape[2], dtype).T
    on_rows = _weigh_points(bins.y, image.shape[1], dtype) @ (
        image[:, :, bins.columns.part] @ bins.columns.weights.T
    )
    ends_x, ends_y = np.arange(len(bins.x)) / (len(bins.x) - 1), np.arange(len(bins.y)) / (len(bins.y) - 1)
    left = (((out - on_columns[..., :-1]) * d_out).sum((0, 1)) / wide).astype(np.float64)
    right = (((on_columns[..., 1:] - out) * d_out).sum((0, 1)) / wide).astype(np.float64)
    top = (((out - on_rows[:, :-1]) * d_out).sum((0, 2)) / tall).astype(np.float64)
    bottom = (((on_rows[:, 1:] - out) * d_out).sum((0, 2)) / tall).astype(np.float64)
    return np.array(
        [
            left @ (1 - ends_x[:-1]) + right @ (1 - ends_x[1:]),
            top @ (1 - ends_y[:-1]) + bottom @ (1 - ends_y[1:]),
            left @ ends_x[:-1] + right @ ends_x[1:],
            top @ ends_y[:-1] + bottom @ ends_y[1:],
        ],
        dtype,
    )


def _weigh_points(at: Array, length: int, dtype: np.dtype[np.generic]) -> Array:
    """Return the weight of every pixel at points along a dim: (points, length)."""
    return np.maximum(1 - np.abs(at[:, None] - np.arange(length)), 0).astype(dtype)
