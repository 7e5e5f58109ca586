"""Points between the pixels of images: deformable convolutions and pools, perspective transforms."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from paddlelike.compiled.lowering.detection.regions.owners import find_owners, like_regions, round_half_away
from paddlelike.compiled.lowerings import Results, lowers
from paddlelike.compiled.values import Packed, Value, get_rows
from paddlelike.ops.detection.regions.deformable_conv import DeformableAttrs
from paddlelike.ops.detection.regions.deformable_roi import scale_index


def _read_points(
    image: Array,
    y: Array | np.ndarray[Any, Any],
    x: Array | np.ndarray[Any, Any],
    inside: Array | np.ndarray[Any, Any],
) -> Array:
    """Return the values of an image (C, H, W) at points, interpolated linearly: (C, ...); 0 outside the
    image.
    """
    height, width = image.shape[1:]
    top, left = jnp.floor(y), jnp.floor(x)
    down, right = y - top, x - left
    total = jnp.zeros((), image.dtype)
    pixels = jnp.moveaxis(image, 0, -1)  # the channels of a pixel are read together
    for row, near_y in ((top, 1 - down), (top + 1, down)):
        for column, near_x in ((left, 1 - right), (left + 1, right)):
            valid = inside & (row >= 0) & (row < height) & (column >= 0) & (column < width)
            rows, columns = (jnp.where(valid, at, 0).astype(jnp.int32) for at in (row, column))
            total = total + pixels[rows, columns] * jnp.where(valid, near_y * near_x, 0)[..., None]
    return jnp.moveaxis(total, -1, 0)


@lowers("deformable_conv_v1")
def deformable_conv_v1(
    x: Array, offset: Array, w: Array,
    *, strides: list[int], paddings: list[int], dilations: list[int], groups: int, deformable_groups: int,
    im2col_step: int,
) -> Array:  # fmt: skip
    return deformable_conv(
        x, offset, None, w, strides=strides, paddings=paddings, dilations=dilations, groups=groups,
        deformable_groups=deformable_groups, im2col_step=im2col_step,
    )  # fmt: skip


@lowers("deformable_conv")
def deformable_conv(
    x: Array, offset: Array, mask: Array | None, w: Array,
    *, strides: list[int], paddings: list[int], dilations: list[int], groups: int, deformable_groups: int,
    im2col_step: int,
) -> Array:  # fmt: skip
    attrs = DeformableAttrs(
        strides=strides, paddings=paddings, dilations=dilations, groups=groups,
        deformable_groups=deformable_groups, im2col_step=im2col_step,
    )  # fmt: skip
    count, channels, height, width = x.shape
    windows = attrs.windows("deformable_conv", x.shape[2:], w.shape[2:])
    counts = windows.counts(x.shape[2:])
    at = [
        (np.arange(kernel)[:, None] * dilation + np.arange(steps) * stride - pad[0]).astype(x.dtype)
        for kernel, dilation, steps, stride, pad in zip(
            windows.kernel, windows.dilations, counts, windows.strides, windows.pads, strict=True
        )
    ]
    moves = offset.reshape(count, deformable_groups, *windows.kernel, 2, *counts)
    ys = at[0][:, None, :, None] + moves[:, :, :, :, 0]
    xs = at[1][None, :, None, :] + moves[:, :, :, :, 1]
    inside = (ys > -1) & (xs > -1) & (ys < height) & (xs < width)
    parts = x.reshape(count, deformable_groups, channels // deformable_groups, height, width)
    values = jax.vmap(jax.vmap(_read_points))(parts, ys, xs, inside)  # (N, G, C / G, kh, kw, H', W')
    if mask is not None:
        values = values * mask.reshape(count, deformable_groups, 1, *windows.kernel, *counts)
    columns = values.reshape(count, groups, channels // groups, *windows.kernel, *counts)
    filters = w.reshape(groups, w.shape[0] // groups, *w.shape[1:])
    out = jnp.einsum("gockl,ngcklhw->ngohw", filters, columns).reshape(count, w.shape[0], *counts)
    step = attrs.mixed_images(count)
    return out.reshape(-1, step, w.shape[0], *counts).swapaxes(1, 2).reshape(out.shape)


@lowers("deformable_psroi_pooling", sequences=True)
def deformable_psroi_pooling(
    x: Array, rois: Value, trans: Array | Packed,
    *, no_trans: bool, spatial_scale: float, output_dim: int, group_size: list[int], pooled_height: int,
    pooled_width: int, part_size: list[int], sample_per_part: int, trans_std: float,
) -> tuple[Value, Value]:  # fmt: skip
    boxes, owners = find_owners(rois, x.shape[0])
    height, width = x.shape[2:]
    trans = get_rows(trans)
    corners = round_half_away(boxes.astype(x.dtype)) + np.array([0, 0, 1, 1], x.dtype)
    corners = (corners * jnp.asarray(spatial_scale, x.dtype) - 0.5)[:, :, None, None, None]
    left, top, right, bottom = (corners[:, i] for i in range(4))
    wide, tall = jnp.maximum(right - left, 0.1), jnp.maximum(bottom - top, 0.1)
    move: Sequence[Array | float] = (0.0, 0.0)
    if not no_trans:
        move = _find_moves(trans, output_dim, (pooled_height, pooled_width), part_size)
        move = [one * jnp.asarray(trans_std, x.dtype) for one in move]
    rows, columns = np.arange(pooled_height)[:, None], np.arange(pooled_width)
    step_x, step_y = wide / pooled_width, tall / pooled_height
    samples = np.arange(sample_per_part).astype(x.dtype)
    at_x = (columns.astype(x.dtype) * step_x + left + move[0] * wide)[..., None, None]
    at_y = (rows.astype(x.dtype) * step_y + top + move[1] * tall)[..., None, None]
    at_x = at_x + samples * (step_x / sample_per_part)[..., None, None]
    at_y = at_y + samples[:, None] * (step_y / sample_per_part)[..., None, None]
    inside = (at_x >= -0.5) & (at_x <= width - 0.5) & (at_y >= -0.5) & (at_y <= height - 0.5)
    at_x, at_y = jnp.clip(at_x, 0, width - 1), jnp.clip(at_y, 0, height - 1)
    channel = _index_channels(output_dim, group_size, (pooled_height, pooled_width))[..., None, None]
    owner = owners[:, None, None, None, None, None]
    x1, y1 = jnp.floor(at_x), jnp.floor(at_y)
    down, far = at_y - y1, at_x - x1
    total = jnp.zeros((), x.dtype)
    for row, near_y in ((y1, 1 - down), (jnp.ceil(at_y), down)):
        for column, near_x in ((x1, 1 - far), (jnp.ceil(at_x), far)):
            total = total + x[owner, channel, row.astype(jnp.int32), column.astype(jnp.int32)] * (
                near_x * near_y
            )
    inside = jnp.broadcast_to(inside, total.shape)
    count = inside.sum((-2, -1)).astype(x.dtype)
    out = jnp.where(inside, total, 0).sum((-2, -1)) / jnp.maximum(count, 1)
    return like_regions(rois, count), like_regions(rois, out)


def _find_moves(trans: Array, output_dim: int, bins: tuple[int, int], parts: list[int]) -> list[Any]:
    """Return the offsets of each bin to the right and down: two arrays (R, D, H', W')."""
    classes = trans.shape[1] // 2
    of_class = (np.arange(output_dim) // max(output_dim // classes, 1))[:, None, None]
    row, column = scale_index(bins[0], parts[0])[:, None], scale_index(bins[1], parts[1])
    return [trans[:, of_class * 2 + which, row, column] for which in (0, 1)]


def _index_channels(output_dim: int, group: list[int], bins: tuple[int, int]) -> Array:
    """Return the channel that every bin reads: (D, H', W')."""
    row = np.clip(scale_index(bins[0], group[0]), 0, group[0] - 1)[:, None]
    column = np.clip(scale_index(bins[1], group[1]), 0, group[1] - 1)
    return (np.arange(output_dim)[:, None, None] * group[0] + row) * group[1] + column


# The perspective transform

_CLOSE = 1e-4


@lowers("roi_perspective_transform", sequences=True)
def roi_perspective_transform(
    x: Array,
    rois: Array | Packed,
    *,
    transformed_height: int,
    transformed_width: int,
    spatial_scale: float,
) -> Results:
    boxes, owners = find_owners(rois, x.shape[0])
    size = (transformed_height, transformed_width)
    corners = (boxes.astype(x.dtype) * jnp.asarray(spatial_scale, x.dtype)).reshape(-1, 4, 2)

    def transform(given: Array) -> tuple[Array, Array, Array]:
        owner, corners = given
        matrix = _find_matrix(corners, size)
        row, column = (part.astype(x.dtype) for part in np.indices(size))
        u, v, w = (matrix[i] * column + matrix[i + 1] * row + matrix[i + 2] for i in (0, 3, 6))
        at_x, at_y = u / w, v / w
        inside = _is_in_quadrangle(at_x, at_y, corners)
        for at, length in ((at_x, x.shape[3]), (at_y, x.shape[2])):
            inside &= ~(at < -0.5 + _CLOSE) & ~(at > length - 0.5 - _CLOSE)
        at_x, at_y = (jnp.where(inside & (at >= _CLOSE), at, 0) for at in (at_x, at_y))
        at_x, at_y = jnp.minimum(at_x, x.shape[3] - 1), jnp.minimum(at_y, x.shape[2] - 1)
        return _read_points(x[owner], at_y, at_x, inside), inside[None].astype(jnp.int32), matrix

    out, mask, matrices = jax.lax.map(transform, (owners, jax.lax.stop_gradient(corners)))
    assert isinstance(rois, Packed)
    return rois.replace(out), like_regions(rois, mask), like_regions(rois, matrices), None, None


def _find_matrix(corners: Array, size: tuple[int, int]) -> Array:
    """Return the 9 elements of the matrix that maps (column, row, 1) of the rectangle to the quadrangle."""
    sides = jnp.sqrt(((corners - jnp.roll(corners, -1, 0)) ** 2).sum(1))
    tall, wide = (sides[1] + sides[3]) / 2, (sides[0] + sides[2]) / 2
    rows = max(2, size[0])
    ratio = wide * (rows - 1) / tall
    columns = jnp.where(jnp.isfinite(ratio), jnp.floor(ratio + 0.5) + 1, size[1])
    columns = jnp.maximum(2, jnp.minimum(columns, size[1])).astype(corners.dtype)
    first, second, third, last = corners
    d1, d2, d3 = second - third, last - third, first - second + third - last
    determinant = d1[0] * d2[1] - d2[0] * d1[1] + 1e-5
    g = (d3[0] * d2[1] - d2[0] * d3[1]) / determinant / (columns - 1)
    h = (d1[0] * d3[1] - d3[0] * d1[1]) / determinant / (rows - 1)
    numbers = []
    for axis in (0, 1):
        along = second[axis] - first[axis] + g * (columns - 1) * second[axis]
        down = last[axis] - first[axis] + h * (rows - 1) * last[axis]
        numbers += [along / (columns - 1), down / (rows - 1), first[axis]]
    return jnp.stack([*numbers, g, h, jnp.ones_like(g)]).astype(corners.dtype)


def _is_in_quadrangle(x: Array, y: Array, corners: Array) -> Array:
    """Return whether each point lies in a quadrangle, by the sides that a ray to the right crosses."""
    on_side, crossings = jnp.zeros(x.shape, bool), jnp.zeros(x.shape, jnp.int32)
    ends = jnp.roll(corners, -1, 0)
    for side in range(4):
        (x1, y1), (x2, y2) = corners[side], ends[side]
        low, high = jnp.minimum(y1, y2), jnp.maximum(y1, y2)
        is_level = jnp.abs(y1 - y2) < _CLOSE
        touches = (jnp.abs(y - y1) < _CLOSE) & (jnp.abs(y - y2) < _CLOSE)
        touches &= (x > jnp.minimum(x1, x2) - _CLOSE) & (x < jnp.maximum(x1, x2) + _CLOSE)
        crossed = (y - y1) * (x2 - x1) / jnp.where(is_level, 1, y2 - y1) + x1
        is_near = jnp.abs(crossed - x) < _CLOSE
        passes = ~(y < low + _CLOSE) & ~(y - high > _CLOSE)
        slanted = (is_near & (y > low - _CLOSE) & (y < high + _CLOSE)) | (passes & is_near)
        on_side |= jnp.where(is_level, touches, slanted)
        crossings += (~is_level & passes & (crossed - x > _CLOSE)).astype(jnp.int32)
    return on_side | (crossings % 2 == 1)
