"""Operators of detection refuse what does not fit, and say what came and what was expected."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import paddlelike as fluid
from paddlelike.errors import EnforceNotMet, ShapeError
from paddlelike.ops.kernels.sorting import argsort_unstable
from tests.ops.harness.contract import call

BOXES, SCORES = np.zeros((2, 5, 4), np.float32), np.zeros((2, 3, 5), np.float32)


@pytest.mark.parametrize(
    ("boxes", "scores", "text"),
    [
        (BOXES, np.zeros((2, 3, 6), np.float32), r"BBoxes has shape \(2, 5, 4\), Scores \(2, 3, 6\)"),
        (BOXES[..., :3], SCORES, r"the last dim of BBoxes must be one of \(4, 8, 16, 24, 32\)"),
        (BOXES, SCORES[0, 0], r"Scores needs 2 or 3 dims"),
    ],
    ids=["counts", "size", "rank"],
)
def test_suppression_of_mismatched_boxes_and_scores_is_refused(boxes: Any, scores: Any, text: str) -> None:
    with pytest.raises(ShapeError, match=text):
        call("multiclass_nms", boxes, scores, score_threshold=0.1, nms_top_k=5, keep_top_k=5)


def test_box_codes_that_do_not_fit_the_anchors_are_refused() -> None:
    anchors, codes = np.zeros((6, 4), np.float32), np.zeros((2, 5, 4), np.float32)
    with pytest.raises(ShapeError, match=r"TargetBox \(2, 5, 4\).* the anchors in dim 1"):
        call("box_coder", anchors, None, codes, code_type="decode_center_size")


def test_inputs_with_different_numbers_of_images_are_refused() -> None:
    boxes, info = np.zeros((5, 4), np.float32), np.ones((1, 3), np.float32)
    with pytest.raises(EnforceNotMet, match="Input has 2 images, but ImInfo 1 rows"):
        call("box_clip", boxes, info, lods={"Input": [[0, 2, 5]]})
    x, match = np.zeros((5, 3, 1), np.float32), np.zeros((3, 3), np.int32)
    with pytest.raises(EnforceNotMet, match="X has 2 sequences, MatchIndices 3 rows"):
        call("target_assign", x, match, None, lods={"X": [[0, 2, 5]]}, mismatch_value=0)


def test_an_image_without_a_true_box_matches_nothing() -> None:
    matrix = np.array([[0.9, 0.2], [0.3, 0.8]], np.float32)
    (indices, distances), _ = call("bipartite_match", matrix, lods={"DistMat": [[0, 2, 2]]})
    assert indices.tolist() == [[0, 1], [-1, -1]]
    np.testing.assert_array_equal(distances, np.array([[0.9, 0.8], [0, 0]], np.float32))


def test_negative_weights_with_several_numbers_per_row_are_refused() -> None:
    """The real one writes these past the end of its array."""
    x, match = np.zeros((3, 4, 2), np.float32), np.array([[-1, 0, -1, -1], [1, -1, -1, -1]], np.int32)
    negative = np.array([[0], [3], [2]], np.int32)
    lods = {"X": [[0, 1, 3]], "NegIndices": [[0, 2, 3]]}
    (_, weight), _ = call("target_assign", x, match, negative, lods=lods, mismatch_value=0)
    assert weight[..., 0].tolist() == [[1, 1, 0, 1], [1, 0, 1, 0]]


def test_heads_of_a_wrong_width_are_refused_while_the_program_is_built() -> None:
    x, size = fluid.data("x", [None, 20, 4, 4]), fluid.data("size", [None, 2], "int32")
    with pytest.raises(ShapeError, match="1 anchors of 3 classes need 8 channels"):
        fluid.layers.yolo_box(x, size, [10, 13], 3, 0.01, 32)
    box, label = fluid.data("box", [None, 5, 4]), fluid.data("label", [None, 5], "int32")
    with pytest.raises(ShapeError, match=r"anchor_mask has \[3\], but there are 2 anchors"):
        fluid.layers.yolov3_loss(x, box, label, [10, 13, 16, 30], [0, 3], 3, 0.5, 32)


def test_the_unstable_sort_gives_a_valid_order() -> None:
    rng = np.random.default_rng(3)
    for count in (0, 1, 16, 17, 100, 3000):
        keys = rng.integers(0, 20, count).astype(np.float32)
        order = argsort_unstable(keys)
        assert sorted(order.tolist()) == list(range(count))
        assert (np.diff(keys[order]) <= 0).all()
        first = argsort_unstable(keys, first=count // 3)
        np.testing.assert_array_equal(keys[first], np.sort(keys)[::-1][: count // 3])
