"""Suppression, merging, matching and overlaps of boxes, in the order of operations of numpy's kernels.

Boxes ``(N, 4)`` are (xmin, ymin, xmax, ymax) and finite. ``edge`` is added to a width: 0, or 1 for pixels.
"""

from __future__ import annotations

import numpy as np

from paddlelike.framework.opdef import Array
from paddlelike.ops.kernels.fast.late import Number, compile_late


def _measure(left: float, top: float, right: float, bottom: float, edge: Number) -> float:
    """Return the area of a box; 0 for one that is upside down."""
    area = (right - left + edge) * (bottom - top + edge)
    return edge - edge if (right - left < 0) | (bottom - top < 0) else area


def _overlap(
    left: float, top: float, right: float, bottom: float, area: float, other: Array, j: int, edge: Number
) -> float:
    """Return the overlap with box ``j`` of ``other`` ``(5, N)``, which holds edges and areas."""
    width = min(right, other[2, j]) - max(left, other[0, j])
    height = min(bottom, other[3, j]) - max(top, other[1, j])
    common = (width + edge) * (height + edge)
    overlap = common / (area + other[4, j] - common)
    apart = (left > other[2, j]) | (right < other[0, j]) | (top > other[3, j]) | (bottom < other[1, j])
    return edge - edge if apart else overlap


@compile_late("int64(T[:, ::1], T, T, T, int64[::1])", least=1 << 8, helpers=(_measure, _overlap))
def suppress_boxes(boxes: Array, threshold: Number, eta: Number, edge: Number, kept: Array) -> int:
    """Write the indices of the boxes kept, in order, as many as fit. Return their number.

    A box is kept unless its overlap with one kept before it is above the threshold (or 0 / 0). An ``eta``
    below 1 multiplies the threshold after each kept box, while the threshold is above 0.5.
    """
    found = np.empty((5, len(boxes)), boxes.dtype)  # of the kept ones
    count = 0
    for i in range(len(boxes)):
        if count == len(kept):
            break
        left, top, right, bottom = boxes[i]
        area = _measure(left, top, right, bottom, edge)
        removed = False
        for start in range(0, count, 64):  # no way out inside: it runs on many boxes at once
            worse = 0
            for j in range(start, min(start + 64, count)):
                worse += not _overlap(left, top, right, bottom, area, found, j, edge) <= threshold
            if worse:
                removed = True
                break
        if not removed:
            found[0, count], found[1, count], found[2, count], found[3, count] = left, top, right, bottom
            found[4, count] = area
            kept[count] = i
            count += 1
            if eta < 1 and threshold > 0.5:
                threshold = threshold * eta
    return count


@compile_late("int64(T[:, ::1], T[::1], T, T, int64[::1])", least=1 << 8, helpers=(_measure, _overlap))
def merge_boxes(boxes: Array, scores: Array, threshold: Number, edge: Number, apart: Array) -> int:
    """Merge each box in place into the last merged box, if they overlap by more than the threshold.

    Writes the indices of the boxes that the others went into, and returns their number.
    """
    last = np.empty((5, 1), boxes.dtype)
    count = at = 0
    for i in range(len(boxes)):
        left, top, right, bottom = boxes[i]
        area = _measure(left, top, right, bottom, edge)
        if i > 0 and _overlap(left, top, right, bottom, area, last, 0, edge) > threshold:
            total = scores[i] + scores[at]
            for k in range(4):
                boxes[at, k] = (boxes[i, k] * scores[i] + boxes[at, k] * scores[at]) / total
            scores[at] = total
        else:
            apart[count] = at = i
            count += 1
        left, top, right, bottom = boxes[at]
        last[0, 0], last[1, 0], last[2, 0], last[3, 0] = left, top, right, bottom
        last[4, 0] = _measure(left, top, right, bottom, edge)
    return count


@compile_late("void(T[:, ::1], T[:, ::1], T, T[:, ::1])", least=1 << 14, helpers=(_overlap,))
def find_overlaps(a: Array, b: Array, edge: Number, out: Array) -> None:
    """Write the overlaps ``(N, M)`` of boxes ``(5, N)`` and ``(5, M)``: edges and areas."""
    for i in range(a.shape[1]):
        left, top, right, bottom, area = a[0, i], a[1, i], a[2, i], a[3, i], a[4, i]
        for j in range(b.shape[1]):
            out[i, j] = _overlap(left, top, right, bottom, area, b, j, edge)


@compile_late("void(T[:, ::1], T[:, ::1], T, T, T[:, ::1])", least=1 << 14)
def measure_similarity(a: Array, b: Array, edge: Number, tiny: Number, out: Array) -> None:
    """Write the overlaps of boxes ``(N, 4)`` and ``(4, M)`` for iou_similarity.

    An area is negative where a box is upside down, and ``tiny`` is added to the union.
    """
    zero = edge - edge
    for i in range(a.shape[0]):
        left, top, right, bottom = a[i]
        area = (bottom - top + edge) * (right - left + edge)
        for j in range(b.shape[1]):
            width = min(right, b[2, j]) - max(left, b[0, j]) + edge
            height = min(bottom, b[3, j]) - max(top, b[1, j]) + edge
            common = max(width, zero) * max(height, zero)
            other = (b[3, j] - b[1, j] + edge) * (b[2, j] - b[0, j] + edge)
            out[i, j] = common / (area + other - common + tiny)


@compile_late("void(T[:, ::1], T, int32[::1])", least=1 << 10)
def match_greedily(matrix: Array, least: Number, index: Array) -> None:
    """Match columns with rows of a matrix ``(K, M)``, the greatest number first; write each column's row.

    Numbers below ``least`` are ignored. Of equal numbers the first column wins, then the first row. Columns
    without a match are not written.
    """
    count, columns = matrix.shape
    rows = np.full(columns, -1, np.int64)  # of the greatest number of each column
    best = np.empty(columns, matrix.dtype)
    taken = np.zeros(count, np.bool_)
    for r in range(count):
        for c in range(columns):
            x = matrix[r, c]
            if x >= least and (rows[c] < 0 or x > best[c]):
                rows[c], best[c] = r, x
    for _ in range(count):
        column = -1
        for c in range(columns):
            if rows[c] >= 0 and (column < 0 or best[c] > best[column]):
                column = c
        if column < 0:
            break
        row = rows[column]
        index[column] = row
        taken[row] = True
        rows[column] = -1
        for c in range(columns):
            if rows[c] == row:
                rows[c] = -1
                for r in range(count):
                    x = matrix[r, c]
                    if not taken[r] and index[c] < 0 and x >= least and (rows[c] < 0 or x > best[c]):
                        rows[c], best[c] = r, x
