"""Overlaps of one pair of shapes, in Python numbers, for loops where each pair depends on the previous pair.

numpy takes many times as long for one pair. :func:`is_above` returns None where rounding could decide.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Final

Point = tuple[float, float]
_UNSURE: Final = 1e-3  # overlaps nearer to the threshold than this are left to numpy


def is_above(
    first: Sequence[float], second: Sequence[float], threshold: float, *, normalized: bool
) -> bool | None:
    """Return whether the overlap of two boxes, or two polygons, is above the threshold.

    Return None when the overlap is near the threshold, and for shapes that are empty, upside down or not
    convex.
    """
    overlap = (
        _overlap_boxes(first, second, normalized) if len(first) == 4 else _overlap_polygons(first, second)
    )
    if overlap is None or not abs(overlap - threshold) > _UNSURE:
        return None
    return overlap > threshold


def _overlap_boxes(a: Sequence[float], b: Sequence[float], normalized: bool) -> float | None:
    edge = 0.0 if normalized else 1.0
    areas = []
    for left, top, right, bottom in (a, b):
        if not (right >= left and bottom >= top):
            return None
        areas.append((right - left + edge) * (bottom - top + edge))
    width = min(a[2], b[2]) - max(a[0], b[0])
    height = min(a[3], b[3]) - max(a[1], b[1])
    if width < 0 or height < 0:
        return 0.0
    common = (width + edge) * (height + edge)
    union = areas[0] + areas[1] - common
    return common / union if union > 0 else None


def _overlap_polygons(a: Sequence[float], b: Sequence[float]) -> float | None:
    first, second = _find_corners(a), _find_corners(b)
    if first is None or second is None:
        return None
    common = abs(_measure(_clip(first, second)))
    return common / (abs(_measure(first)) + abs(_measure(second)) - common)


def _find_corners(numbers: Sequence[float]) -> list[Point] | None:
    """Return the corners of a convex polygon, turning left; None if it is not convex or has no area."""
    corners = list(zip(numbers[0::2], numbers[1::2], strict=True))
    turns = [
        (b[0] - a[0]) * (c[1] - b[1]) - (b[1] - a[1]) * (c[0] - b[0])
        for (a, b), (_, c) in pairwise(pairwise([*corners, *corners[:2]]))
    ]
    area = _measure(corners)
    if area > 0 and min(turns) >= 0:
        return corners
    return corners[::-1] if area < 0 and max(turns) <= 0 else None


def _clip(corners: list[Point], window: list[Point]) -> list[Point]:
    """Return the part of a convex polygon that lies in another (Sutherland and Hodgman, 1974)."""
    for (x, y), (to_x, to_y) in pairwise([*window, window[0]]):
        along_x, along_y = to_x - x, to_y - y
        sides = [along_x * (b - y) - along_y * (a - x) for a, b in corners]
        kept: list[Point] = []
        for index, (here, side) in enumerate(zip(corners, sides, strict=True)):
            before, other = corners[index - 1], sides[index - 1]
            if (side < 0) != (other < 0):
                part = other / (other - side)
                kept.append(
                    (before[0] + part * (here[0] - before[0]), before[1] + part * (here[1] - before[1]))
                )
            if side >= 0:
                kept.append(here)
        corners = kept
        if not corners:
            break
    return corners


def _measure(corners: list[Point]) -> float:
    """Return the area of a polygon, negative if its corners are in clockwise order."""
    if not corners:
        return 0.0
    pairs = pairwise([*corners, corners[0]])
    return sum(a[0] * b[1] - a[1] * b[0] for a, b in pairs) / 2
