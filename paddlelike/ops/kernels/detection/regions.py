"""Regions of images: which image a region lies in, and pools along rows and columns.

If the weight of a pixel is the product of a weight of its row and one of its column, a pool is two matrix
products on the part of the image under the region. :class:`AxisWeights` are the weights along one dim.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np

from paddlelike.errors import EnforceNotMet, ShapeError
from paddlelike.framework.opdef import Array, Context, Spec
from paddlelike.ops.kernels.lod import read_levels


class AxisWeights(NamedTuple):
    """The pixels of each bin of a region along one dim: a slice of pixels, and weights (bins, pixels)."""

    part: slice
    weights: Array


def check_regions(op: str, x: Spec, rois: Spec, columns: int = 4) -> None:
    """Raise ShapeError unless X is (N, C, H, W) and ROIs (R, ``columns``)."""
    if len(x.shape) != 4:
        raise ShapeError(f"{op}: the input has shape {x.shape}; it needs 4 dims (N, C, H, W)")
    if len(rois.shape) != 2 or rois.shape[1] not in (-1, columns):
        raise ShapeError(
            f"{op}: ROIs has shape {rois.shape}; it needs (R, {columns})",
            hint="a region is (x1, y1, x2, y2), or four corners for the perspective transform",
        )


def index_images(ctx: Context, count: int, images: int, offsets: Array | None = None) -> Array:
    """Return, for each of ``count`` regions, the index of its image, from ``offsets`` or the LoD of ROIs.

    Raises EnforceNotMet unless there is one sequence of regions for each of ``images`` images.
    """
    given = read_levels(ctx, "ROIs")[-1] if offsets is None else offsets.reshape(-1).tolist()
    if len(given) - 1 != images or given[0] != 0 or given[-1] != count:
        raise EnforceNotMet(
            f"{ctx.op.type}: the offsets of ROIs are {list(given)}; there are {images} images and {count} "
            "regions",
            hint="every image needs a sequence of regions (it may be empty); the offsets begin with 0 and "
            "end with the number of regions",
        )
    return np.repeat(np.arange(images), np.diff(given).astype(np.int64))


def crop_weights(weights: Array) -> AxisWeights:
    """Return weights (bins, length) without the pixels at both ends that no bin takes."""
    used = np.flatnonzero(weights.any(0))
    part = slice(int(used[0]), int(used[-1]) + 1) if len(used) else slice(0, 0)
    return AxisWeights(part, weights[:, part])


def pool_by_axes(
    x: Array, owners: Array, rows: Sequence[AxisWeights], columns: Sequence[AxisWeights]
) -> Array:
    """Return ``rows @ x[owner] @ columns^T`` of each region: (R, C, bins of rows, bins of columns).

    ``x`` is (N, C, H, W); ``owners`` are the images of the R regions.
    """
    shape = (len(rows[0].weights), len(columns[0].weights)) if rows else (0, 0)
    out = np.empty((len(owners), x.shape[1], *shape), x.dtype)
    for n, (owner, row, column) in enumerate(zip(owners, rows, columns, strict=True)):
        under = x[owner, :, row.part, column.part]
        np.matmul(row.weights, under @ column.weights.T, out=out[n])
    return out


def pool_by_axes_dx(
    d_out: Array,
    shape: tuple[int, ...],
    owners: Array,
    rows: Sequence[AxisWeights],
    columns: Sequence[AxisWeights],
) -> Array:
    """Return the gradient of :func:`pool_by_axes` with respect to ``x`` of that shape."""
    dx = np.zeros(shape, d_out.dtype)
    for d_region, owner, row, column in zip(d_out, owners, rows, columns, strict=True):
        dx[owner, :, row.part, column.part] += row.weights.T @ d_region @ column.weights
    return dx


def round_half_away(x: Array) -> Array:
    """Return x rounded as C++'s ``round``: halves away from zero."""
    return np.trunc(x + np.copysign(x.dtype.type(0.5), x))


def scatter_add(size: int, index: Array, values: Array) -> Array:
    """Return a flat array of ``size`` zeros to which ``values`` were added at ``index``, in their dtype."""
    return np.bincount(index.reshape(-1), values.reshape(-1), size).astype(values.dtype, copy=False)


_CHUNK: Final = 1 << 19  # bytes of values handled at a time: they stay in the cache


class Points(NamedTuple):
    """P points: the four pixels around each, and their weights; all of shape (4, P).

    A pixel outside of the image has the index after the last pixel, where zeros are read. ``d_y`` and ``d_x``
    are the derivatives of the weights by the place of the point.
    """

    pixel: Array
    weight: Array
    d_y: Array
    d_x: Array

    def read(self, rows: Array) -> Array:
        """Return the value at each point, (P, C)."""
        rows = _end_with_zeros(rows)
        out = np.zeros((self.pixel.shape[1], rows.shape[1]), rows.dtype)
        step = max(1, _CHUNK // max(1, rows[:1].nbytes))
        for start in range(0, len(out), step):
            part = slice(start, start + step)
            for pixel, weight in zip(self.pixel[:, part], self.weight[:, part], strict=True):
                out[part] += rows[pixel] * weight[:, None]
        return out

    def read_slopes(self, rows: Array, d_out: Array) -> tuple[Array, Array]:
        """Return the gradients of the positions, by y and x, (P,) each, from the gradients of the values (P,
        C).
        """
        rows = _end_with_zeros(rows)
        d_y, d_x = np.zeros((2, self.pixel.shape[1]), rows.dtype)
        for pixel, by_y, by_x in zip(self.pixel, self.d_y, self.d_x, strict=True):
            along = np.einsum("pc,pc->p", rows[pixel], d_out)
            d_y += by_y * along
            d_x += by_x * along
        return d_y, d_x

    def add_to(self, total: Array, d_out: Array) -> None:
        """Add the gradients (P, C) of the values to the gradients of the rows."""
        for pixel, weight in zip(self.pixel, self.weight, strict=True):
            inside = pixel < len(total)
            add_rows(total, pixel[inside], d_out[inside] * weight[inside, None])


def _end_with_zeros(rows: Array) -> Array:
    return np.concatenate([rows, np.zeros_like(rows[:1])])


def surround(y: Array, x: Array, height: int, width: int, inside: Array) -> Points:
    """Return the points (P,) in an image of that size; pixels outside, and points not ``inside``, count as
    0.
    """
    top, left = np.floor(y), np.floor(x)
    down, right = y - top, x - left
    ends = []
    for row, near_y, slope_y in ((top, 1 - down, -1), (top + 1, down, 1)):
        for column, near_x, slope_x in ((left, 1 - right, -1), (left + 1, right, 1)):
            valid = inside & (row >= 0) & (row < height) & (column >= 0) & (column < width)
            pixel = np.where(valid, row * width + column, height * width).astype(np.int64)
            ends.append((pixel, near_y * near_x * valid, slope_y * near_x * valid, slope_x * near_y * valid))
    return Points(*(np.stack(parts) for parts in zip(*ends, strict=True)))


def to_rows(x: Array) -> Array:
    """Return an image (C, H, W) as rows (H * W, C), contiguous."""
    return np.ascontiguousarray(x.reshape(len(x), -1).T)


def from_rows(rows: Array, shape: tuple[int, ...]) -> Array:
    """Return rows (H * W, C) as an image of shape (C, H, W): undoes :func:`to_rows`."""
    return rows.T.reshape(shape)


def add_rows(total: Array, index: Array, rows: Array) -> None:
    """Add rows to ``total[index]``, also where an index comes several times."""
    if not len(index):
        return
    order = np.argsort(index, kind="stable")
    ordered = index[order]
    first = np.flatnonzero(np.diff(ordered, prepend=-1))
    total[ordered[first]] += np.add.reduceat(rows[order], first, axis=0)
