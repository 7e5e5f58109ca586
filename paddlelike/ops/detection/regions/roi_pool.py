"""roi_pool and psroi_pool: the maximum or the mean of the pixels in each bin of a region.

Girshick, Fast R-CNN, 2015; Dai et al., R-FCN, 2016 (position-sensitive: every bin has channels of its own).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from paddlelike.core import VarType
from paddlelike.errors import EnforceNotMet
from paddlelike.framework.opdef import Array, Context, Gradient, Int, OpDef, Spec, register
from paddlelike.ops.detection.regions.roi_align import RoiAttrs
from paddlelike.ops.kernels.detection.regions import check_regions, index_images, round_half_away, scatter_add
from paddlelike.ops.kernels.fast import regions as fast


@register
class RoiPool(OpDef):
    """``Out[r, c, i, j]``: the maximum of X in bin (i, j) of region r; Argmax: its pixel ``h * W + w``.

    X ``(N, C, H, W)``; ROIs ``(R, 4)`` as (x1, y1, x2, y2), both ends included, with one sequence per image
    or with the offsets in RoisLod; Out ``(R, C, pooled_height, pooled_width)``. The corners are scaled and
    rounded to pixels. An empty bin gives 0 in Out and -1 in Argmax; the gradient goes to the first maximum.
    """

    type = "roi_pool"
    inputs = ("X", "ROIs", "RoisLod?")
    outputs = ("Out", "Argmax")
    fluid_order = "spatial_scale pooled_height pooled_width"
    attrs = RoiAttrs.table()
    gradient = Gradient("X", "ROIs", "RoisLod", "Argmax", "Out@GRAD", outputs=("X@GRAD",))

    @classmethod
    def infer(cls, x: Spec, rois: Spec, _: Spec | None, *, attrs: RoiAttrs) -> tuple[Spec, Spec]:
        check_regions(cls.type, x, rois)
        shape = (rois.shape[0], x.shape[1], attrs.pooled_height, attrs.pooled_width)
        return Spec(shape, x.dtype), Spec(
            shape, VarType.INT32
        )  # holds int64; declared as Paddle's layer does

    @staticmethod
    def forward(
        ctx: Context, x: Array, rois: Array, offsets: Array | None, *, attrs: RoiAttrs
    ) -> tuple[Array, Array]:
        owners = index_images(ctx, len(rois), len(x), offsets)
        least = np.finfo(x.dtype).min
        # Paddle's comparisons begin there, and are false for NaN.
        images = np.ascontiguousarray(np.fmax(x, least).transpose(0, 2, 3, 1))
        corners = round_half_away(rois.astype(x.dtype, copy=False) * x.dtype.type(attrs.spatial_scale))
        out = np.zeros((len(rois), x.shape[1], attrs.pooled_height, attrs.pooled_width), x.dtype)
        argmax = np.full(out.shape, -1, np.int64)
        if (kernel := fast.find_maxima.choose(out.size, images, out)) is not None:
            down = _split_all(corners[:, 1], corners[:, 3], attrs.pooled_height, x.shape[2])
            across = _split_all(corners[:, 0], corners[:, 2], attrs.pooled_width, x.shape[3])
            kernel(images, owners, down, across, least, out, argmax)
            return out, argmax
        for n, (owner, (x1, y1, x2, y2)) in enumerate(zip(owners, corners.astype(np.int64), strict=True)):
            rows = _split(y1, y2, attrs.pooled_height, x.shape[2])
            columns = _split(x1, x2, attrs.pooled_width, x.shape[3])
            _find_maxima(images[owner], rows, columns, out[n], argmax[n])
        argmax[out <= least] = -1
        return out, argmax

    @staticmethod
    def backward(
        ctx: Context, x: Array, rois: Array, offsets: Array | None, argmax: Array, d_out: Array
    ) -> Array:
        owners = index_images(ctx, len(rois), len(x), offsets)
        images = owners[:, None] * x.shape[1] + np.arange(x.shape[1])
        index = images[:, :, None, None] * (x.shape[2] * x.shape[3]) + argmax
        found = argmax >= 0
        return scatter_add(x.size, index[found], d_out[found]).reshape(x.shape)


def _split_all(start: Array, end: Array, bins: int, length: int) -> Array:
    """Return the bins of all regions as ``(R, 2, bins)``; see :func:`_split`."""
    ends = zip(start.astype(np.int64).tolist(), end.astype(np.int64).tolist(), strict=True)
    parts = [_split(first, last, bins, length) for first, last in ends]
    return np.ascontiguousarray(np.array(parts, np.int64).reshape(-1, bins, 2).transpose(0, 2, 1))


def _split(start: int, end: int, bins: int, length: int) -> list[tuple[int, int]]:
    """Return the first pixel of each bin and the one after its last, clipped to the image."""
    size = np.float32(max(end - start + 1, 1)) / np.float32(bins)
    index = np.arange(bins, dtype=np.float32)
    low = np.floor(index * size).astype(np.int64) + start
    high = np.ceil((index + 1) * size).astype(np.int64) + start
    return list(zip(np.clip(low, 0, length).tolist(), np.clip(high, 0, length).tolist(), strict=True))


def _find_maxima(
    image: Array, rows: list[tuple[int, int]], columns: list[tuple[int, int]], out: Array, argmax: Array
) -> None:
    """Write the first maximum of every bin and its pixel; leave empty bins alone.

    ``image`` is (H, W, C): every step works on all channels. First along each row of the image, then down.
    """
    top, bottom = rows[0][0], rows[-1][1]
    used = [j for j, (left, right) in enumerate(columns) if left < right]
    if bottom <= top or not used:
        return
    highest = np.empty((bottom - top, len(used), image.shape[2]), image.dtype)
    place = np.empty(highest.shape, np.int64)
    for i, (left, right) in enumerate(columns[j] for j in used):
        part = image[top:bottom, left:right]
        part.max(1, out=highest[:, i])
        for k in range(right - left - 1, -1, -1):  # the first one is written last
            np.copyto(place[:, i], left + k, where=part[:, k] == highest[:, i])
    place += np.arange(top, bottom)[:, None, None] * image.shape[1]
    for i, (low, high) in enumerate(rows):
        if high <= low:
            continue
        block = highest[low - top : high - top]
        best = block.max(0)
        pixel = np.empty(best.shape, np.int64)
        for k in range(high - low - 1, -1, -1):
            np.copyto(pixel, place[low - top + k], where=block[k] == best)
        out[:, i, used], argmax[:, i, used] = best.T, pixel.T


class PsRoiAttrs(RoiAttrs):
    output_channels: int = Int()


class _Bins(NamedTuple):
    """The corners of the bins of R regions in the integral image, and the number of pixels of each bin."""

    corners: tuple[Array, Array, Array, Array]  # (R, 1, bins) flat indices per channel: ++, --, +-, -+
    area: Array  # (R, 1, H', W'); 1 for an empty bin


@register
class PsRoiPool(OpDef):
    """``Out[r, o, i, j]``: the mean of channel (o, i, j) of X in bin (i, j) of region r.

    X ``(N, output_channels * pooled_height * pooled_width, H, W)``; ROIs ``(R, 4)`` as (x1, y1, x2, y2), both
    ends included, with one sequence per image; Out ``(R, output_channels, pooled_height, pooled_width)``. The
    corners are rounded, then scaled. An empty bin gives 0.
    """

    type = "psroi_pool"
    inputs = ("X", "ROIs")
    fluid_order = "output_channels spatial_scale pooled_height pooled_width"
    attrs = PsRoiAttrs.table()
    gradient = Gradient("X", "ROIs", "Out@GRAD", outputs=("X@GRAD",))

    @classmethod
    def infer(cls, x: Spec, rois: Spec, *, attrs: PsRoiAttrs) -> Spec:
        check_regions(cls.type, x, rois)
        shape = (rois.shape[0], attrs.output_channels, attrs.pooled_height, attrs.pooled_width)
        return Spec(shape, x.dtype)

    @staticmethod
    def forward(ctx: Context, x: Array, rois: Array, *, attrs: PsRoiAttrs) -> Array:
        owners = index_images(ctx, len(rois), len(x))
        return pool_means(x, rois.astype(x.dtype, copy=False), owners, attrs)

    @staticmethod
    def backward(ctx: Context, x: Array, rois: Array, d_out: Array, *, attrs: PsRoiAttrs) -> Array:
        owners = index_images(ctx, len(rois), len(x))
        rois = rois.astype(x.dtype, copy=False)
        if (kernel := fast.add_means.choose(d_out.size, d_out)) is not None:
            dx = np.zeros(x.shape)
            kernel(d_out, owners, *_find_bins(x.shape, rois, attrs), dx)
            return dx.astype(x.dtype)
        first, bins = _index_bins(x.shape, owners, rois, attrs)
        shape = (*x.shape[:2], x.shape[2] + 1, x.shape[3] + 1)
        each = d_out / bins.area.astype(np.float64)
        index = np.stack([first + corner for corner in bins.corners])
        signed = np.stack([each, each, -each, -each])
        # Each corner adds to the sum of all pixels to its lower right; the signs cancel outside of the bin.
        steps = scatter_add(int(np.prod(shape)), index, signed).reshape(shape)
        return steps.cumsum(2).cumsum(3)[:, :, :-1, :-1].astype(x.dtype)


def pool_means(x: Array, rois: Array, owners: Array, attrs: PsRoiAttrs) -> Array:
    """Return the means of the bins of regions, each in the image of its owner."""
    out = np.empty((len(rois), attrs.output_channels, attrs.pooled_height, attrs.pooled_width), x.dtype)
    if (kernel := fast.find_means.choose(out.size, x, out)) is not None:
        kernel(x, owners, *_find_bins(x.shape, rois, attrs), out)
        return out
    if not np.isfinite(x).all():  # sums from the first pixel on would carry it into every bin
        rows, columns = _find_bins(x.shape, rois, attrs)
        for at in np.ndindex(out.shape):
            n, _, i, j = at
            channel = int(np.ravel_multi_index(at[1:], out.shape[1:]))
            part = x[owners[n], channel, slice(*rows[n, :, i]), slice(*columns[n, :, j])]
            out[at] = part.sum(dtype=x.dtype) / max(part.size, 1)
        return out
    first, bins = _index_bins(x.shape, owners, rois, attrs)
    integral = np.zeros((*x.shape[:2], x.shape[2] + 1, x.shape[3] + 1))
    np.cumsum(x, axis=2, dtype=np.float64, out=integral[:, :, 1:, 1:])
    np.cumsum(integral, axis=3, out=integral)
    flat = integral.reshape(-1)
    both, none, bottom, right = (flat[first + corner] for corner in bins.corners)
    return ((both + none - bottom - right) / bins.area).astype(x.dtype)


def _index_bins(shape: tuple[int, ...], owners: Array, rois: Array, attrs: PsRoiAttrs) -> tuple[Array, _Bins]:
    """Return the offset in the integral image of the channel for every output, and the bins."""
    _, channels, height, width = shape
    tall, wide = attrs.pooled_height, attrs.pooled_width
    rows, columns = _find_bins(shape, rois, attrs)
    y1, y2 = rows[:, 0][:, None, :, None], rows[:, 1][:, None, :, None]
    x1, x2 = columns[:, 0][:, None, None], columns[:, 1][:, None, None]
    empty = (x2 <= x1) | (y2 <= y1)
    x2, y2 = np.where(empty, x1, x2), np.where(empty, y1, y2)  # all corners equal: the sum is 0
    channel = np.arange(channels).reshape(attrs.output_channels, tall, wide)
    first = (owners[:, None, None, None] * channels + channel) * ((height + 1) * (width + 1))
    row = width + 1
    corners = (y2 * row + x2, y1 * row + x1, y2 * row + x1, y1 * row + x2)
    return first, _Bins(corners, np.where(empty, 1, (x2 - x1) * (y2 - y1)))


def _find_bins(shape: tuple[int, ...], rois: Array, attrs: PsRoiAttrs) -> tuple[Array, Array]:
    """Return the first pixels of the bins and those after their last, ``(R, 2, H')`` and ``(R, 2, W')``."""
    _, channels, height, width = shape
    tall, wide = attrs.pooled_height, attrs.pooled_width
    if channels != attrs.output_channels * tall * wide:
        raise EnforceNotMet(
            f"psroi_pool: X has {channels} channels, output_channels {attrs.output_channels} x pooled_height "
            f"{tall} x pooled_width {wide} needs {attrs.output_channels * tall * wide}"
        )
    real, scale = rois.dtype.type, rois.dtype.type(attrs.spatial_scale)
    start = round_half_away(rois[:, :2]) * scale
    end = (round_half_away(rois[:, 2:]) + 1) * scale
    size = np.maximum(end - start, real(0.1))
    columns = np.stack(_bin_edges(start[:, 0], size[:, 0], wide, width), 1)
    rows = np.stack(_bin_edges(start[:, 1], size[:, 1], tall, height), 1)
    return rows, columns


def _bin_edges(start: Array, size: Array, bins: int, length: int) -> tuple[Array, Array]:
    """Return the first pixel of every bin, and the pixel after its last: two arrays (R, bins)."""
    step = size[:, None] / size.dtype.type(bins)
    index = np.arange(bins).astype(size.dtype)
    low = np.floor(index * step + start[:, None])
    high = np.ceil((index + 1) * step + start[:, None])
    # As in C++, a corner that no int32 holds, or NaN, becomes the least one, which ends at 0.
    first, last = (np.where(np.abs(edge) < 2**31, np.clip(edge, 0, length), 0) for edge in (low, high))
    return first.astype(np.int64), last.astype(np.int64)
