"""Metrics over many batches, computed from fetched values: accuracy, precision, recall, AUC, ...

``update`` takes the numbers of one batch, ``eval`` gives the metric of all batches since ``reset``.
"""

from __future__ import annotations

import copy
from numbers import Number
from typing import Any

import numpy as np

__all__ = [
    "Accuracy",
    "Auc",
    "ChunkEvaluator",
    "CompositeMetric",
    "EditDistance",
    "MetricBase",
    "Precision",
    "Recall",
]

Array = np.ndarray[Any, Any]


class MetricBase:
    """Base of all metrics. Its state are the attributes whose names do not begin with ``_``."""

    def __init__(self, name: str | None) -> None:
        self._name = self.__class__.__name__ if name is None else str(name)

    def __str__(self) -> str:
        return self._name

    def reset(self) -> None:
        """Forget all batches: numbers and arrays become zero, everything else None."""
        for key, value in self._state().items():
            setattr(self, key, _zero(value))

    def get_config(self) -> dict[str, Any]:
        """The name and a copy of the state: ``{"name": ..., "states": {...}}``."""
        return {"name": self._name, "states": copy.deepcopy(self._state())}

    def update(self, preds: Any, labels: Any) -> None:
        """Take the values of one batch."""
        raise NotImplementedError(f"{self.__class__.__name__}.update is for a subclass to write")

    def eval(self) -> Any:
        """The metric of all batches so far."""
        raise NotImplementedError(f"{self.__class__.__name__}.eval is for a subclass to write")

    def _state(self) -> dict[str, Any]:
        return {key: value for key, value in vars(self).items() if not key.startswith("_")}


def _zero(value: Any) -> Any:
    if isinstance(value, int):
        return 0
    if isinstance(value, float):
        return 0.0
    return np.zeros_like(value) if isinstance(value, np.ndarray | np.generic) else None


class CompositeMetric(MetricBase):
    """Several metrics of the same predictions and labels.

    >>> both = CompositeMetric()
    >>> both.add_metric(Precision())
    >>> both.add_metric(Recall())
    >>> both.update(np.array([0.9, 0.8, 0.2]), np.array([1, 0, 1]))
    >>> both.eval()
    [0.5, 0.5]
    """

    def __init__(self, name: str | None = None) -> None:
        super().__init__(name)
        self._metrics: list[MetricBase] = []

    def add_metric(self, metric: MetricBase) -> None:
        """Compute this metric as well."""
        if not isinstance(metric, MetricBase):
            raise ValueError(f"CompositeMetric: a metric of fluid.metrics is wanted, not {metric!r}")
        self._metrics.append(metric)

    def update(self, preds: Any, labels: Any) -> None:
        """Give one batch to every metric."""
        for metric in self._metrics:
            metric.update(preds, labels)

    def eval(self) -> list[Any]:
        """The values of all metrics, in the order in which they were added."""
        return [metric.eval() for metric in self._metrics]

    def reset(self) -> None:
        """Let every metric forget its batches."""
        for metric in self._metrics:
            metric.reset()


class Precision(MetricBase):
    """Of what is predicted to be 1 (above 0.5), the part that is: ``tp / (tp + fp)``."""

    def __init__(self, name: str | None = None) -> None:
        super().__init__(name)
        self.tp = 0  # true positives
        self.fp = 0  # false positives

    def update(self, preds: Array, labels: Array) -> None:
        """Take predictions in 0 .. 1 and labels 0 or 1, both of shape (N,) or (N, 1)."""
        predicted, actual = _positives("Precision", preds, labels)
        self.tp += int(np.sum(predicted & actual))
        self.fp += int(np.sum(predicted & ~actual))

    def eval(self) -> float:
        """The precision; 0 when nothing was predicted to be 1."""
        return _part(self.tp, self.tp + self.fp)


class Recall(MetricBase):
    """Of what is 1, the part that is predicted to be: ``tp / (tp + fn)``."""

    def __init__(self, name: str | None = None) -> None:
        super().__init__(name)
        self.tp = 0  # true positives
        self.fn = 0  # false negatives

    def update(self, preds: Array, labels: Array) -> None:
        """Take predictions in 0 .. 1 and labels 0 or 1, both of shape (N,) or (N, 1)."""
        predicted, actual = _positives("Recall", preds, labels)
        self.tp += int(np.sum(predicted & actual))
        self.fn += int(np.sum(~predicted & actual))

    def eval(self) -> float:
        """The recall; 0 when nothing is 1."""
        return _part(self.tp, self.tp + self.fn)


class Accuracy(MetricBase):
    """The mean of the accuracies of batches, weighted by their sizes.

    >>> accuracy = Accuracy()
    >>> accuracy.update(value=0.5, weight=10)
    >>> accuracy.update(value=0.9, weight=30)
    >>> accuracy.eval()
    0.8
    """

    def __init__(self, name: str | None = None) -> None:
        super().__init__(name)
        self.value: Any = 0.0
        self.weight: Any = 0.0

    def update(self, value: Any, weight: Any) -> None:
        """Take the accuracy of one batch, as ``layers.accuracy`` gives it, and the batch's size."""
        _check_number("Accuracy", "value", value)
        _check_number("Accuracy", "weight", weight)
        if np.any(np.asarray(weight) < 0):
            raise ValueError(f"Accuracy: weight is {weight}, it cannot be negative")
        self.value += value * weight
        self.weight += weight

    def eval(self) -> Any:
        """The accuracy over all batches. Raises ValueError before the first one."""
        if np.all(np.asarray(self.weight) == 0):
            raise ValueError("Accuracy: there are no batches yet; call update with what layers.accuracy gave")
        return self.value / self.weight


class ChunkEvaluator(MetricBase):
    """Precision, recall and F1 of chunks, from the counts that ``layers.chunk_eval`` gives."""

    def __init__(self, name: str | None = None) -> None:
        super().__init__(name)
        self.num_infer_chunks: Any = 0
        self.num_label_chunks: Any = 0
        self.num_correct_chunks: Any = 0

    def update(  # type: ignore[override]  # Fluid's arguments
        self, num_infer_chunks: Any, num_label_chunks: Any, num_correct_chunks: Any
    ) -> None:
        """Take the counts of one batch: chunks found, chunks there are, chunks found rightly."""
        counts = {
            "num_infer_chunks": num_infer_chunks,
            "num_label_chunks": num_label_chunks,
            "num_correct_chunks": num_correct_chunks,
        }
        for name, count in counts.items():
            _check_number("ChunkEvaluator", name, count)
        for name, count in counts.items():
            setattr(self, name, getattr(self, name) + count)

    def eval(self) -> tuple[Any, Any, Any]:
        """Precision, recall and their harmonic mean; each is 0 where it is not defined."""
        correct = self.num_correct_chunks
        precision = correct / self.num_infer_chunks if self.num_infer_chunks else 0
        recall = correct / self.num_label_chunks if self.num_label_chunks else 0
        return precision, recall, 2 * precision * recall / (precision + recall) if correct else 0


class EditDistance(MetricBase):
    """The mean edit distance of sequences, and the part of them that is not quite right."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.total_distance: Any = 0.0
        self.seq_num: Any = 0
        self.instance_error: Any = 0

    def update(self, distances: Array, seq_num: Any) -> None:
        """Take the distances of one batch, shape (N, 1), and N, as ``layers.edit_distance`` gives them."""
        _check_array("EditDistance", "distances", distances)
        _check_number("EditDistance", "seq_num", seq_num)
        self.total_distance += float(np.sum(distances))
        self.seq_num += seq_num
        self.instance_error += seq_num - int(np.sum(distances == 0))

    def eval(self) -> tuple[Any, Any]:
        """The mean distance and the part of wrong sequences. Raises ValueError before the first batch."""
        if self.seq_num == 0:
            raise ValueError(
                "EditDistance: there are no sequences yet; call update with what layers.edit_distance gave"
            )
        return self.total_distance / self.seq_num, self.instance_error / self.seq_num


class Auc(MetricBase):
    """The area under the ROC curve: how often a 1 gets a higher prediction than a 0.

    Predictions are counted in ``num_thresholds + 1`` bins, so memory does not grow with the batches; as in
    Fluid the area is that of the ROC curve whatever ``curve`` says.
    """

    def __init__(self, name: str, curve: str = "ROC", num_thresholds: int = 4095) -> None:
        super().__init__(name)
        self._curve = curve
        self._num_thresholds = num_thresholds
        self._stat_pos = np.zeros(num_thresholds + 1, np.int64)
        self._stat_neg = np.zeros(num_thresholds + 1, np.int64)

    def update(self, preds: Array, labels: Array) -> None:
        """Take predictions of shape (N, 2), the second column for 1, and labels of N elements."""
        _check_array("Auc", "labels", labels)
        _check_array("Auc", "preds", preds)
        if preds.ndim != 2 or preds.shape[1] != 2 or len(preds) != labels.size:
            raise ValueError(
                f"Auc: preds of shape {preds.shape} and labels of shape {labels.shape}; "
                "(N, 2) and N labels are wanted"
            )
        bins = (preds[:, 1].astype(np.float64) * self._num_thresholds).astype(np.int64)
        if bins.size and not 0 <= bins.min() <= bins.max() <= self._num_thresholds:
            raise ValueError(
                f"Auc: predictions reach from {preds[:, 1].min()} to {preds[:, 1].max()}, not 0 to 1"
            )
        positive = labels.reshape(-1).astype(bool)
        size = self._num_thresholds + 1
        self._stat_pos += np.bincount(bins[positive], minlength=size)
        self._stat_neg += np.bincount(bins[~positive], minlength=size)

    @staticmethod
    def trapezoid_area(x1: float, x2: float, y1: float, y2: float) -> float:
        """The area below the line from ``(x1, y1)`` to ``(x2, y2)``."""
        return abs(x1 - x2) * (y1 + y2) / 2.0

    def eval(self) -> float:
        """The area; 0 while there are only labels of one kind."""
        positive = np.concatenate([[0], np.cumsum(self._stat_pos[::-1])])
        negative = np.concatenate([[0], np.cumsum(self._stat_neg[::-1])])
        pairs = float(positive[-1]) * float(negative[-1])
        if pairs == 0:
            return 0.0
        return float(np.sum(np.diff(negative) * (positive[1:] + positive[:-1]) / 2.0)) / pairs

    def reset(self) -> None:
        """Forget all batches."""
        self._stat_pos.fill(0)
        self._stat_neg.fill(0)


def _positives(who: str, preds: Any, labels: Any) -> tuple[Array, Array]:
    """Which predictions, and which labels, are 1."""
    _check_array(who, "preds", preds)
    _check_array(who, "labels", labels)
    if preds.size != labels.size:
        raise ValueError(
            f"{who}: preds of shape {preds.shape} and labels of shape {labels.shape} differ in number"
        )
    return np.rint(preds).reshape(-1) == 1, labels.reshape(-1) == 1


def _part(count: int, of: int) -> float:
    return count / of if of else 0.0


def _check_array(who: str, argument: str, value: Any) -> None:
    if not isinstance(value, np.ndarray):
        raise ValueError(f"{who}: {argument} is a numpy array, not {value!r}")


def _check_number(who: str, argument: str, value: Any) -> None:
    if not isinstance(value, Number | np.ndarray):
        raise ValueError(f"{who}: {argument} is a number or a numpy array, not {value!r}")
