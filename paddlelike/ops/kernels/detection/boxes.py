"""Boxes (xmin, ymin, xmax, ymax): areas and overlaps, in the order of operations of Paddle's kernels.

Boxes are normalized or in pixels. In pixels the last pixel belongs to the box, so a width is ``xmax - xmin +
1``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from paddlelike.core import Generator
from paddlelike.framework.opdef import Array
from paddlelike.ops.kernels.fast import boxes as fast
from paddlelike.ops.kernels.rounding import log


def measure_areas(boxes: Array, *, normalized: bool) -> Array:
    """Return the areas of boxes ``(..., 4)``; 0 where a box is upside down."""
    edge = boxes.dtype.type(0 if normalized else 1)
    width, height = boxes[..., 2] - boxes[..., 0], boxes[..., 3] - boxes[..., 1]
    areas = (width + edge) * (height + edge)
    areas[(width < 0) | (height < 0)] = 0
    return areas


def find_overlaps(first: Array, second: Array, *, normalized: bool) -> Array:
    """Return areas of intersections divided by areas of unions: ``(N, 4)`` and ``(M, 4)`` to ``(N, M)``.

    The overlap is 0 where the boxes do not touch. Two boxes without area at one place give NaN (0 / 0), as in
    C++.
    """
    a, b = (Boxes.measure(boxes, normalized=normalized) for boxes in (first, second))
    return a.find_overlaps(b)


class Boxes(NamedTuple):
    """Boxes with their areas, for computing overlaps in parts."""

    columns: Array  # (4, N)
    areas: Array
    edge: np.generic  # added to a width: 0, or 1 pixel
    usual: bool  # every box has an area and its corners in order; then no other case can occur

    @classmethod
    def measure(cls, boxes: Array, *, normalized: bool) -> Boxes:
        """Return boxes ``(N, 4)`` with their areas."""
        areas = measure_areas(boxes, normalized=normalized)
        usual = bool((areas > 0).all() and (boxes[:, 2:] >= boxes[:, :2]).all())
        edge = boxes.dtype.type(0 if normalized else 1)
        return cls(np.ascontiguousarray(boxes.T), areas, edge, usual)

    def take(self, index: Array | slice) -> Boxes:
        """Return some of the boxes."""
        return self._replace(columns=self.columns[:, index], areas=self.areas[index])

    def find_overlaps(self, other: Boxes) -> Array:
        """Return the overlaps with other boxes, ``(N, M)``; see :func:`find_overlaps`."""
        if (
            kernel := fast.find_overlaps.choose(self.areas.size * other.areas.size, self.areas, other.areas)
        ) is not None:
            out = np.empty((self.areas.size, other.areas.size), self.areas.dtype)
            pair = (np.concatenate([boxes.columns, boxes.areas[None]]) for boxes in (self, other))
            if np.isfinite(self.areas).all() and np.isfinite(other.areas).all():
                kernel(*pair, self.edge, out)
                return out
        a, b = self.columns[:, :, None], other.columns[:, None]
        width = np.minimum(a[2], b[2])
        width -= np.maximum(a[0], b[0])
        height = np.minimum(a[3], b[3])
        height -= np.maximum(a[1], b[1])
        usual = self.usual and other.usual
        apart = None
        if usual and not self.edge:
            np.maximum(width, 0, out=width)
            np.maximum(height, 0, out=height)
        else:
            apart = (width < 0) | (height < 0) if usual else _find_apart(a, b)
            width += self.edge
            height += self.edge
        width *= height  # the intersection
        union = np.add(self.areas[:, None], other.areas, out=height)
        union -= width
        with np.errstate(divide="ignore", invalid="ignore"):
            width /= union
        if apart is not None:
            width[apart] = 0
        return width


def _find_apart(a: Array, b: Array) -> Array:
    """Return which pairs of boxes do not touch, also for boxes that are upside down."""
    apart: Array = (b[0] > a[2]) | (b[2] < a[0]) | (b[1] > a[3]) | (b[3] < a[1])
    return apart


def overlap_pixels(first: Array, second: Array) -> Array:
    """Return the intersection of boxes (N, 4) and (M, 4) by their union: (N, M), 0 where they are apart."""
    areas = [(boxes[:, 2] - boxes[:, 0] + 1) * (boxes[:, 3] - boxes[:, 1] + 1) for boxes in (first, second)]
    a, b = first[:, None], second[None]
    width = np.maximum(np.minimum(a[..., 2], b[..., 2]) - np.maximum(a[..., 0], b[..., 0]) + 1, 0)
    height = np.maximum(np.minimum(a[..., 3], b[..., 3]) - np.maximum(a[..., 1], b[..., 1]) + 1, 0)
    common = width * height
    union = areas[0][:, None] + areas[1] - common
    return np.divide(common, union, out=np.zeros_like(common), where=common != 0)


def encode_boxes(boxes: Array, targets: Array, weights: Sequence[float] | None = None) -> Array:
    """Return the offsets from boxes (N, 4) to their targets (N, 4): shifts by the size, logarithms of ratios.

    Each of the four columns is divided by its weight, if there are weights.
    """
    size, wanted = boxes[:, 2:] - boxes[:, :2] + 1, targets[:, 2:] - targets[:, :2] + 1
    half = boxes.dtype.type(0.5)
    center, goal = boxes[:, :2] + half * size, targets[:, :2] + half * wanted
    with np.errstate(divide="ignore", invalid="ignore"):
        moves = np.concatenate([(goal - center) / size, log(wanted / size)], 1)
    return moves if weights is None else moves / np.asarray(weights, np.float32).astype(boxes.dtype)


def sample_reservoir(
    generator: Generator, indices: Array, count: int, *, swaps_below: int | None = None
) -> Array:
    """Return ``indices`` with a random sample of ``count`` in front, drawn in Paddle's order.

    Element i from ``count`` on changes places with element ``floor(u * i)`` if that is below ``swaps_below``
    (None means ``count``).
    """
    order: Array = indices.copy()
    if len(order) <= count:
        return order
    later = np.arange(count, len(order))
    places = np.floor(generator.draw(len(later)) * later.astype(np.float32)).astype(np.int64)
    hits = np.flatnonzero(places < (count if swaps_below is None else swaps_below))
    for i, place in zip(later[hits].tolist(), places[hits].tolist(), strict=True):
        order[i], order[place] = order[place], order[i]
    return order
