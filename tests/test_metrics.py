"""Metrics against their formulas, and numbers of the real system."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from paddlelike import metrics
from paddlelike.average import WeightedAverage

PREDS = np.array([0.1, 0.7, 0.8, 0.9, 0.2, 0.2, 0.3, 0.5, 0.8, 0.6]).reshape(-1, 1)
LABELS = np.array([0, 1, 1, 1, 1, 0, 0, 0, 0, 0]).reshape(-1, 1)


def halves(metric: Any, preds: Any, labels: Any) -> Any:
    middle = len(labels) // 2
    metric.update(preds[:middle], labels[:middle])
    metric.update(preds[middle:], labels[middle:])
    return metric.eval()


def test_precision_and_recall_match_fluid() -> None:
    assert halves(metrics.Precision(), PREDS, LABELS) == 0.6  # 3 of 5, as the real system says
    assert halves(metrics.Recall(), PREDS, LABELS) == 0.75
    assert metrics.Precision().eval() == 0.0
    assert metrics.Recall().eval() == 0.0


def test_predictions_and_labels_must_have_equal_lengths() -> None:
    with pytest.raises(ValueError, match=r"\(2,\) and labels of shape \(1,\), expected equally many"):
        metrics.Precision().update(np.zeros(2), np.zeros(1))
    with pytest.raises(ValueError, match="preds must be a numpy array"):
        metrics.Recall().update([0.5], np.zeros(1))  # type: ignore[arg-type]


def test_accuracy_is_weighted_by_batch_size() -> None:
    accuracy = metrics.Accuracy()
    accuracy.update(value=0.5, weight=10)
    accuracy.update(value=np.array([0.8]), weight=30)
    np.testing.assert_allclose(accuracy.eval(), [0.725])
    accuracy.reset()
    with pytest.raises(ValueError, match="no batches yet"):
        accuracy.eval()


@pytest.mark.parametrize(("value", "weight"), [("a", 1), (0.5, "a"), (0.5, -1)])
def test_accuracy_refuses_values_that_are_not_numbers(value: Any, weight: Any) -> None:
    with pytest.raises(ValueError, match="Accuracy"):
        metrics.Accuracy().update(value, weight)


def test_auc_is_the_fraction_of_pairs_ranked_correctly() -> None:
    rng = np.random.default_rng(4)
    chance = rng.integers(0, 64, 300) / 64  # falls on the limits of 64 bins
    labels = (rng.random(300) < chance).astype("int64")
    ones, zeros = chance[labels == 1], chance[labels == 0]
    wins = (ones[:, None] > zeros).mean() + 0.5 * (ones[:, None] == zeros).mean()
    auc = metrics.Auc("auc", num_thresholds=64)
    preds = np.stack([1 - chance, chance], axis=1)
    np.testing.assert_allclose(halves(auc, preds, labels.reshape(-1, 1)), wins)


def test_auc_matches_fluid() -> None:
    chance = np.array([0.03, 0.11, 0.25, 0.4, 0.42, 0.5, 0.61, 0.77, 0.78, 0.95])
    labels = np.array([0, 0, 1, 0, 1, 0, 1, 1, 0, 1])
    auc = metrics.Auc("auc", num_thresholds=10)
    auc.update(np.stack([1 - chance, chance], axis=1), labels)
    assert auc.eval() == 0.72


@pytest.mark.parametrize(
    ("preds", "labels"),
    [
        (np.zeros((3, 1)), np.zeros(3)),
        (np.zeros((3, 2)), np.zeros(2)),
        (np.full((1, 2), 1.5), np.zeros(1)),
    ],
    ids=["one column", "too few labels", "above 1"],
)
def test_auc_refuses_invalid_predictions(preds: Any, labels: Any) -> None:
    with pytest.raises(ValueError, match="Auc"):
        metrics.Auc("auc").update(preds, labels)


def test_edit_distance_is_the_mean_and_the_fraction_of_wrong_sequences() -> None:
    distance = metrics.EditDistance("distance")
    with pytest.raises(ValueError, match="no sequences yet"):
        distance.eval()
    distance.update(np.array([[1.0], [0.0], [3.0]], "float32"), np.array([3]))
    distance.update(np.array([[0.0]]), 1)
    mean, wrong = distance.eval()
    assert (mean, wrong) == (1.0, 0.5)


def test_chunk_counts_give_precision_and_recall() -> None:
    chunks = metrics.ChunkEvaluator()
    assert chunks.eval() == (0, 0, 0)
    chunks.update(10, 9, 8)
    chunks.update(np.array([3]), np.array([2]), np.array([2]))
    np.testing.assert_allclose(np.ravel(chunks.eval()), [10 / 13, 10 / 11, 20 / 24])
    with pytest.raises(ValueError, match="num_label_chunks must be a number"):
        chunks.update(1, "a", 1)


def test_a_composite_metric_combines_several_metrics() -> None:
    both = metrics.CompositeMetric(name="both")
    both.add_metric(metrics.Precision())
    both.add_metric(metrics.Recall())
    assert halves(both, PREDS, LABELS) == [0.6, 0.75]
    with pytest.raises(ValueError, match="got 3"):
        both.add_metric(3)  # type: ignore[arg-type]


def test_resetting_a_user_defined_metric_depends_on_the_kind_of_its_values() -> None:
    class Mine(metrics.MetricBase):
        def __init__(self) -> None:
            super().__init__(None)
            self.count, self.mean, self.bins = 3, 2.5, np.ones(2)
            self.note: Any = "last"
            self._limit = 4

    mine = Mine()
    mine.reset()
    config = mine.get_config()
    assert (config["name"], str(mine), mine._limit) == ("Mine", "Mine", 4)
    assert (mine.count, mine.mean, mine.bins.tolist(), mine.note) == (0, 0.0, [0.0, 0.0], None)
    assert set(config["states"]) == {"count", "mean", "bins", "note"}
    for call in (mine.eval, lambda: mine.update(1, 2)):
        with pytest.raises(NotImplementedError):
            call()


def test_weighted_average_divides_by_its_weights() -> None:
    with pytest.warns(UserWarning, match="older way"):
        average = WeightedAverage()
    average.add(2.0, 1)
    average.add(np.array([4.0, 5.0]), 2)
    np.testing.assert_allclose(average.eval(), [10 / 3, 4.0])
    average.reset()
    with pytest.raises(ValueError, match="there are no values yet"):
        average.eval()
    with pytest.raises(ValueError, match="weight must be a number"):
        average.add(1.0, "a")
