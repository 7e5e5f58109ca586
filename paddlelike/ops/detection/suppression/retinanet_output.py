"""retinanet_detection_output: boxes and classes from the levels of a feature pyramid.

Lin et al., Focal loss for dense object detection, 2017.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from paddlelike.errors import ShapeError
from paddlelike.framework.opdef import Array, Attrs, Context, Float, Int, OpDef, Spec, register
from paddlelike.ops.kernels.detection.regions import round_half_away
from paddlelike.ops.kernels.detection.suppression import rank_scores, suppress
from paddlelike.ops.kernels.lod import make_lod
from paddlelike.ops.kernels.rounding import exp
from paddlelike.ops.kernels.sorting import argsort_descending


class _Attrs(Attrs):
    score_threshold: float = Float()
    nms_top_k: int = Int()
    nms_threshold: float = Float()
    nms_eta: float = Float()
    keep_top_k: int = Int()


@register
class RetinanetDetectionOutput(OpDef):
    """The objects in each image: class, score and box, the highest score first.

    Each level has BBoxes ``(N, M, 4)``, which are offsets to Anchors ``(M, 4)``, and Scores ``(N, M, C)``.
    ImInfo ``(N, 3)`` is height, width, scale. A row of Out ``(D, 6)`` is (class from 1 on, score, x1, y1, x2,
    y2) in the original image; Out has one sequence per image. Each level gives its ``nms_top_k`` best scores
    above ``score_threshold`` (above 0 at the last level). Boxes that overlap a better one of their class are
    dropped; the ``keep_top_k`` best of an image remain.
    """

    type = "retinanet_detection_output"
    inputs = ("BBoxes*", "Scores*", "Anchors*", "ImInfo")
    outputs = ("Out",)
    attrs = _Attrs.table()

    @classmethod
    def infer(cls, boxes: list[Spec], scores: list[Spec], anchors: list[Spec], info: Spec) -> Spec:
        if not len(boxes) == len(scores) == len(anchors) > 0:
            raise ShapeError(
                f"{cls.type}: there are {len(boxes)} BBoxes, {len(scores)} Scores, {len(anchors)} Anchors; "
                "expected one of each for every level"
            )
        for i, (box, score, anchor) in enumerate(zip(boxes, scores, anchors, strict=True)):
            if len(box.shape) != 3 or len(score.shape) != 3 or len(anchor.shape) != 2:
                raise ShapeError(
                    f"{cls.type}: at level {i} BBoxes has shape {box.shape}, Scores {score.shape}, "
                    f"Anchors {anchor.shape}; expected (N, M, 4), (N, M, C) and (M, 4)"
                )
        return Spec((boxes[0].shape[1], boxes[0].shape[2] + 2), scores[0].dtype)

    @staticmethod
    def forward(
        ctx: Context,
        boxes: list[Array],
        scores: list[Array],
        anchors: list[Array],
        info: Array,
        *,
        attrs: _Attrs,
    ) -> Array:
        found = [
            _detect([each[i] for each in boxes], [each[i] for each in scores], anchors, image, attrs)
            for i, image in enumerate(info[: len(scores[0])])
        ]
        ctx.set_lod("Out", [make_lod(np.array([len(rows) for rows in found]))])
        return np.concatenate(found)


def _detect(
    moves: Sequence[Array], scores: Sequence[Array], anchors: Sequence[Array], info: Array, attrs: _Attrs
) -> Array:
    """Return the detections of one image, (D, 6)."""
    kinds, sure, places = [], [], []
    for level, (move, score, anchor) in enumerate(zip(moves, scores, anchors, strict=True)):
        least = attrs.score_threshold if level < len(scores) - 1 else 0.0
        best = rank_scores(score.reshape(-1), least, attrs.nms_top_k)
        row, kind = np.divmod(best, score.shape[1])
        kinds.append(kind)
        sure.append(score.reshape(-1)[best])
        places.append(_decode(anchor[row], move[row], info.astype(score.dtype, copy=False)))
    kind, score, box = np.concatenate(kinds), np.concatenate(sure), np.concatenate(places)
    kept = []
    for each in np.unique(kind):
        of_class = np.flatnonzero(kind == each)
        of_class = of_class[argsort_descending(score[of_class])]
        left = suppress(box[of_class], threshold=attrs.nms_threshold, eta=attrs.nms_eta, normalized=False)
        kept.append(of_class[left])
    index = np.concatenate(kept) if kept else np.empty(0, np.int64)
    index = index[argsort_descending(score[index])]
    if 0 <= attrs.keep_top_k < len(index):
        index = index[: attrs.keep_top_k]
    return np.column_stack([kind[index].astype(score.dtype) + 1, score[index], box[index]])


def _decode(anchors: Array, moves: Array, info: Array) -> Array:
    """Return the moved anchors in the original image, clipped to it."""
    real = moves.dtype.type
    anchors = anchors.astype(moves.dtype, copy=False)
    size = anchors[:, 2:] - anchors[:, :2] + real(1)
    center = moves[:, :2] * size + (anchors[:, :2] + size / real(2))
    half = exp(moves[:, 2:]) * size / real(2)
    boxes = np.concatenate([center - half, center + half - real(1)], 1) / info[2]
    last = round_half_away(info[[1, 0, 1, 0]] / info[2]) - real(1)
    clipped: Array = np.maximum(np.minimum(boxes, last), real(0))
    return clipped
