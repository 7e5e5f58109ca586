"""Overlaps of single pairs agree with those of many, which numpy computes in another way."""

from __future__ import annotations

import numpy as np
import pytest

from paddlelike.ops.kernels.detection.pairs import is_above
from paddlelike.ops.kernels.detection.suppression import find_shape_overlaps, measure_shapes

RNG = np.random.RandomState(3)


def boxes() -> np.ndarray:
    corners = RNG.uniform(0, 30, (40, 2))
    return np.concatenate([corners, corners + RNG.uniform(-2, 20, (40, 2))], 1).astype("float32")


def polygons(corners: int) -> np.ndarray:
    """Corners at random angles of circles, in either direction; some polygons are turned inside out."""
    angles = np.sort(RNG.uniform(0, 2 * np.pi, (40, corners)), 1)
    angles[::2] = angles[::2, ::-1]
    centers = RNG.uniform(0, 15, (40, 1, 2))
    points = centers + 10 * np.stack([np.cos(angles), np.sin(angles)], 2)
    points[::7, 0] = centers[::7, 0]  # dents, where the corner was far away
    return points.reshape(40, -1).astype("float32")


@pytest.mark.parametrize("normalized", [True, False])
@pytest.mark.parametrize("size", [4, 8, 16])
def test_overlaps_of_single_pairs_match_overlaps_of_many_pairs(size: int, normalized: bool) -> None:
    shapes = boxes() if size == 4 else polygons(size // 2)
    measured = measure_shapes(shapes, normalized=normalized)
    overlaps = find_shape_overlaps(measured, measured)
    rows, answers = shapes.tolist(), 0
    for i, first in enumerate(rows):
        for j, second in enumerate(rows):
            found = is_above(first, second, 0.3, normalized=normalized)
            assert found in (None, bool(overlaps[i, j] > 0.3))
            answers += found is not None
    assert answers > len(rows) ** 2 / 2


def test_overlaps_within_rounding_of_the_threshold_count_as_undecided() -> None:
    first, second = [0.0, 0.0, 2.0, 1.0], [1.0, 0.0, 3.0, 1.0]  # overlap by a third
    assert is_above(first, second, 1 / 3 + 5e-4, normalized=True) is None
    assert is_above(first, second, 0.3, normalized=True) is True
    assert is_above(first, second, 0.4, normalized=True) is False
    upside_down = [2.0, 1.0, 0.0, 0.0]
    assert is_above(first, upside_down, 0.3, normalized=True) is None
    dented = [0.0, 0.0, 4.0, 0.0, 1.0, 1.0, 0.0, 4.0]
    assert is_above(dented, dented, 0.3, normalized=True) is None
