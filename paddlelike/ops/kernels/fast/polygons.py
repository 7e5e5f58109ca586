"""Suppression and merging of polygons ``(N, 2 k)`` given by their corners.

The formula is that of :mod:`paddlelike.ops.kernels.detection.polygons`. The terms are added edge by edge, so
overlaps differ from numpy's by rounding.
"""

from __future__ import annotations

import numpy as np

from paddlelike.framework.opdef import Array
from paddlelike.ops.kernels.fast.late import Number, compile_late


def _cut(shape: Array, out: Array) -> float:
    """Write the edges ``(5, k)``: left, right, y at the left end, slope, direction.

    Return the area, summed in the dtype and the order of the corners.
    """
    corners = out.shape[1]
    total = shape[0] - shape[0]
    for k in range(corners):
        n = 2 * ((k + 1) % corners)
        total += shape[2 * k] * shape[n + 1] - shape[2 * k + 1] * shape[n]
        x, y = np.float64(shape[2 * k]), np.float64(shape[2 * k + 1])
        next_x, next_y = np.float64(shape[n]), np.float64(shape[n + 1])
        width = next_x - x
        out[0, k], out[1, k] = min(x, next_x), max(x, next_x)
        out[2, k] = y if width >= 0 else next_y
        out[3, k] = (next_y - y) / width if width != 0 else 0.0
        out[4, k] = np.sign(width)
    return abs(total / shape.dtype.type(2))


def _measure_common(a: Array, b: Array) -> float:
    """Return the area of the intersection of two polygons given by their edges."""
    if a[0].min() >= b[1].max() or b[0].min() >= a[1].max():
        return 0.0
    base = min(a[2].min(), b[2].min())
    total = 0.0
    for i in range(a.shape[1]):
        for j in range(b.shape[1]):
            low = max(a[0, i], b[0, j])
            width = min(a[1, i], b[1, j]) - low
            if width > 0:
                height = a[2, i] - base + (low - a[0, i]) * a[3, i]
                at_left = height - (b[2, j] - base + (low - b[0, j]) * b[3, j])
                at_right = at_left + width * (a[3, i] - b[3, j])
                above = max(at_left, 0.0) + max(at_right, 0.0)
                spread = abs(at_left) + abs(at_right)
                lower = height + width * a[3, i] / 2
                if spread > 0:
                    lower -= above * above / (2 * spread)
                total += width * lower * a[4, i] * b[4, j]
    return abs(total)


_HELPERS = (_cut, _measure_common)


@compile_late("int64(T[:, ::1], T, T, int64[::1])", least=1 << 8, exact=False, helpers=_HELPERS)
def suppress_polygons(polygons: Array, threshold: Number, eta: Number, kept: Array) -> int:
    """Write the indexes of the polygons that are kept, like ``suppress_boxes``: as many as fit into
    ``kept``.
    """
    number = polygons.dtype.type
    edges = np.empty((len(polygons), 5, polygons.shape[1] // 2))
    areas = np.empty(len(polygons), polygons.dtype)
    count = 0
    for i in range(len(polygons)):
        if count == len(kept):
            break
        areas[i] = _cut(polygons[i], edges[i])
        removed = False
        for k in range(count):
            j = kept[k]
            common = number(_measure_common(edges[i], edges[j]))
            overlap = common / (areas[i] + areas[j] - common)
            if areas[i] == 0 or areas[j] == 0 or common == 0:
                overlap = number(0)
            if not overlap <= threshold:
                removed = True
                break
        if not removed:
            kept[count] = i
            count += 1
            if eta < 1 and threshold > 0.5:
                threshold = threshold * eta
    return count


@compile_late("int64(T[:, ::1], T[::1], T, int64[::1])", least=1 << 8, exact=False, helpers=_HELPERS)
def merge_polygons(polygons: Array, scores: Array, threshold: Number, apart: Array) -> int:
    """Merge each polygon in place into the last merged one, like ``merge_boxes``."""
    number = polygons.dtype.type
    corners = polygons.shape[1] // 2
    here, last = np.empty((5, corners)), np.empty((5, corners))
    last_area = number(0)
    count = at = 0
    for i in range(len(polygons)):
        area = _cut(polygons[i], here)
        overlap = number(0)
        if i > 0 and area > 0 and last_area > 0:
            common = number(_measure_common(here, last))
            if common != 0:
                overlap = common / (area + last_area - common)
        if i > 0 and overlap > threshold:
            total = scores[i] + scores[at]
            for k in range(2 * corners):
                polygons[at, k] = (polygons[i, k] * scores[i] + polygons[at, k] * scores[at]) / total
            scores[at] = total
        else:
            apart[count] = at = i
            count += 1
        last_area = _cut(polygons[at], last)
    return count
