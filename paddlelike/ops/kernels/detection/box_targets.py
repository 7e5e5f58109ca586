"""Helpers for targets of region proposals: overlaps in pixels, encoded boxes, random samples.

Boxes are (x1, y1, x2, y2) with both ends included, so that a width is ``x2 - x1 + 1``.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from paddlelike.core.random import Generator
from paddlelike.framework.opdef import Array
from paddlelike.ops.kernels.rounding import log


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
    """Return how to move boxes (N, 4) to their targets (N, 4): shifts by the size, logarithms of ratios.

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
    """Return ``indices`` with a random sample of ``count`` of them in front, by Paddle's order of draws.

    Element i from ``count`` on changes places with element ``floor(u * i)`` if that is below ``swaps_below``
    (None: ``count``).
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
