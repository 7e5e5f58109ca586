"""Metrics over many batches, computed from fetched values: accuracy, precision, recall, AUC, ...

``update`` adds one batch, ``eval`` returns the metric of all batches since ``reset``.
"""

from __future__ import annotations

import copy
from numbers import Number
from typing import TYPE_CHECKING, Any

import numpy as np

from paddlelike.core import Array
from paddlelike.foundation.docstrings import complete_docstring, read_entries, show_related
from paddlelike.framework import warn_quirk
from paddlelike.layers.detection.average_precision import DetectionMAP
from paddlelike.ops.kernels.areas import compute_precision_recall_area, compute_roc_area

if TYPE_CHECKING:
    from paddlelike.core.typing import Numbers

__all__ = [
    "Accuracy",
    "Auc",
    "ChunkEvaluator",
    "CompositeMetric",
    "DetectionMAP",
    "EditDistance",
    "MetricBase",
    "Precision",
    "Recall",
]


class MetricBase:
    """Base class of all metrics, as in Fluid. The state is all attributes whose names do not begin with
    ``_``.

    Parameters
    ----------
    name
        A name for the user, which ``str`` returns; None for the name of the class.

    >>> import paddlelike as fluid
    >>> isinstance(fluid.metrics.Accuracy(), fluid.metrics.MetricBase)
    True
    """

    def __init_subclass__(cls) -> None:
        complete_docstring(cls, read_entries(MetricBase))

    def __init__(self, name: str | None) -> None:
        self._name = self.__class__.__name__ if name is None else str(name)

    def __str__(self) -> str:
        return self._name

    def reset(self) -> None:
        """Drop all batches: numbers and arrays become zero, everything else None."""
        for key, value in self._state().items():
            setattr(self, key, _zero(value))

    def get_config(self) -> dict[str, Any]:
        """Return the name and a copy of the state: ``{"name": ..., "states": {...}}``."""
        return {"name": self._name, "states": copy.deepcopy(self._state())}

    def update(self, preds: Array, labels: Array) -> None:
        """Add the values of one batch. Raises NotImplementedError unless a subclass defines it."""
        raise NotImplementedError(f"{self.__class__.__name__}.update must be defined by a subclass")

    def eval(self) -> object:
        """Return the metric of all batches so far.

        Raises NotImplementedError unless a subclass defines it.
        """
        raise NotImplementedError(f"{self.__class__.__name__}.eval must be defined by a subclass")

    def _state(self) -> dict[str, Any]:
        return {key: value for key, value in vars(self).items() if not key.startswith("_")}


def _zero(value: object) -> Numbers | None:
    if isinstance(value, int):
        return 0
    if isinstance(value, float):
        return 0.0
    return np.zeros_like(value) if isinstance(value, np.ndarray | np.generic) else None


class CompositeMetric(MetricBase):
    """Several metrics of the same predictions and labels, as Fluid's class of this name.

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
        """Add a metric. Raises ValueError unless it is a metric of this module."""
        if not isinstance(metric, MetricBase):
            raise ValueError(f"CompositeMetric: expected a metric of fluid.metrics, got {metric!r}")
        self._metrics.append(metric)

    def update(self, preds: Array, labels: Array) -> None:
        """Add one batch to every metric."""
        for metric in self._metrics:
            metric.update(preds, labels)

    def eval(self) -> list[object]:
        """Return the values of all metrics, in the order in which they were added."""
        return [metric.eval() for metric in self._metrics]

    def reset(self) -> None:
        """Keep the batches with a warning, as Fluid does; drop them if ``FLAGS_fluid_quirks`` is False."""
        if not warn_quirk("metric_reset"):
            for metric in self._metrics:
                metric.reset()


class Precision(MetricBase):
    """The fraction of correct positive predictions (above 0.5), ``tp / (tp + fp)``, as Fluid counts them.

    >>> import numpy as np
    >>> import paddlelike as fluid
    >>> metric = fluid.metrics.Precision()
    >>> metric.update(np.array([[0.9], [0.8], [0.1]]), np.array([[1], [0], [1]]))
    >>> metric.eval()
    0.5
    """

    def __init__(self, name: str | None = None) -> None:
        super().__init__(name)
        self.tp = 0  # true positives
        self.fp = 0  # false positives

    def update(self, preds: Array, labels: Array) -> None:
        """Add predictions from 0 to 1 and labels 0 or 1, both (N,) or (N, 1). Raises ValueError otherwise."""
        predicted, actual = _positives("Precision", preds, labels)
        self.tp += int(np.sum(predicted & actual))
        self.fp += int(np.sum(predicted & ~actual))

    def eval(self) -> float:
        """Return the precision; 0 when there is no positive prediction."""
        return _fraction(self.tp, self.tp + self.fp)


class Recall(MetricBase):
    """The fraction of positive labels that are predicted, ``tp / (tp + fn)``, as Fluid counts them.

    >>> import numpy as np
    >>> import paddlelike as fluid
    >>> metric = fluid.metrics.Recall()
    >>> metric.update(np.array([[0.9], [0.8], [0.1]]), np.array([[1], [0], [1]]))
    >>> metric.eval()
    0.5
    """

    def __init__(self, name: str | None = None) -> None:
        super().__init__(name)
        self.tp = 0  # true positives
        self.fn = 0  # false negatives

    def update(self, preds: Array, labels: Array) -> None:
        """Add predictions from 0 to 1 and labels 0 or 1, both (N,) or (N, 1). Raises ValueError otherwise."""
        predicted, actual = _positives("Recall", preds, labels)
        self.tp += int(np.sum(predicted & actual))
        self.fn += int(np.sum(~predicted & actual))

    def eval(self) -> float:
        """Return the recall; 0 when there is no positive label."""
        return _fraction(self.tp, self.tp + self.fn)


class Accuracy(MetricBase):
    """The mean of the accuracies of batches (operator ``accuracy``), weighted by their sizes.

    >>> accuracy = Accuracy()
    >>> accuracy.update(value=0.5, weight=10)
    >>> accuracy.update(value=0.9, weight=30)
    >>> accuracy.eval()
    0.8
    """

    def __init__(self, name: str | None = None) -> None:
        super().__init__(name)
        self.value: Numbers = 0.0
        self.weight: Numbers = 0.0

    def update(self, value: Numbers, weight: Numbers) -> None:
        """Add the accuracy of one batch, the result of ``layers.accuracy``, and the size of the batch.

        Raises ValueError when they are not numbers, or the size is negative.
        """
        _check_number("Accuracy", "value", value)
        _check_number("Accuracy", "weight", weight)
        if np.any(np.asarray(weight) < 0):
            raise ValueError(f"Accuracy: weight is {weight}, expected 0 or more")
        self.value += value * weight
        self.weight += weight

    def eval(self) -> Numbers:
        """Return the accuracy over all batches. Raises ValueError before the first one."""
        if np.all(np.asarray(self.weight) == 0):
            raise ValueError(
                "Accuracy: there are no batches yet; call update with the result of layers.accuracy"
            )
        return self.value / self.weight


class ChunkEvaluator(MetricBase):
    """Precision, recall and F1 of chunks, from the counts of ``layers.chunk_eval`` (operator ``chunk_eval``).

    >>> import paddlelike as fluid
    >>> metric = fluid.metrics.ChunkEvaluator()
    >>> metric.update(10, 8, 6)
    >>> [round(float(one), 3) for one in metric.eval()]
    [0.6, 0.75, 0.667]
    """

    def __init__(self, name: str | None = None) -> None:
        super().__init__(name)
        self.num_infer_chunks: Numbers = 0
        self.num_label_chunks: Numbers = 0
        self.num_correct_chunks: Numbers = 0

    def update(  # type: ignore[override]  # Fluid's arguments
        self, num_infer_chunks: Numbers, num_label_chunks: Numbers, num_correct_chunks: Numbers
    ) -> None:
        """Add inferred, labelled and correct counts of one batch. Raises ValueError for other values."""
        counts = {
            "num_infer_chunks": num_infer_chunks,
            "num_label_chunks": num_label_chunks,
            "num_correct_chunks": num_correct_chunks,
        }
        for name, count in counts.items():
            _check_number("ChunkEvaluator", name, count)
        for name, count in counts.items():
            setattr(self, name, getattr(self, name) + count)

    def eval(self) -> tuple[Numbers, Numbers, Numbers]:
        """Return precision, recall and F1; each is 0 where it is undefined."""
        correct = self.num_correct_chunks
        precision = correct / self.num_infer_chunks if self.num_infer_chunks else 0
        recall = correct / self.num_label_chunks if self.num_label_chunks else 0
        return precision, recall, 2 * precision * recall / (precision + recall) if correct else 0


class EditDistance(MetricBase):
    """The mean edit distance of sequences (operator ``edit_distance``), and the fraction of wrong sequences.

    >>> import numpy as np
    >>> import paddlelike as fluid
    >>> metric = fluid.metrics.EditDistance("distance")
    >>> metric.update(np.array([[0.0], [2.0]]), 2)
    >>> [float(one) for one in metric.eval()]
    [1.0, 0.5]
    """

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.total_distance: float = 0.0
        self.seq_num: Numbers = 0
        self.instance_error: Numbers = 0

    def update(self, distances: Array, seq_num: Numbers) -> None:
        """Add the results of ``layers.edit_distance`` for one batch: distances, shape (N, 1), and N.

        Raises ValueError when they are not arrays or numbers.
        """
        _check_array("EditDistance", "distances", distances)
        _check_number("EditDistance", "seq_num", seq_num)
        self.total_distance += float(np.sum(distances))
        self.seq_num += seq_num
        self.instance_error += seq_num - int(np.sum(distances == 0))

    def eval(self) -> tuple[Numbers, Numbers]:
        """Return the mean distance and the fraction of wrong sequences. Raises ValueError without them."""
        if self.seq_num == 0:
            raise ValueError("EditDistance: there are no sequences yet; call update first")
        return self.total_distance / self.seq_num, self.instance_error / self.seq_num


class Auc(MetricBase):
    """The area under the ROC curve: the probability that a 1 gets a higher prediction than a 0.

    Predictions are counted in ``num_thresholds + 1`` bins, so that memory does not grow with the batches. As
    in Fluid, ``curve`` has no effect; if ``FLAGS_fluid_quirks`` is False, "PR" gives the area under the
    precision-recall curve.

    Parameters
    ----------
    curve
        ``"ROC"`` or ``"PR"``.
    num_thresholds
        The number of parts that the thresholds cut [0, 1] into.

    >>> import numpy as np
    >>> import paddlelike as fluid
    >>> metric = fluid.metrics.Auc("auc")
    >>> metric.update(np.array([[0.8, 0.2], [0.3, 0.7]]), np.array([[0], [1]]))
    >>> float(metric.eval())
    1.0
    """

    def __init__(self, name: str, curve: str = "ROC", num_thresholds: int = 4095) -> None:
        super().__init__(name)
        self._precision_recall = curve == "PR" and not warn_quirk("auc_curve")
        self._curve = curve
        self._num_thresholds = num_thresholds
        self._stat_pos = np.zeros(num_thresholds + 1, np.int64)
        self._stat_neg = np.zeros(num_thresholds + 1, np.int64)

    def update(self, preds: Array, labels: Array) -> None:
        """Add predictions (N, 2), the second column of class 1, and N labels. Raises ValueError otherwise."""
        _check_array("Auc", "labels", labels)
        _check_array("Auc", "preds", preds)
        if preds.ndim != 2 or preds.shape[1] != 2 or len(preds) != labels.size:
            raise ValueError(
                f"Auc: preds of shape {preds.shape} and labels of shape {labels.shape}; "
                "expected (N, 2) and N labels"
            )
        bins = (preds[:, 1].astype(np.float64) * self._num_thresholds).astype(np.int64)
        if bins.size and not 0 <= bins.min() <= bins.max() <= self._num_thresholds:
            raise ValueError(
                f"Auc: predictions are in {preds[:, 1].min()} .. {preds[:, 1].max()}, expected 0 .. 1"
            )
        positive = labels.reshape(-1).astype(bool)
        size = self._num_thresholds + 1
        self._stat_pos += np.bincount(bins[positive], minlength=size)
        self._stat_neg += np.bincount(bins[~positive], minlength=size)

    @staticmethod
    def trapezoid_area(x1: float, x2: float, y1: float, y2: float) -> float:
        """Return the area below the line from ``(x1, y1)`` to ``(x2, y2)``."""
        return abs(x1 - x2) * (y1 + y2) / 2.0

    def eval(self) -> float:
        """Return the area; 0 while all labels are equal."""
        compute = compute_precision_recall_area if self._precision_recall else compute_roc_area
        return compute(self._stat_pos, self._stat_neg)

    def reset(self) -> None:
        """Keep the batches with a warning, as Fluid does; drop them if ``FLAGS_fluid_quirks`` is False."""
        if not warn_quirk("metric_reset"):
            self._stat_pos.fill(0)
            self._stat_neg.fill(0)


def _positives(who: str, preds: Array, labels: Array) -> tuple[Array, Array]:
    """Return masks of predictions and of labels that are 1. Raises ValueError unless their sizes match."""
    _check_array(who, "preds", preds)
    _check_array(who, "labels", labels)
    if preds.size != labels.size:
        raise ValueError(
            f"{who}: preds of shape {preds.shape} and labels of shape {labels.shape}, expected equally many"
        )
    return np.rint(preds).reshape(-1) == 1, labels.reshape(-1) == 1


def _fraction(count: int, of: int) -> float:
    return count / of if of else 0.0


def _check_array(who: str, argument: str, value: object) -> None:
    if not isinstance(value, np.ndarray):
        raise ValueError(f"{who}: {argument} must be a numpy array, got {value!r}")


def _check_number(who: str, argument: str, value: object) -> None:
    if not isinstance(value, Number | np.ndarray):
        raise ValueError(f"{who}: {argument} must be a number or a numpy array, got {value!r}")


show_related(__name__)
