"""``keep_top_k`` leaves the best of the boxes that are kept without it, though fewer boxes are compared."""

from __future__ import annotations

import numpy as np
import pytest

from paddlelike.ops.detection.suppression.kept import NmsAttrs
from paddlelike.ops.detection.suppression.multiclass import keep_boxes
from paddlelike.ops.kernels.detection.suppression import find_thresholds


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("decimals", [7, 1], ids=["scores-differ", "equal-scores"])
@pytest.mark.parametrize("eta", [1.0, 0.9])
@pytest.mark.parametrize("places", [300, 12, 1], ids=["apart", "crowded", "one-place"])
def test_a_limit_on_boxes_keeps_the_boxes_with_the_best_scores(
    places: int, eta: float, decimals: int, dtype: str
) -> None:
    rng = np.random.default_rng(5)
    corners = rng.uniform(0, 1, (places, 2))[rng.integers(0, places, 300)] + rng.uniform(0, 0.01, (300, 2))
    boxes = np.concatenate([corners, corners + 0.1], 1).astype(dtype)[None]
    scores = np.round(rng.uniform(0, 1, (1, 4, 300)), decimals).astype(dtype)
    attrs = NmsAttrs(score_threshold=0.05, nms_top_k=200, keep_top_k=-1, nms_threshold=0.6, nms_eta=eta)
    rows, index, _ = keep_boxes(boxes, scores, None, attrs)
    for limit in (1, 7, 25, 60):
        best = np.sort(np.argsort(-rows[:, 1].astype("float32"), kind="stable")[:limit])
        found, its_index, _ = keep_boxes(boxes, scores, None, attrs.replace(keep_top_k=limit))
        assert np.array_equal(found, rows[best])
        assert np.array_equal(its_index, index[best])


def test_lower_score_thresholds_admit_more_boxes() -> None:
    scores = np.random.default_rng(2).permutation(1000).astype("float32").reshape(4, 250)
    found = list(find_thresholds(scores, 99.5, 10))
    assert [np.count_nonzero(scores > least) for least in found] == [29, 119, 900]
    assert list(find_thresholds(scores, 900.0, 40)) == [900.0]  # half of what is above is not a saving
