"""roi_perspective_transform: quadrangles of an image, straightened to rectangles.

Sun et al., TextNet, 2018 (text that is seen at an angle).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from paddlelike.core import VarType
from paddlelike.errors import ShapeError
from paddlelike.framework.opdef import Array, Attrs, Context, Float, Gradient, Int, OpDef, Spec, register
from paddlelike.ops.kernels.detection.regions import (
    Points,
    check_regions,
    from_rows,
    index_images,
    surround,
    to_rows,
)

_CLOSE = 1e-4  # coordinates nearer than that are equal, as in Paddle


class _Attrs(Attrs):
    spatial_scale: float = Float(1.0)
    transformed_height: int = Int(1)
    transformed_width: int = Int(1)


@register
class RoiPerspectiveTransform(OpDef):
    """``Out[r]``: the part of X in quadrangle r, as a rectangle; 0 beyond the quadrangle or the image.

    X ``(N, C, H, W)``; ROIs ``(R, 8)``: the corners (x, y) from the upper left one clockwise, with one
    sequence per image; Out ``(R, C, transformed_height, transformed_width)``; Mask ``(R, 1, ...)`` int32: 1
    where there are values; TransformMatrix ``(R, 9)``: from places in Out to places in X. Out2InIdx and
    Out2InWeights are for Paddle's GPU kernel and stay without a value, as on its CPU.
    """

    type = "roi_perspective_transform"
    until = "1"
    inputs = ("X", "ROIs")
    outputs = ("Out", "Mask", "TransformMatrix", "Out2InIdx", "Out2InWeights")
    attrs = _Attrs.table()
    gradient = Gradient("X", "ROIs", "Out2InIdx?", "Out2InWeights?", "Out@GRAD", outputs=("X@GRAD",))
    lod = {"Out": "ROIs"}

    @classmethod
    def infer(cls, x: Spec, rois: Spec, *, attrs: _Attrs) -> tuple[Spec, ...]:
        check_regions(cls.type, x, rois, 8)
        if min(attrs.transformed_height, attrs.transformed_width) < 1:
            raise ShapeError(
                f"{cls.type}: the size is {attrs.transformed_height} x {attrs.transformed_width}; "
                "it needs 1 or more"
            )
        size = (attrs.transformed_height, attrs.transformed_width)
        out = (rois.shape[0], x.shape[1], *size)
        return (
            Spec(out, x.dtype),
            Spec((rois.shape[0], 1, *size), VarType.INT32),
            Spec((rois.shape[0], 9), x.dtype),
            Spec(out, VarType.INT32),
            Spec(out, x.dtype),
        )

    @staticmethod
    def forward(ctx: Context, x: Array, rois: Array, *, attrs: _Attrs) -> tuple[Any, ...]:
        owners = index_images(ctx, len(rois), len(x))
        size = (attrs.transformed_height, attrs.transformed_width)
        out = np.zeros((len(rois), x.shape[1], *size), x.dtype)
        mask = np.zeros((len(rois), 1, *size), np.int32)
        matrices = np.empty((len(rois), 9), x.dtype)
        images = {owner: to_rows(x[owner]) for owner in set(owners.tolist())}
        for n, (owner, corners) in enumerate(zip(owners, _scale(x, rois, attrs), strict=True)):
            matrices[n] = _find_matrix(corners, size)
            points, inside = _find_points(corners, matrices[n], size, x.shape[2:])
            mask[n] = inside.reshape(size)
            out[n] = from_rows(points.read(images[int(owner)]), out[n].shape)
        return out, mask, matrices, None, None

    @staticmethod
    def backward(
        ctx: Context, x: Array, rois: Array, _: Any, __: Any, d_out: Array, *, attrs: _Attrs
    ) -> Array:
        owners = index_images(ctx, len(rois), len(x))
        size = (attrs.transformed_height, attrs.transformed_width)
        total = np.zeros((len(x), x.shape[2] * x.shape[3], x.shape[1]), x.dtype)
        for n, (owner, corners) in enumerate(zip(owners, _scale(x, rois, attrs), strict=True)):
            points, _inside = _find_points(corners, _find_matrix(corners, size), size, x.shape[2:])
            points.add_to(total[owner], to_rows(d_out[n]))
        return np.ascontiguousarray(total.swapaxes(1, 2)).reshape(x.shape)


def _scale(x: Array, rois: Array, attrs: _Attrs) -> Array:
    """Return the corners in pixels of X: (R, 4, 2)."""
    scaled: Array = rois.astype(x.dtype, copy=False) * x.dtype.type(attrs.spatial_scale)
    return scaled.reshape(-1, 4, 2)


def _find_matrix(corners: Array, size: tuple[int, int]) -> Array:
    """Return the 9 elements of the matrix that maps (column, row, 1) of the rectangle to the quadrangle."""
    real = corners.dtype.type
    sides = np.sqrt(((corners - np.roll(corners, -1, 0)) ** 2).sum(1))
    tall, wide = (sides[1] + sides[3]) / real(2), (sides[0] + sides[2]) / real(2)
    rows = max(2, size[0])
    # The width that keeps the proportions, within that of the rectangle.
    ratio = wide * real(rows - 1) / tall
    columns = size[1] if not np.isfinite(ratio) else math.floor(float(ratio) + 0.5) + 1
    columns = max(2, min(columns, size[1]))
    first, second, third, last = corners
    d1, d2, d3 = second - third, last - third, first - second + third - last
    determinant = d1[0] * d2[1] - d2[0] * d1[1] + 1e-5
    matrix = np.ones(9, corners.dtype)
    matrix[6] = (d3[0] * d2[1] - d2[0] * d3[1]) / determinant / (columns - 1)
    matrix[7] = (d1[0] * d3[1] - d3[0] * d1[1]) / determinant / (rows - 1)
    for axis, at in ((0, 0), (1, 3)):
        along = second[axis] - first[axis] + matrix[6] * real(columns - 1) * second[axis]
        down = last[axis] - first[axis] + matrix[7] * real(rows - 1) * last[axis]
        matrix[at : at + 3] = along / real(columns - 1), down / real(rows - 1), first[axis]
    return matrix


def _find_points(
    corners: Array, matrix: Array, size: tuple[int, int], image: tuple[int, ...]
) -> tuple[Points, Array]:
    """Return the positions in X for the pixels of the rectangle, and a mask of those with a value."""
    row, column = (part.reshape(-1).astype(matrix.dtype) for part in np.indices(size))
    u, v, w = (matrix[i] * column + matrix[i + 1] * row + matrix[i + 2] for i in (0, 3, 6))
    with np.errstate(divide="ignore", invalid="ignore"):
        x, y = u / w, v / w
    height, width = image
    inside = _is_in_quadrangle(x, y, corners)
    for at, length in ((x, width), (y, height)):
        inside &= ~(at < -0.5 + _CLOSE) & ~(at > length - 0.5 - _CLOSE)
    x, y = np.where(inside, x, 0), np.where(inside, y, 0)
    x, y = np.where(x < _CLOSE, 0, x), np.where(y < _CLOSE, 0, y)
    x, y = np.minimum(x, width - 1).astype(matrix.dtype), np.minimum(y, height - 1).astype(matrix.dtype)
    return surround(y, x, height, width, inside), inside


def _is_in_quadrangle(x: Array, y: Array, corners: Array) -> Array:
    """Return whether points lie inside a quadrangle, by the even-odd rule, or on one of its sides."""
    on_side, crossings = np.zeros(x.shape, bool), np.zeros(x.shape, np.int64)
    with np.errstate(invalid="ignore"):
        for (x1, y1), (x2, y2) in zip(corners, np.roll(corners, -1, 0), strict=True):
            low, high = min(y1, y2), max(y1, y2)
            if abs(y1 - y2) < _CLOSE:
                on_side |= (
                    (np.abs(y - y1) < _CLOSE)
                    & (np.abs(y - y2) < _CLOSE)
                    & (x > min(x1, x2) - _CLOSE)
                    & (x < max(x1, x2) + _CLOSE)
                )
                continue
            crossed = (y - y1) * (x2 - x1) / (y2 - y1) + x1
            on_side |= (np.abs(crossed - x) < _CLOSE) & (y > low - _CLOSE) & (y < high + _CLOSE)
            passes = ~(y < low + _CLOSE) & ~(y - high > _CLOSE)
            on_side |= passes & (np.abs(crossed - x) < _CLOSE)
            crossings += passes & (crossed - x > _CLOSE)
    return on_side | (crossings % 2 == 1)
