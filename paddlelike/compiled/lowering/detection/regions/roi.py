"""Pools over regions: roi_align, prroi_pool, roi_pool, psroi_pool."""

from __future__ import annotations

from typing import Any, Final

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from paddlelike.compiled.lowering.detection.regions.owners import (
    divide,
    find_owners,
    like_regions,
    map_regions,
    multiply,
    round_half_away,
)
from paddlelike.compiled.lowerings import Results, lowers
from paddlelike.compiled.tracing.context import OpContext
from paddlelike.compiled.values import Value

_LARGE: Final = 1e6  # numbers beyond it would hide others in sums over an image


def _pool_by_axes(x: Array, owners: Array, rows: Array, columns: Array) -> Array:
    """Return ``rows @ x[owner] @ columns^T`` of each region: (R, C, bins of rows, bins of columns)."""
    return map_regions(
        lambda owner, row, column: jnp.einsum("bh,chw,dw->cbd", row, x[owner], column), owners, rows, columns
    )


@lowers("roi_align", sequences=True)
def roi_align(
    x: Array, rois: Value, offsets: Value,
    *, pooled_height: int, pooled_width: int, spatial_scale: float, sampling_ratio: int,
) -> Value:  # fmt: skip
    boxes, owners = find_owners(rois, x.shape[0], offsets)
    corners = jax.lax.stop_gradient(boxes).astype(x.dtype) * jnp.asarray(spatial_scale, x.dtype)
    rows = _sample_axis(corners[:, 1], corners[:, 3], pooled_height, sampling_ratio, x.shape[2])
    columns = _sample_axis(corners[:, 0], corners[:, 2], pooled_width, sampling_ratio, x.shape[3])
    return like_regions(rois, _pool_by_axes(x, owners, rows, columns))


def _sample_axis(start: Array, end: Array, bins: int, ratio: int, length: int) -> Array:
    """Return the weight of every pixel in the mean of each bin, along one dim: (R, bins, length).

    Without a ratio the points of a bin are at most a pixel apart. In a bin that is larger than the image,
    only the points inside the image are computed: at most two per pixel.
    """
    dtype = start.dtype
    size = jnp.maximum(end - start, 1)
    step = divide(size, bins)
    count = jnp.full_like(step, ratio) if ratio > 0 else jnp.ceil(step)
    apart = step / count
    first = start[:, None] + jnp.arange(bins).astype(dtype) * step[:, None]
    most = ratio if ratio > 0 else 2 * length + 4
    begin = jnp.zeros_like(first) if ratio > 0 else jnp.maximum(jnp.floor((-2 - first) / apart[:, None]), 0)
    point = begin[..., None] + jnp.arange(most).astype(dtype)  # (R, bins, most)
    at = first[..., None] + (point + 0.5) * step[:, None, None] / count[:, None, None]
    inside = (at >= -1) & (at <= length) & (point < count[:, None, None])
    at = jnp.clip(at, 0, length - 1)
    low = jnp.where(inside, at, 0).astype(jnp.int32)
    high = jnp.minimum(low + 1, length - 1)
    far = at - low.astype(dtype)
    pixels = jnp.arange(length)
    taken = [jnp.where(inside, part, 0) for part in (1 - far, far)]
    # One point after the other: all of them at once would take much memory.
    start_with = jnp.zeros((*first.shape, length), dtype)
    parts = (jnp.moveaxis(part, -1, 0) for part in (low, high, *taken))

    def add(total: Array, given: tuple[Array, ...]) -> tuple[Array, None]:
        below, above, near, distant = (part[..., None] for part in given)
        return total + near * (pixels == below) + distant * (pixels == above), None

    weights, _ = jax.lax.scan(add, start_with, tuple(parts))
    return weights / count[:, None, None]


@lowers("prroi_pool", sequences=True)
def prroi_pool(
    x: Array,
    rois: Value,
    counts: Array | None,
    *,
    pooled_height: int,
    pooled_width: int,
    spatial_scale: float,
) -> Value:
    offsets = None
    if counts is not None:
        ends = jnp.cumsum(counts.reshape(-1))
        offsets = jnp.concatenate([jnp.zeros(1, ends.dtype), ends])
    boxes, owners = find_owners(rois, x.shape[0], offsets)
    corners = boxes.astype(x.dtype) * jnp.asarray(spatial_scale, x.dtype)
    rows = _integrate_axis(corners[:, 1], corners[:, 3], pooled_height, x.shape[2])
    columns = _integrate_axis(corners[:, 0], corners[:, 2], pooled_width, x.shape[3])
    area = (corners[:, 2] > corners[:, 0]) & (corners[:, 3] > corners[:, 1])
    out = _pool_by_axes(x, owners, rows, columns)
    # 0, whose gradient is NaN: as in Fluid for a region without area
    nothing = 0 * jnp.sqrt(jnp.where(area, 1, 0 * corners.sum(1)))
    out = jnp.where(area[:, None, None, None], out, nothing[:, None, None, None])
    return like_regions(rois, out.astype(x.dtype))


def _integrate_axis(start: Array, end: Array, bins: int, length: int) -> Array:
    """Return the mean over each bin of the weight of every pixel, 1 at the pixel and 0 at its neighbours."""
    size = jnp.maximum(end - start, 0).astype(jnp.float64) / bins
    edges = start.astype(jnp.float64)[:, None] + jnp.arange(bins + 1) * size[:, None]
    distance = jnp.clip(edges[..., None] - jnp.arange(length), -1, 1)
    below = 0.5 + distance - jnp.abs(distance) * distance / 2  # the integral of 1 - |t| from -1 on
    safe = jnp.where(size > 0, size, 1)[:, None, None]
    return jnp.where(size[:, None, None] > 0, jnp.diff(below, axis=1) / safe, 0).astype(start.dtype)


@lowers("roi_pool", sequences=True)
def roi_pool(
    x: Array, rois: Value, offsets: Value, *, pooled_height: int, pooled_width: int, spatial_scale: float
) -> tuple[Value, Value]:
    boxes, owners = find_owners(rois, x.shape[0], offsets)
    least = np.finfo(x.dtype).min
    corners = round_half_away(boxes.astype(x.dtype) * jnp.asarray(spatial_scale, x.dtype)).astype(jnp.int64)
    rows = _find_bins(corners[:, 1], corners[:, 3], pooled_height, x.shape[2])
    columns = _find_bins(corners[:, 0], corners[:, 2], pooled_width, x.shape[3])
    seen = jnp.fmax(jax.lax.stop_gradient(x), least)  # Paddle's comparisons are false for NaN
    argmax = _find_maxima(jnp.moveaxis(seen, 1, -1), owners, rows, columns, least)  # (R, C, bins, bins)
    filled = (rows[0] < rows[1])[:, None, :, None] & (columns[0] < columns[1])[:, None, None]
    flat = x.reshape(x.shape[0], x.shape[1], -1)
    channels = jnp.arange(x.shape[1])[:, None, None]
    out = flat[owners[:, None, None, None], channels, jnp.maximum(argmax, 0)]
    out = jnp.where(argmax >= 0, out, jnp.where(filled, least, 0).astype(x.dtype))
    return like_regions(rois, out), like_regions(rois, argmax.astype(jnp.int64))


def _find_bins(start: Array, end: Array, bins: int, length: int) -> tuple[Array, Array]:
    """Return the first pixel of every bin, and the pixel after its last: two arrays (R, bins)."""
    size = divide(jnp.maximum(end - start + 1, 1).astype(jnp.float32), bins)
    index = jnp.arange(bins, dtype=jnp.float32)
    low = jnp.floor(index * size[:, None]).astype(jnp.int64) + start[:, None]
    high = jnp.ceil((index + 1) * size[:, None]).astype(jnp.int64) + start[:, None]
    return jnp.clip(low, 0, length), jnp.clip(high, 0, length)


def _find_maxima(
    images: Array,
    owners: Array,
    rows: tuple[Array, Array],
    columns: tuple[Array, Array],
    least: Array,
) -> Array:
    """Return the index of the first maximum of every bin, row by row; -1 if all elements are ``least``.

    The first pixels of all bins are compared, then the second ones, and so on up to the size of the largest
    bin. Images are (N, H, W, C), the result is (R, C, bins, bins).
    """
    tall, wide = (jnp.max(high - low, initial=0) for low, high in (rows, columns))
    shape = (*rows[0].shape, columns[0].shape[1], images.shape[-1])

    def compare(step: Array, found: tuple[Any, Any]) -> tuple[Array, Array]:
        best, place = found
        row = (rows[0] + step // wide)[:, :, None]
        column = (columns[0] + step % wide)[:, None]
        inside = (row < rows[1][:, :, None]) & (column < columns[1][:, None])
        value = images.at[owners[:, None, None], row, column].get(mode="clip")
        better = inside[..., None] & (value > best)
        at = (row * images.shape[2] + column).astype(jnp.int32)[..., None]
        return jnp.where(better, value, best), jnp.where(better, at, place)

    start = (jnp.full(shape, least, images.dtype), jnp.full(shape, -1, jnp.int32))
    _, place = jax.lax.fori_loop(0, tall * wide, compare, start)
    return jnp.moveaxis(place, -1, 1)


@lowers("psroi_pool", sequences=True)
def psroi_pool(
    x: Array,
    rois: Value,
    *,
    output_channels: int,
    pooled_height: int,
    pooled_width: int,
    spatial_scale: float,
    ctx: OpContext,
) -> Value:
    # Sums from the first pixel on would carry it into every bin.
    ctx.require(jnp.abs(x) < _LARGE, "X holds NaN, infinity or numbers above 1e6")
    boxes, owners = find_owners(rois, x.shape[0])
    _, channels, height, width = x.shape
    if channels != output_channels * pooled_height * pooled_width:
        raise ValueError(f"{channels} channels")
    boxes, scale = boxes.astype(x.dtype), jnp.asarray(spatial_scale, x.dtype)
    start = round_half_away(boxes[:, :2]) * scale
    size = jnp.maximum((round_half_away(boxes[:, 2:]) + 1) * scale - start, jnp.asarray(0.1, x.dtype))
    x1, x2 = _find_edges(start[:, 0], size[:, 0], pooled_width, width)
    y1, y2 = _find_edges(start[:, 1], size[:, 1], pooled_height, height)
    x1, x2, y1, y2 = x1[:, None, None], x2[:, None, None], y1[:, None, :, None], y2[:, None, :, None]
    empty = (x2 <= x1) | (y2 <= y1)
    area = jnp.where(empty, 1, (x2 - x1) * (y2 - y1))
    integral = jnp.pad(x.astype(jnp.float64), ((0, 0), (0, 0), (1, 0), (1, 0))).cumsum(2).cumsum(3)
    channel = jnp.arange(channels).reshape(output_channels, pooled_height, pooled_width)
    owner = owners[:, None, None, None]
    both, none, lower, right = (
        integral[owner, channel, y, across] for y, across in ((y2, x2), (y1, x1), (y2, x1), (y1, x2))
    )
    out = jnp.where(empty, 0, both + none - lower - right) / area
    return like_regions(rois, out.astype(x.dtype))


def _find_edges(start: Array, size: Array, bins: int, length: int) -> Results:
    """Return the first pixel of every bin, and the pixel after its last: two arrays (R, bins)."""
    step = divide(size[:, None], bins)
    index = jnp.arange(bins).astype(size.dtype)
    low = jnp.floor(multiply(index, step) + start[:, None])
    high = jnp.ceil(multiply(index + 1, step) + start[:, None])
    # As in C++, a corner that no int32 holds, or NaN, becomes the least one, which ends at 0.
    held = (jnp.where(jnp.abs(edge) < 2**31, jnp.clip(edge, 0, length), 0) for edge in (low, high))
    return tuple(edge.astype(jnp.int32) for edge in held)
