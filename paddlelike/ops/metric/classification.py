"""Metrics of classifiers: accuracy, auc, precision_recall, mean_iou."""

from __future__ import annotations

from typing import Any

import numpy as np

from paddlelike.core import VarType
from paddlelike.errors import EnforceNotMet, ShapeError
from paddlelike.framework import follows_fluid
from paddlelike.framework.opdef import REQUIRED, Array, Int, OpDef, Spec, String, register
from paddlelike.ops.kernels.areas import compute_precision_recall_area, compute_roc_area


@register
class Accuracy(OpDef):
    """``Accuracy``: the fraction of rows whose Label is among Indices (the classes ranked first)."""

    type = "accuracy"
    inputs = ("Out", "Indices", "Label")
    outputs = ("Accuracy", "Correct", "Total")
    lod = {"Accuracy": "Out"}

    @staticmethod
    def infer(out: Spec, indices: Spec, label: Spec) -> tuple[Spec, Spec, Spec]:
        if len(label.shape) != 2 or label.shape[1] not in (1, -1):
            raise ShapeError(
                f"accuracy: Label has shape {label.shape}, expected (rows, 1)",
                hint="layers.reshape(label, [-1, 1]), or declare it as [None, 1]",
            )
        one = (1,)
        return Spec(one, VarType.FP32), Spec(one, VarType.INT32), Spec(one, VarType.INT32)

    @staticmethod
    def forward(out: Array, indices: Array, label: Array) -> tuple[Array, Array, Array]:
        total = len(indices)
        correct = int((indices == label.reshape(-1, 1)).any(1).sum())
        share = correct / total if total else 0.0
        return (np.array([share], np.float32), np.array([correct], np.int32), np.array([total], np.int32))


@register
class Auc(OpDef):
    """``AUC``: the area under the ROC curve of all rows so far, from counts per score.

    StatPos and StatNeg count rows with Label 1 and 0 per score ``int(score * num_thresholds)``. With
    ``slide_steps`` of n > 0, AUC covers the latest n steps: StatPos and StatNeg hold one table for each of
    these steps, their sum, and the number of steps.
    """

    type = "auc"
    inputs = ("Predict", "Label", "StatPos", "StatNeg")
    outputs = ("AUC", "StatPosOut", "StatNegOut")
    inplace = {"StatPosOut": "StatPos", "StatNegOut": "StatNeg"}
    attrs = {"curve": String("ROC"), "num_thresholds": Int(8191), "slide_steps": Int(1)}

    @staticmethod
    def infer(
        predict: Spec, label: Spec, pos: Spec, neg: Spec, *, num_thresholds: int, slide_steps: int, curve: str
    ) -> tuple[Spec, Spec, Spec]:
        buckets = num_thresholds + 1
        if slide_steps:
            shape: tuple[int, ...] = ((1 + slide_steps) * buckets + 1,)
        else:
            shape = (1, buckets)
        table = Spec(shape, VarType.INT64)
        return Spec((1,), VarType.FP64), table, table

    @staticmethod
    def forward(
        predict: Array,
        label: Array,
        pos: Array,
        neg: Array,
        *,
        num_thresholds: int,
        slide_steps: int,
        curve: str,
    ) -> tuple[Array, Array, Array]:
        score = predict[:, -1]
        label = label.reshape(-1)[: len(score)]
        if score.size and not (np.minimum.reduce(score) >= 0 and np.maximum.reduce(score) <= 1):
            raise EnforceNotMet(
                f"auc: Predict goes from {score.min()} to {score.max()}, expected probabilities",
                hint="apply layers.softmax, or layers.sigmoid, to the scores first",
            )
        buckets = num_thresholds + 1
        place = (score * score.dtype.type(num_thresholds)).astype(np.int64)
        totals, tables = [], []
        done = int(pos.reshape(-1)[(slide_steps + 1) * buckets]) if slide_steps else 0
        for table, found in ((pos, place[label > 0]), (neg, place[label == 0])):
            total, new = _advance_window(table, found, buckets, slide_steps, done)
            totals.append(total)
            tables.append(new)
        compute = compute_roc_area
        if curve == "PR" and not follows_fluid("auc_curve"):
            compute = compute_precision_recall_area
        return np.array([compute(*totals)]), tables[0], tables[1]


def _advance_window(table: Array, places: Array, buckets: int, steps: int, done: int) -> tuple[Array, Array]:
    """Count one more step in the table. Return the counts to evaluate, and the table.

    ``places`` are the buckets of the step's rows. As in Fluid, a table that is too long, such as the layer's,
    is cut to the length in use.
    """
    flat = table.reshape(-1)
    if steps == 0:
        total = flat[:buckets]
        np.add.at(total, places, 1)
        return total, total.reshape(1, buckets)
    counter = (steps + 1) * buckets
    oldest = flat[:counter].reshape(steps + 1, buckets)[done % steps]
    total = flat[counter - buckets : counter]
    total -= oldest
    oldest.fill(0)
    np.add.at(oldest, places, 1)
    np.add.at(total, places, 1)
    flat[counter] += 1
    return total, table if len(flat) == counter + 1 else flat[: counter + 1]


@register
class PrecisionRecall(OpDef):
    """Precision, recall and F1 of a classifier, for this batch and for all batches so far.

    Metrics are float64 of shape (6,): macro precision, recall, F1, then micro. StatesInfo holds
    true positives, false positives, true negatives and false negatives per class, (classes, 4).
    """

    type = "precision_recall"
    inputs = ("MaxProbs", "Indices", "Labels", "Weights?", "StatesInfo?")
    outputs = ("BatchMetrics", "AccumMetrics", "AccumStatesInfo")
    attrs = {"class_number": Int(REQUIRED)}

    @staticmethod
    def infer(
        probs: Spec,
        indices: Spec,
        labels: Spec,
        weights: Spec | None,
        states: Spec | None,
        *,
        class_number: int,
    ) -> tuple[Spec, Spec, Spec]:
        metrics = Spec((6,), VarType.FP64)
        return metrics, metrics, Spec((class_number, 4), VarType.FP32)

    @staticmethod
    def forward(
        probs: Array,
        indices: Array,
        labels: Array,
        weights: Array | None,
        states: Array | None,
        *,
        class_number: int,
    ) -> tuple[Array, Array, Array]:
        found, label = indices.reshape(-1), labels.reshape(-1)
        for name, ids in (("Indices", found), ("Labels", label)):
            if ids.size and not 0 <= ids.min() <= ids.max() < class_number:
                raise EnforceNotMet(
                    f"precision_recall: {name} go from {ids.min()} to {ids.max()}, "
                    f"but class_number is {class_number}"
                )
        weight = np.ones(len(found)) if weights is None else weights.reshape(-1)

        def count(ids: Array, rows: Array) -> Array:
            return np.bincount(ids[rows], weight[rows], class_number)

        right = found == label
        true_pos, false_pos, false_neg = (count(found, right), count(found, ~right), count(label, ~right))
        true_neg = weight.sum() - true_pos - false_pos - false_neg
        batch = np.stack([true_pos, false_pos, true_neg, false_neg], 1)
        total = batch if states is None else batch + states
        out = np.asarray(total, probs.dtype)
        return _compute_metrics(batch, probs.dtype), _compute_metrics(total, probs.dtype), out


def _compute_metrics(states: Array, dtype: np.dtype[Any]) -> Array:
    """Return macro and micro precision, recall and F1. A class that never occurs has the value 1.

    They are float64 but, as in Fluid, only as exact as the dtype of the probabilities.
    """
    states = states.astype(dtype)

    def share(part: Array, rest: Array) -> Array:
        whole = part + rest
        known = (part > 0) | (rest > 0)
        return np.where(known, part / np.where(known, whole, 1), 1.0)

    def f1(precision: np.floating[Any], recall: np.floating[Any]) -> np.floating[Any]:
        both = precision + recall
        known = precision > 0 or recall > 0
        return dtype.type(2) * precision * recall / both if known else dtype.type(0)

    true_pos, false_pos, _, false_neg = states.T
    macro = [dtype.type(share(true_pos, rest).mean()) for rest in (false_pos, false_neg)]
    micro = [dtype.type(share(true_pos.sum(), rest.sum())) for rest in (false_pos, false_neg)]
    return np.array([*macro, f1(*macro), *micro, f1(*micro)], np.float64)


@register
class MeanIou(OpDef):
    """``OutMeanIou``: the mean of correct / (correct + wrong) over the classes that occur.

    A wrong element counts against its class and against the predicted one. Counts and means of
    earlier batches are added.
    """

    type = "mean_iou"
    until = "1"
    inputs = ("Predictions", "Labels", "InWrongs*?", "InCorrects*?", "InMeanIou*?")
    outputs = ("OutMeanIou", "OutWrong", "OutCorrect")
    attrs = {"num_classes": Int(REQUIRED)}

    @staticmethod
    def infer(
        predictions: Spec,
        labels: Spec,
        wrongs: list[Spec] | None,
        corrects: list[Spec] | None,
        means: list[Spec] | None,
        *,
        num_classes: int,
    ) -> tuple[Spec, Spec, Spec]:
        counts = Spec((num_classes,), VarType.INT32)
        return Spec((1,), VarType.FP32), counts, counts

    @staticmethod
    def forward(
        predictions: Array,
        labels: Array,
        wrongs: list[Array] | None,
        corrects: list[Array] | None,
        means: list[Array] | None,
        *,
        num_classes: int,
    ) -> tuple[Array, Array, Array]:
        found, label = predictions.reshape(-1), labels.reshape(-1)
        right = found == label
        correct = np.bincount(found[right], minlength=num_classes)
        wrong = np.bincount(found[~right], minlength=num_classes)
        wrong += np.bincount(label[~right], minlength=num_classes)
        if len(wrong) > num_classes or len(correct) > num_classes:
            raise EnforceNotMet(
                f"mean_iou: the largest class is {max(found.max(), label.max())}, "
                f"but num_classes is {num_classes}"
            )
        correct = sum((one[:num_classes] for one in corrects or []), correct)
        wrong = sum((one[:num_classes] for one in wrongs or []), wrong)
        seen = correct + wrong
        mean = (correct[seen > 0] / seen[seen > 0]).mean() if seen.any() else np.nan  # 0 / 0, as in Fluid
        mean += sum(float(one.reshape(-1)[0]) for one in means or [])
        return np.array([mean], np.float32), wrong.astype(np.int32), correct.astype(np.int32)
