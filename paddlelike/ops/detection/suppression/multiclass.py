"""nms: remove the boxes that overlap a better one."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from paddlelike.core import VarType
from paddlelike.framework.opdef import Array, Context, Float, OpDef, Spec, register
from paddlelike.ops.detection.suppression.kept import (
    Kept,
    NmsAttrs,
    check_operands,
    infer_rows,
    join,
    keep_best,
    list_labels,
    no_boxes,
    write_or_mark_empty,
    write_rows,
    write_with_index,
)
from paddlelike.ops.kernels.detection.suppression import find_thresholds, rank_scores
from paddlelike.ops.kernels.lod import read_last_level
from paddlelike.ops.later import register_kernel


@register_kernel("nms", "Boxes -> KeepBoxesIdxs", {"iou_threshold": Float(1.0)})
def _nms(boxes: Array, *, iou_threshold: float) -> Array:
    """The boxes (x1, y1, x2, y2), best first, that do not overlap a better one by more than the threshold."""
    areas = np.prod(boxes[:, 2:] - boxes[:, :2], axis=1)
    kept: list[int] = []
    for index, box in enumerate(boxes):
        low = np.maximum(box[:2], boxes[kept, :2])
        high = np.minimum(box[2:], boxes[kept, 2:])
        common = np.prod(np.maximum(high - low, 0), axis=1)
        with np.errstate(all="ignore"):  # the union of odd boxes may be 0 or less
            overlap = common / (areas[index] + areas[kept] - common)
        if not (overlap > iou_threshold).any():
            kept.append(index)
    return np.array(kept, np.int64)


@register
class MulticlassNms(OpDef):
    """``Out``: rows (label, score, box) of the boxes kept, one sequence per image.

    BBoxes is ``(N, M, 4)`` (or M polygons of 8, 16, 24 or 32 numbers) and Scores ``(N, classes, M)``. Or both
    have one sequence per image, and every class has its own boxes: ``(rows, classes, 4)`` and ``(rows,
    classes)``. Suppression takes the ``nms_top_k`` best scores above ``score_threshold`` of every class but
    ``background_label``; the ``keep_top_k`` best boxes of an image remain. Out is ``[[-1]]`` when no box
    remains.
    """

    type = "multiclass_nms"
    inputs = ("BBoxes", "Scores")
    fluid_order = "background_label score_threshold nms_top_k nms_threshold nms_eta keep_top_k normalized"
    attrs = NmsAttrs.table()

    @staticmethod
    def infer(boxes: Spec, scores: Spec) -> Spec:
        return infer_rows("multiclass_nms", boxes, sequences=len(scores.shape) != 3)._replace(lod_level=1)

    @staticmethod
    def forward(ctx: Context, boxes: Array, scores: Array, *, attrs: NmsAttrs) -> Array:
        images, _ = _keep_in_images(ctx, boxes, scores, attrs)
        return write_or_mark_empty(ctx, images or [no_boxes(boxes)])


@register
class MulticlassNms2(OpDef):
    """Suppression as in multiclass_nms, with the index of each box kept; without boxes the outputs are empty.

    Index ``(rows, 1)`` int32 is ``image * M + box``, or ``row * classes + label`` for sequences.
    """

    type = "multiclass_nms2"
    inputs = ("BBoxes", "Scores")
    outputs = ("Out", "Index")
    fluid_order = "background_label score_threshold nms_top_k nms_threshold nms_eta keep_top_k normalized"
    attrs = NmsAttrs.table()

    @staticmethod
    def infer(boxes: Spec, scores: Spec) -> tuple[Spec, Spec]:
        out = infer_rows("multiclass_nms2", boxes, sequences=len(scores.shape) != 3)._replace(lod_level=1)
        return out, Spec((out.shape[0], 1), VarType.INT64, 1)  # int32, but Paddle's layers declare it so

    @staticmethod
    def forward(ctx: Context, boxes: Array, scores: Array, *, attrs: NmsAttrs) -> tuple[Array, Array]:
        images, firsts = _keep_in_images(ctx, boxes, scores, attrs)
        return write_with_index(ctx, images, firsts)


def _keep_in_images(
    ctx: Context, boxes: Array, scores: Array, attrs: NmsAttrs
) -> tuple[list[Kept], list[int]]:
    """Return the boxes kept of each image, and the offset of its indexes."""
    check_operands(ctx.op.type, boxes, scores, ranks=(2, 3))
    starts = None if scores.ndim == 3 else read_last_level(ctx, "BBoxes", len(boxes))
    return _keep_in_parts(boxes, scores, starts, attrs)


def keep_boxes(
    boxes: Array, scores: Array, starts: Array | None, attrs: NmsAttrs
) -> tuple[Array, Array, Array]:
    """Return rows (label, score, box) of all images, indices of their boxes, and numbers per image.

    ``starts`` holds the first box of each image, if every class has its own boxes.
    """
    images, firsts = _keep_in_parts(boxes, scores, starts, attrs)
    index = np.concatenate([kept.place + first for kept, first in zip(images, firsts, strict=True)])
    counts = np.array([len(kept.label) for kept in images], np.int32)
    return np.concatenate([write_rows(kept) for kept in images]), index.astype(np.int32)[:, None], counts


def _keep_in_parts(
    boxes: Array, scores: Array, offsets: Array | None, attrs: NmsAttrs
) -> tuple[list[Kept], list[int]]:
    if offsets is None:
        firsts = [image * boxes.shape[1] for image in range(len(scores))]
        return [_keep_shared(*pair, attrs) for pair in zip(boxes, scores, strict=True)], firsts
    starts = offsets.tolist()
    parts = [slice(*pair) for pair in pairwise(starts)]
    images = [_keep_own(boxes[part], scores[part], attrs) for part in parts]
    return images, [start * scores.shape[1] for start in starts[:-1]]


def _keep_shared(boxes: Array, scores: Array, attrs: NmsAttrs) -> Kept:
    """Return the boxes kept among boxes ``(M, size)`` that all classes share; scores are ``(classes, M)``."""
    labels = list_labels(len(scores), attrs)
    # Lower scores never change what is kept above them: a few of the best may be enough.
    for least in find_thresholds(scores[labels], attrs.score_threshold, attrs.keep_top_k):
        kept = [no_boxes(boxes)]
        for label in labels:
            ranked = rank_scores(scores[label], least, attrs.nms_top_k)
            index = ranked[attrs.suppress(boxes[ranked], attrs.keep_top_k)]  # more of a class never remain
            kept.append(Kept(np.full(len(index), label), scores[label, index], boxes[index], index))
        found = join(kept)
        if np.count_nonzero(found.score.astype(np.float32) > least) >= attrs.keep_top_k:
            break
    return keep_best(found, attrs.keep_top_k)


def _keep_own(boxes: Array, scores: Array, attrs: NmsAttrs) -> Kept:
    """Return the boxes kept among boxes ``(rows, classes, 4)``, by class and then by row."""
    kept = [no_boxes(boxes)]
    for label in list_labels(scores.shape[1], attrs):
        ranked = rank_scores(scores[:, label], attrs.score_threshold, attrs.nms_top_k)
        row = np.sort(ranked[attrs.suppress(boxes[ranked, label], attrs.keep_top_k)])
        index = row * scores.shape[1] + label
        kept.append(Kept(np.full(len(row), label), scores[row, label], boxes[row, label], index))
    best = keep_best(join(kept), attrs.keep_top_k)
    order = np.lexsort((best.place, best.label))
    return Kept(*(part[order] for part in best))
