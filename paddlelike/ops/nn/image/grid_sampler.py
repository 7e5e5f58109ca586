"""Images warped by a grid: affine_grid computes the grid, grid_sampler samples an image at its points.

A point is (x, y); (-1, -1) is the middle of the first pixel, (1, 1) the middle of the last one. Jaderberg et
al., Spatial transformer networks, 2015.
"""

from __future__ import annotations

import itertools
from typing import Any, Final, NamedTuple

import numpy as np

from paddlelike.errors import ShapeError
from paddlelike.framework.opdef import Array, Attrs, Bool, Gradient, Ints, OpDef, Spec, String, register
from paddlelike.ops.kernels.nn.image.windows import check_image
from paddlelike.ops.later import keep_attrs, register_kernel
from paddlelike.ops.operands import can_be_equal, read_numbers


@register
class AffineGrid(OpDef):
    """``Output[n, h, w] = Theta[n] (x_w, y_h, 1)`` for the points of an image of ``output_shape``.

    Theta is ``(N, 2, 3)``, ``output_shape`` or OutputShape ``(N, C, H, W)``, Output ``(N, H, W, 2)``.
    """

    type = "affine_grid"
    inputs = ("Theta", "OutputShape?")
    outputs = ("Output",)
    attrs = {"use_cudnn": Bool(True), "output_shape": Ints([])}
    lod = "Theta"
    gradient = Gradient("OutputShape", "Output@GRAD", outputs=("Theta@GRAD",))

    @staticmethod
    def infer(theta: Spec, output_shape_tensor: Spec | None) -> Spec:
        if len(theta.shape) != 3 or theta.shape[1:] != (2, 3):
            raise ShapeError(f"affine_grid: Theta has shape {theta.shape}; it needs (N, 2, 3)")
        return Spec((theta.shape[0], -1, -1, 2), theta.dtype)  # as Paddle: known at run time only

    @staticmethod
    def forward(theta: Array, shape_tensor: Array | None, *, output_shape: list[int]) -> Array:
        points = _find_points(read_numbers(output_shape, shape_tensor, None), theta.dtype)
        out = points.reshape(-1, 3) @ theta.swapaxes(1, 2)
        return out.reshape(len(theta), *points.shape[:2], 2)

    @staticmethod
    def backward(shape_tensor: Array | None, d_out: Array, *, output_shape: list[int]) -> Array:
        points = _find_points(read_numbers(output_shape, shape_tensor, None), d_out.dtype)
        return d_out.reshape(len(d_out), -1, 2).swapaxes(1, 2) @ points.reshape(-1, 3)


def _find_points(shape: list[int], dtype: np.dtype[np.generic]) -> Array:
    """Return (x, y, 1) of every pixel: ``(H, W, 3)``."""
    if len(shape) < 4:
        raise ShapeError(f"affine_grid: the output shape is {shape}; it needs 4 numbers (N, C, H, W)")
    height, width = shape[2:4]
    out = np.ones((height, width, 3), dtype)
    out[..., 0] = _divide_line(width)
    out[..., 1] = _divide_line(height)[:, None]
    return out


def _divide_line(count: int) -> Array:
    """Return points from -1 to 1 at equal steps; NaN for one point, as in Fluid."""
    return np.linspace(-1, 1, count) if count != 1 else np.full(1, np.nan)


class _Corner(NamedTuple):
    """One of the four pixels around every point."""

    pixel: Array  # in the flat image, (N, points); 0 where outside
    weight: Array  # how much of it the point takes; 0 where outside
    d_x: Array  # of the weight, by the point's place in pixels
    d_y: Array


def _find_corners(grid: Array, height: int, width: int) -> list[_Corner]:
    x, y = (
        (grid[..., i].reshape(len(grid), -1) + 1) * ((size - 1) / 2) for i, size in enumerate((width, height))
    )
    left, top = np.floor(x), np.floor(y)
    corners = []
    for down, right in itertools.product((0, 1), repeat=2):
        at_x, at_y = left + right, top + down
        # How near the point is to the corner along each dim, and the sign of the change.
        near_x, near_y = 1 - np.abs(x - at_x), 1 - np.abs(y - at_y)
        inside = (at_x >= 0) & (at_x < width) & (at_y >= 0) & (at_y < height)
        index = np.where(inside, at_y * width + at_x, 0).astype(np.int64)
        corners.append(
            _Corner(
                index,
                near_x * near_y * inside,
                near_y * inside * (2 * right - 1),
                near_x * inside * (2 * down - 1),
            )
        )
    return corners


@register
class GridSampler(OpDef):
    """``Output[n, c, h, w]``: X[n, c] at the point Grid[n, h, w], interpolated linearly between four pixels.

    Points outside of X are 0. X is ``(N, C, H, W)``, Grid ``(N, H, W, 2)``.
    """

    type = "grid_sampler"
    inputs = ("X", "Grid")
    outputs = ("Output",)
    attrs = {"use_cudnn": Bool(True)}
    lod = "X"
    gradient = Gradient("X", "Grid", "Output@GRAD", traceable=False)

    @staticmethod
    def infer(x: Spec, grid: Spec) -> Spec:
        check_image("grid_sampler", x)
        wanted = (x.shape[0], *x.shape[2:], 2)
        if len(grid.shape) != 4 or not all(map(can_be_equal, grid.shape, wanted)):
            raise ShapeError(
                f"grid_sampler: X has shape {x.shape} and Grid {grid.shape}; Grid needs {wanted}"
            )
        return Spec(x.shape, x.dtype)

    @staticmethod
    def forward(x: Array, grid: Array) -> Array:
        flat = x.reshape(*x.shape[:2], -1)
        out = np.zeros((*x.shape[:2], grid.shape[1] * grid.shape[2]), x.dtype)
        for corner in _find_corners(grid, *x.shape[2:]):
            pixels = np.take_along_axis(flat, corner.pixel[:, None], 2)
            pixels *= corner.weight[:, None]
            out += pixels
        return out.reshape(*x.shape[:2], *grid.shape[1:3])

    @staticmethod
    def backward(x: Array, grid: Array, d_out: Array) -> tuple[Array, Array]:
        n, c, height, width = x.shape
        flat, d_flat = x.reshape(n, c, -1), d_out.reshape(n, c, -1)
        dx = np.zeros((n, c, height * width), x.dtype)
        d_place = np.zeros((2, *d_flat.shape[::2]), x.dtype)
        first = np.arange(n * c).reshape(n, c, 1) * (height * width)
        for corner in _find_corners(grid, height, width):
            index = (first + corner.pixel[:, None]).reshape(-1)
            np.add.at(dx.reshape(-1), index, (d_flat * corner.weight[:, None]).reshape(-1))
            by_weight = (np.take_along_axis(flat, corner.pixel[:, None], 2) * d_flat).sum(1)
            d_place[0] += by_weight * corner.d_x
            d_place[1] += by_weight * corner.d_y
        scale = np.array([(width - 1) / 2, (height - 1) / 2], x.dtype)
        return dx.reshape(x.shape), (d_place.transpose(1, 2, 0) * scale).reshape(grid.shape)


_GRID_ATTRS: Final = {"output_shape": Ints([]), "align_corners": Bool(True)}


@register_kernel(
    "affine_grid",
    "Theta OutputShape? -> Output",
    _GRID_ATTRS,
    changed=True,
    make_grad=classmethod(keep_attrs),
)
def _affine_grid(
    theta: Array, tensor: Array | None, *, output_shape: list[int], align_corners: bool
) -> Array:
    """The coordinates of an image's pixels under an affine map; the image spans [-1, 1]."""
    points = _list_points(read_numbers(output_shape, tensor, None)[2:], align_corners, theta.dtype)
    out = points.reshape(1, -1, points.shape[-1]) @ theta.swapaxes(1, 2)
    return np.asarray(out.reshape(len(theta), *points.shape[:-1], -1))


@register_kernel("affine_grid_grad", "OutputShape? Output@GRAD -> Theta@GRAD", _GRID_ATTRS, changed=True)
def _affine_grid_grad(
    tensor: Array | None, d_out: Array, *, output_shape: list[int], align_corners: bool
) -> Array:
    """The gradient of the affine map."""
    points = _list_points(read_numbers(output_shape, tensor, None)[2:], align_corners, d_out.dtype)
    rows = points.reshape(-1, points.shape[-1])
    return np.asarray(d_out.reshape(len(d_out), len(rows), -1).swapaxes(1, 2) @ rows)


def _list_points(spatial: list[int], align_corners: bool, dtype: np.dtype[Any]) -> Array:
    """Return the coordinates, and 1, of every pixel of an image."""
    lines = [np.linspace(-1, 1, n) * (1 if align_corners else (n - 1) / n) for n in spatial]
    grid = np.meshgrid(*lines, indexing="ij")[::-1]
    return np.stack([*grid, np.ones(spatial)], -1).astype(dtype)


class SampleAttrs(Attrs):
    """Attributes of the later grid_sampler."""

    mode: str = String("bilinear")
    padding_mode: str = String("zeros")
    align_corners: bool = Bool(True)


@register_kernel("grid_sampler", "X Grid -> Output", SampleAttrs.table(), changed=True)
def _grid_sample(x: Array, grid: Array, *, attrs: SampleAttrs) -> Array:
    """X ``(N, C, [D,] H, W)`` at points ``(N, ..., 2 or 3)`` whose last dim is x, y[, z], from -1 to 1."""
    spatial, points = x.shape[2:], grid.reshape(len(grid), -1, grid.shape[-1])
    sides = [_find_taps(points[..., -1 - i], size, attrs) for i, size in enumerate(spatial)]
    flat, out = x.reshape(*x.shape[:2], -1), np.zeros((*x.shape[:2], points.shape[1]), x.dtype)
    for taps in itertools.product(*sides):
        weight = np.ones(points.shape[:2], x.dtype)
        for _, share in taps:
            weight = weight * share
        kept = [np.clip(place, 0, size - 1) for (place, _), size in zip(taps, spatial, strict=True)]
        for (place, _), inside in zip(taps, kept, strict=True):
            weight *= place == inside  # the others are zeros
        index = np.ravel_multi_index([np.asarray(one, np.intp) for one in kept], spatial)
        out += np.take_along_axis(flat, index[:, None], 2) * weight[:, None]
    return out.reshape(*x.shape[:2], *grid.shape[1:-1])


def _find_taps(place: Array, size: int, attrs: SampleAttrs) -> list[tuple[Array, Array | float]]:
    """Return the elements along a dim from which each point is interpolated, with their weights."""
    at = (place + 1) * ((size - 1) / 2) if attrs.align_corners else ((place + 1) * size - 1) / 2
    if attrs.padding_mode == "border":
        at = np.clip(at, 0, size - 1)
    elif attrs.padding_mode == "reflection":
        low, span = (0, size - 1) if attrs.align_corners else (-0.5, size)
        away = np.abs(at - low) % (2 * span) if span else at * 0
        at = np.clip(np.minimum(away, 2 * span - away) + low, 0, size - 1)
    at = np.nan_to_num(at, nan=-1)
    if attrs.mode == "nearest":
        return [(np.rint(at), 1.0)]
    first = np.floor(at)
    return [(first, first + 1 - at), (first + 1, at - first)]
