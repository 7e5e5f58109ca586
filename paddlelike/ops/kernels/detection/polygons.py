"""Areas and overlaps of polygons given by their corners (x1, y1, x2, y2, ...).

An edge and a base line bound a trapezoid. Added with the signs of the edges' directions, the trapezoids give
the polygon. So the intersection of two simple polygons is a signed sum over all pairs of edges: of the area
that the two trapezoids share, the integral of the lower line.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from paddlelike.framework.opdef import Array


def measure_polygons(polygons: Array) -> Array:
    """Return the areas of polygons ``(N, 2 * corners)``, summed in the order of Paddle's kernel."""
    x, y = polygons[:, 0::2], polygons[:, 1::2]
    terms = x * np.roll(y, -1, 1) - y * np.roll(x, -1, 1)
    total = np.zeros(len(polygons), polygons.dtype)
    for i in range(terms.shape[1]):
        total += terms[:, i]
    return np.abs(total / polygons.dtype.type(2))


def find_polygon_overlaps(first: Array, second: Array) -> Array:
    """Return areas of intersections divided by areas of unions: ``(N, 2k)`` and ``(M, 2k)`` to ``(N, M)``.

    0 where an area is 0. The polygons must not cross themselves; Paddle's own clipping (the General Polygon
    Clipper) then gives the same up to rounding.
    """
    return Polygons.measure(first).find_overlaps(Polygons.measure(second))


class Polygons(NamedTuple):
    """Polygons with their areas, for computing overlaps in parts."""

    edges: _Edges
    areas: Array

    @classmethod
    def measure(cls, polygons: Array) -> Polygons:
        """Return polygons ``(N, 2 * corners)`` with their areas."""
        return cls(_Edges.cut(polygons), measure_polygons(polygons))

    def take(self, index: Array | slice) -> Polygons:
        """Return some of the polygons."""
        return Polygons(_Edges(*(part[index] for part in self.edges)), self.areas[index])

    def find_overlaps(self, other: Polygons) -> Array:
        """Return the overlaps with other polygons, ``(N, M)``; see :func:`find_polygon_overlaps`."""
        areas = self.areas[:, None], other.areas
        common = _measure_common(self.edges, other.edges).astype(self.areas.dtype)
        none = (areas[0] == 0) | (areas[1] == 0) | (common == 0)
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(none, common.dtype.type(0), common / (areas[0] + areas[1] - common))


class _Edges(NamedTuple):
    """The edges of polygons from left to right, ``(N, edges)`` each, in float64."""

    left: Array
    right: Array
    at_left: Array  # y at the left end
    slope: Array
    sign: Array  # of the direction in which the polygon runs through the edge

    @classmethod
    def cut(cls, polygons: Array) -> _Edges:
        x, y = polygons[:, 0::2].astype(np.float64), polygons[:, 1::2].astype(np.float64)
        next_x, next_y = np.roll(x, -1, 1), np.roll(y, -1, 1)
        forward = next_x >= x
        width = next_x - x
        slope = np.divide(next_y - y, width, out=np.zeros_like(x), where=width != 0)
        return cls(
            np.minimum(x, next_x), np.maximum(x, next_x), np.where(forward, y, next_y), slope, np.sign(width)
        )


def _measure_common(first: _Edges, second: _Edges) -> Array:
    """Return the areas of the intersections, ``(N, M)``."""
    a = _Edges(*(part[:, None, :, None] for part in first))
    b = _Edges(*(part[None, :, None, :] for part in second))
    low = np.maximum(a.left, b.left)
    width = np.maximum(np.minimum(a.right, b.right) - low, 0)
    # The base line is close, since a distant one would cancel digits.
    base = min(first.at_left.min(initial=0), second.at_left.min(initial=0))
    height = a.at_left - base + (low - a.left) * a.slope
    other = b.at_left - base + (low - b.left) * b.slope
    at_left, at_right = height - other, height - other + width * (a.slope - b.slope)
    above = np.maximum(at_left, 0) + np.maximum(at_right, 0)
    spread = np.abs(at_left) + np.abs(at_right)
    mean_above = np.divide(above * above, 2 * spread, out=np.zeros_like(spread), where=spread > 0)
    lower = height + width * a.slope / 2 - mean_above  # the mean of the lower line
    area: Array = np.abs((width * lower * a.sign * b.sign).sum((2, 3)))
    return area
