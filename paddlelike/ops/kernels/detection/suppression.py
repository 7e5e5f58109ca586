"""Suppression of boxes that overlap better ones, and selection of the best boxes of an image."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import numpy as np

from paddlelike.framework.opdef import Array
from paddlelike.ops.kernels.detection.boxes import Boxes
from paddlelike.ops.kernels.detection.polygons import Polygons
from paddlelike.ops.kernels.fast import boxes as fast_boxes, polygons as fast_polygons
from paddlelike.ops.kernels.sorting import argsort_descending

_BLOCK: Final = 128  # boxes that are compared with each other at once


def measure_shapes(shapes: Array, *, normalized: bool) -> Boxes | Polygons:
    """Return boxes (4 numbers) or polygons (an even number above 4) with their areas."""
    if shapes.shape[1] == 4:
        return Boxes.measure(shapes, normalized=normalized)
    return Polygons.measure(shapes)


def find_shape_overlaps(first: Boxes | Polygons, second: Boxes | Polygons) -> Array:
    """Return the overlaps ``(N, M)`` of shapes of one kind."""
    return first.find_overlaps(second)  # type: ignore[arg-type]  # both are of one kind


def rank_scores(scores: Array, threshold: float, limit: int) -> Array:
    """Return the indices of the scores above the threshold, the best first, ``limit`` at most (-1: all).

    Equal scores keep their order. Scores are compared as float32, as Paddle does.
    """
    able = np.flatnonzero(scores > scores.dtype.type(np.float32(threshold)))
    ranked = scores[able].astype(np.float32)
    if 0 < limit < len(able) // 4:  # the rest need not be sorted
        enough = ranked >= np.partition(ranked, len(able) - limit)[len(able) - limit]
        able, ranked = able[enough], ranked[enough]
    order = argsort_descending(ranked)
    return able[order[:limit] if limit > -1 else order]


def find_thresholds(scores: Array, threshold: float, wanted: int) -> Iterator[float]:
    """Yield falling thresholds, so that few times ``wanted`` scores exceed the first; the last is
    ``threshold``.
    """
    last = np.float32(threshold)
    able = scores[scores > scores.dtype.type(last)]
    for count in (3 * wanted, 12 * wanted):
        if 0 < count < len(able) // 2:
            yield float(np.float32(np.partition(able, -count)[-count]))
    yield float(last)


def suppress(
    boxes: Array, *, threshold: float, eta: float = 1.0, normalized: bool = True, most: int = -1
) -> Array:
    """Return the indices of the boxes that are kept, in order, the first ``most`` (-1: all).

    ``boxes`` ``(N, 4)``, or polygons, have the best one first. A box is kept unless its overlap with a box
    kept before it is above the threshold. ``eta`` multiplies the threshold after each kept box, while the
    threshold is above 0.5.
    """
    number = boxes.dtype.type
    limit = number(np.float32(threshold))
    is_box = boxes.shape[1] == 4
    kernel = (fast_boxes.suppress_boxes if is_box else fast_polygons.suppress_polygons).choose(
        len(boxes), boxes
    )
    if kernel is not None and np.isfinite(boxes).all():
        kept = np.empty(len(boxes) if most < 0 else min(most, len(boxes)), np.int64)
        edges = (number(not normalized),) if is_box else ()
        return kept[: kernel(boxes, limit, number(np.float32(eta)), *edges, kept)]
    shapes = measure_shapes(boxes, normalized=normalized)
    if eta < 1 and limit > 0.5:
        kept = _suppress_adaptively(shapes, limit, number(np.float32(eta)))
    else:
        kept = _suppress_in_blocks(shapes, limit, len(boxes) if most < 0 else most)
    return kept if most < 0 else kept[:most]


def _suppress_in_blocks(shapes: Boxes | Polygons, threshold: np.floating[Any], most: int) -> Array:
    """Return the indexes of at least ``most`` boxes that are kept, or of all kept boxes."""
    total = len(shapes.areas)
    kept = np.empty(total, np.intp)
    count = 0
    for start in range(0, total, _BLOCK):
        if count >= most:
            break
        free = np.arange(start, min(start + _BLOCK, total))
        block = shapes.take(slice(start, start + _BLOCK))
        if count:
            clear = (find_shape_overlaps(block, shapes.take(kept[:count])) <= threshold).all(1)
            free = free[clear]
            block = shapes.take(free)
        rows = np.packbits(~(find_shape_overlaps(block, block) <= threshold), 1, bitorder="little")
        removed, width = 0, rows.shape[1]
        packed = rows.tobytes()
        for i, index in enumerate(free.tolist()):
            if not removed >> i & 1:
                removed |= int.from_bytes(packed[i * width : (i + 1) * width], "little")
                kept[count] = index
                count += 1
    return kept[:count]


def _suppress_adaptively(
    shapes: Boxes | Polygons, threshold: np.floating[Any], eta: np.floating[Any]
) -> Array:
    kept = []
    worst = np.full(len(shapes.areas), -np.inf)  # the greatest overlap with a box kept so far
    for current in range(len(worst)):
        if worst[current] <= threshold:
            kept.append(current)
            rest = slice(current + 1, None)
            found = find_shape_overlaps(shapes.take(slice(current, current + 1)), shapes.take(rest))
            np.maximum(worst[rest], found[0], out=worst[rest])
            if threshold > 0.5:
                threshold *= eta
    return np.array(kept, np.intp)
