"""Metrics inside programs against counts in numpy."""

from __future__ import annotations

import numpy as np
import pytest

import paddlelike as fluid
from tests.helpers.small_networks import RNG, run

layers = fluid.layers


@pytest.mark.parametrize("k", [1, 2])
def test_accuracy_counts_labels_among_the_greatest(k: int) -> None:
    a = RNG.normal(size=(8, 4)).astype("float32")
    ids = RNG.integers(0, 4, (8, 1))
    out = layers.accuracy(fluid.data("x", [None, 4]), fluid.data("y", [None, 1], "int64"), k=k)
    hits = (np.argsort(-a, 1)[:, :k] == ids).any(1)
    np.testing.assert_allclose(run(out, x=a, y=ids), [hits.mean()], rtol=1e-6)  # float32


def test_auc_is_the_probability_that_a_one_ranks_higher() -> None:
    scores = RNG.permutation(np.linspace(0.01, 0.99, 40)).astype("float32")
    labels = (RNG.uniform(size=40) < scores).astype("int64")
    pairs = scores[labels == 1][:, None] > scores[labels == 0]
    area, *_ = layers.auc(
        fluid.data("x", [None, 2]), fluid.data("y", [None, 1], "int64"), num_thresholds=2**12 - 1
    )
    found = run(area, x=np.stack([1 - scores, scores], 1), y=labels[:, None])
    np.testing.assert_allclose(found, [pairs.mean()], atol=1e-3)  # scores fall into 4,096 bins


def test_mean_iou_is_the_mean_over_classes() -> None:
    guess, truth = np.array([0, 1, 1, 2, 2, 2]), np.array([0, 0, 1, 2, 2, 1])
    ious = [((guess == c) & (truth == c)).sum() / ((guess == c) | (truth == c)).sum() for c in range(3)]
    mean, wrong, correct = layers.mean_iou(
        fluid.data("x", [6], "int32"), fluid.data("y", [6], "int32"), num_classes=3
    )
    found = run([mean, wrong, correct], x=guess.astype("int32"), y=truth.astype("int32"))
    np.testing.assert_allclose(found[0].ravel(), [np.mean(ious)], rtol=1e-6)  # float32
    assert found[2].tolist() == [1, 1, 2]
