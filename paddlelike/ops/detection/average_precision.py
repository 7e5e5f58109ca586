"""Mean average precision of detections (Everingham et al., The PASCAL VOC challenge, 2010)."""

from __future__ import annotations

from collections import defaultdict
from itertools import pairwise
from typing import Any

import numpy as np

from paddlelike.core import VarType
from paddlelike.errors import EnforceNotMet, ShapeError
from paddlelike.framework import follows_fluid
from paddlelike.framework.opdef import (
    NO_LOD,
    REQUIRED,
    Array,
    Attrs,
    Bool,
    Context,
    Float,
    Int,
    OpDef,
    Spec,
    String,
    register,
)
from paddlelike.ops.kernels.detection.boxes import find_overlaps
from paddlelike.ops.kernels.lod import make_lod, read_last_level
from paddlelike.ops.kernels.sorting import argsort_descending, argsort_unstable


class DetectionMapAttrs(Attrs):
    """Attributes of detection_map."""

    class_num: int = Int(REQUIRED)
    background_label: int = Int(0)
    overlap_threshold: float = Float(0.5)
    evaluate_difficult: bool = Bool(True)
    ap_type: str = String("integral")


@register
class DetectionMap(OpDef):
    """``MAP`` (1,): the mean over classes of the average precision of detections.

    DetectRes ``(M, 6)`` has rows (label, score, box), Label ``(N, 5)`` (label, box) or ``(N, 6)`` (label,
    difficult, box); the rows of an image are one sequence, boxes are shares of the image. A detection is
    right when it overlaps a true box of its class by more than ``overlap_threshold`` and is the best one to
    do so.

    AccumPosCount ``(class_num, 1)`` counts the true boxes. AccumTruePos and AccumFalsePos have one sequence
    per class, with a row (score, 0 or 1) for each detection. All three include PosCount, TruePos and FalsePos
    where HasState is not 0.

    As in Paddle, ``background_label`` is compared with a class's count of true boxes, not with its index: see
    ``fluid.quirks()``.
    """

    type = "detection_map"
    inputs = ("DetectRes", "Label", "HasState?", "PosCount?", "TruePos?", "FalsePos?")
    outputs = ("AccumPosCount", "AccumTruePos", "AccumFalsePos", "MAP")
    attrs = DetectionMapAttrs.table()

    @staticmethod
    def infer(
        found: Spec,
        label: Spec,
        has_state: Spec | None,
        count: Spec | None,
        true: Spec | None,
        false: Spec | None,
        *,
        attrs: DetectionMapAttrs,
    ) -> tuple[None, None, None, Spec]:
        if len(found.shape) != 2 or found.shape[1] not in (6, -1):
            raise ShapeError(f"detection_map: DetectRes has shape {found.shape}; it needs (rows, 6)")
        if len(label.shape) != 2 or label.shape[1] not in (5, 6, -1):
            raise ShapeError(f"detection_map: Label has shape {label.shape}; it needs (rows, 5) or (rows, 6)")
        if attrs.ap_type not in ("integral", "11point"):
            raise ShapeError(
                f"detection_map: ap_type is {attrs.ap_type!r}", hint="take 'integral' or '11point'"
            )
        if count is not None and (true is None or false is None):
            raise ShapeError("detection_map: PosCount needs TruePos and FalsePos beside it")
        return None, None, None, Spec((1,), VarType.FP32, NO_LOD)

    @staticmethod
    def forward(
        ctx: Context,
        found: Array,
        label: Array,
        has_state: Array | None,
        count: Array | None,
        true: Array | None,
        false: Array | None,
        *,
        attrs: DetectionMapAttrs,
    ) -> tuple[Array, Array, Array, Array]:
        record = _Record(found.dtype)
        if count is not None and has_state is not None and has_state.reshape(-1)[0]:
            record.counts.update(enumerate(count.reshape(-1).tolist()))
            for slot, rows, marks in (("TruePos", true, record.right), ("FalsePos", false, record.wrong)):
                assert rows is not None
                starts = read_last_level(ctx, slot, len(rows)).tolist()
                for kind, (low, high) in enumerate(pairwise(starts)):
                    if high > low:
                        marks[kind].append(rows[low:high])
        label_starts = read_last_level(ctx, "Label", len(label)).tolist()
        found_starts = read_last_level(ctx, "DetectRes", len(found)).tolist()
        if len(label_starts) != len(found_starts):
            raise EnforceNotMet(
                f"detection_map: Label has {len(label_starts) - 1} images, DetectRes {len(found_starts) - 1}"
            )
        for i in range(len(label_starts) - 1):
            true_rows = label[label_starts[i] : label_starts[i + 1]]
            record.add_image(true_rows, found[found_starts[i] : found_starts[i + 1]], attrs)
        mean = np.array([record.compute_mean(attrs)], found.dtype)
        true = _join_classes(ctx, "AccumTruePos", record.right, attrs.class_num)
        false = _join_classes(ctx, "AccumFalsePos", record.wrong, attrs.class_num)
        counts = np.array([record.counts.get(kind, 0) for kind in range(attrs.class_num)], np.int32)
        return counts.reshape(-1, 1), true.astype(found.dtype), false.astype(found.dtype), mean


def _join_classes(ctx: Context, slot: str, marks: dict[int, list[Array]], classes: int) -> Array:
    """Return the rows of all classes, and set the LoD of an output to one sequence for each class."""
    parts = [np.concatenate([np.empty((0, 2), np.float32), *marks[kind]]) for kind in range(classes)]
    ctx.set_lod(slot, [make_lod(np.array([len(part) for part in parts], np.int64))])
    return np.concatenate(parts)


class _Record:
    """Per class: the number of true boxes, and rows (score, mark) of detections in order."""

    def __init__(self, dtype: np.dtype[np.generic]) -> None:
        self.dtype = dtype
        self.counts: dict[int, int] = {}
        self.right: dict[int, list[Array]] = defaultdict(list)
        self.wrong: dict[int, list[Array]] = defaultdict(list)

    def add_image(self, true: Array, found: Array, attrs: DetectionMapAttrs) -> None:
        """Add the true boxes and the detections of an image."""
        kinds = true[:, 0].astype(np.int64)
        difficult = np.abs(true[:, 1]) >= 1e-6 if true.shape[1] == 6 else np.zeros(len(true), bool)
        for kind in np.unique(kinds).tolist():
            counted = (kinds == kind) & (attrs.evaluate_difficult | ~difficult)
            if counted.any():
                self.counts[kind] = self.counts.get(kind, 0) + int(counted.sum())
        found_kinds = found[:, 0].astype(np.int64)
        for kind in np.unique(found_kinds).tolist():
            rows, mine = found[found_kinds == kind], kinds == kind
            if not mine.any():
                right = np.zeros(len(rows), bool)
            else:
                rows = rows[argsort_unstable(rows[:, 1])]
                matched, enough = _match(rows[:, 2:], true[mine, -4:], attrs.overlap_threshold)
                ignored = enough & difficult[mine][matched] & (not attrs.evaluate_difficult)
                right = _mark_first(matched, enough & ~ignored)
                rows, right = rows[~ignored], right[~ignored]
            self.right[kind].append(np.stack([rows[:, 1], right], 1).astype(self.dtype))
            self.wrong[kind].append(np.stack([rows[:, 1], ~right], 1).astype(self.dtype))

    def compute_mean(self, attrs: DetectionMapAttrs) -> float:
        """Return the mean of the average precisions of the classes that have true boxes."""
        measure = _measure_area if attrs.ap_type == "integral" else _measure_at_eleven_points
        number: Any = self.dtype.type
        total, classes = number(0), 0
        for kind, count in sorted(self.counts.items()):
            counted = count if follows_fluid("detection_map_background") else kind
            if counted == attrs.background_label:
                continue
            classes += 1
            right, wrong = (_count_running(marks[kind]) for marks in (self.right, self.wrong))
            if len(right):
                precision = right.astype(self.dtype) / (right + wrong).astype(self.dtype)
                recall = right.astype(self.dtype) / number(count)
                total += number(measure(precision, recall))
        return float(total / number(classes)) if classes else 0.0


def _match(found: Array, true: Array, threshold: float) -> tuple[Array, Array]:
    """Return, for each detection, the true box with the largest overlap, and whether the overlap suffices."""
    overlaps = find_overlaps(np.clip(found, 0, 1), true, normalized=True)
    best = overlaps.argmax(1)
    return best, overlaps[np.arange(len(best)), best] > np.float32(threshold)


def _mark_first(matched: Array, able: Array) -> Array:
    """Return a mask of the detections that are the first candidates for their true box."""
    first = np.zeros(len(matched), bool)
    index = np.flatnonzero(able)
    first[index[np.unique(matched[index], return_index=True)[1]]] = True
    return first


def _count_running(parts: list[Array]) -> Array:
    """Return the cumulative number of marks, from the best score to the worst."""
    if not parts:
        return np.empty(0, np.int64)
    rows = np.concatenate(parts)
    return np.cumsum(rows[argsort_descending(rows[:, 0].astype(np.float32)), 1].astype(np.int64))


def _measure_area(precision: Array, recall: Array) -> float:
    """Return the area under the curve of precision over recall."""
    step = np.abs(np.diff(recall, prepend=recall.dtype.type(0)))
    step[step <= 1e-6] = 0
    return float(np.cumsum(precision * step, dtype=np.float32)[-1])


def _measure_at_eleven_points(precision: Array, recall: Array) -> float:
    """Return the mean of the greatest precisions at recalls of at least 1.0, 0.9, ..., 0.

    As in Paddle, each point looks only at detections that the points before it did not cover.
    """
    greatest = np.zeros(11, precision.dtype)
    end = len(recall)
    for j in range(10, -1, -1):
        below = int(np.searchsorted(recall[:end].astype(np.float64), j / 10.0))
        greatest[j] = max(greatest[j], precision[below:end].max(initial=0))
        if below:
            end = below
            if j:
                greatest[j - 1] = greatest[j]
    return float(np.cumsum(greatest[::-1] / precision.dtype.type(11))[-1])
