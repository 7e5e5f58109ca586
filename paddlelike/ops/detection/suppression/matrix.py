"""Suppression that lowers scores instead of removing boxes (Wang et al., SOLOv2, 2020)."""

from __future__ import annotations

import numpy as np

from paddlelike.core import VarType
from paddlelike.framework.opdef import Array, Bool, Context, Float, OpDef, Spec, register
from paddlelike.ops.detection.suppression.kept import (
    ChoiceAttrs,
    Kept,
    check_operands,
    infer_rows,
    join,
    list_labels,
    no_boxes,
    write_rows,
)
from paddlelike.ops.kernels.detection.boxes import find_overlaps
from paddlelike.ops.kernels.lod import make_lod
from paddlelike.ops.kernels.rounding import exp
from paddlelike.ops.kernels.sorting import argsort_unstable


class MatrixNmsAttrs(ChoiceAttrs):
    """Attributes of matrix_nms."""

    post_threshold: float = Float(0.0)
    use_gaussian: bool = Bool(False)
    gaussian_sigma: float = Float(2.0)


@register
class MatrixNms(OpDef):
    """``Out``: rows (label, score, box) of an image, the best first, scores lowered by overlaps.

    BBoxes ``(N, M, 4)``, Scores ``(N, classes, M)``; Index ``(rows, 1)`` int32 is ``image * M + box``. Every
    better box b of the same class gives a factor ``(1 - overlap) / (1 - worst)``, where ``worst`` is the
    greatest overlap of b with boxes better than b. With ``use_gaussian`` the factor is ``exp((worst**2 -
    overlap**2) * gaussian_sigma)``. The smallest factor multiplies the score. Boxes with a new score above
    ``post_threshold`` remain.
    """

    type = "matrix_nms"
    inputs = ("BBoxes", "Scores")
    outputs = ("Out", "Index")
    fluid_order = (
        "background_label score_threshold post_threshold nms_top_k keep_top_k normalized use_gaussian "
        "gaussian_sigma"
    )
    attrs = MatrixNmsAttrs.table()

    @staticmethod
    def infer(boxes: Spec, scores: Spec) -> tuple[Spec, Spec]:
        out = infer_rows("matrix_nms", boxes, sequences=False)._replace(lod_level=1)
        return out, Spec((out.shape[0], 1), VarType.INT64, 1)  # int32, but Paddle's layers declare it so

    @staticmethod
    def forward(ctx: Context, boxes: Array, scores: Array, *, attrs: MatrixNmsAttrs) -> tuple[Array, Array]:
        out, index, counts = keep_decayed(boxes, scores, attrs)
        for slot in ("Out", "Index"):
            ctx.set_lod(slot, [make_lod(counts.astype(np.int64))])
        return out, index


def keep_decayed(boxes: Array, scores: Array, attrs: MatrixNmsAttrs) -> tuple[Array, Array, Array]:
    """Return rows (label, score, box) of all images, the indexes of their boxes, and the count of each
    image.
    """
    check_operands("matrix_nms", boxes, scores, ranks=(3,))
    images = [_keep_decayed(*pair, attrs) for pair in zip(boxes, scores, strict=True)] or [no_boxes(boxes)]
    index = np.concatenate([kept.place + i * boxes.shape[1] for i, kept in enumerate(images)])
    counts = np.array([len(kept.label) for kept in images], np.int32)
    out = np.concatenate([write_rows(kept) for kept in images])
    return out, index.astype(np.int32).reshape(-1, 1), counts


def _keep_decayed(boxes: Array, scores: Array, attrs: MatrixNmsAttrs) -> Kept:
    kept = [no_boxes(boxes)]
    for label in list_labels(len(scores), attrs):
        able = np.flatnonzero(scores[label] > scores.dtype.type(np.float32(attrs.score_threshold)))
        limit = len(able) if attrs.nms_top_k < 0 else attrs.nms_top_k
        index = able[argsort_unstable(scores[label, able], first=limit)]
        if not len(index):
            continue
        score = _decay(boxes[index], attrs) * scores[label, index]
        stays = score > score.dtype.type(np.float32(attrs.post_threshold))
        index = index[stays]
        kept.append(Kept(np.full(len(index), label), score[stays], boxes[index], index))
    found = join(kept)
    limit = len(found.score) if attrs.keep_top_k < 0 else attrs.keep_top_k
    best = argsort_unstable(found.score, first=limit)
    return Kept(*(part[best] for part in found))


def _decay(boxes: Array, attrs: MatrixNmsAttrs) -> Array:
    """Return the factor of every box; the best one comes first."""
    overlaps = np.tril(find_overlaps(boxes, boxes, normalized=attrs.normalized), -1)
    worst = overlaps.max(1)  # of each box with a better one
    if attrs.use_gaussian:
        sigma = boxes.dtype.type(np.float32(attrs.gaussian_sigma))
        factors = exp((worst * worst - overlaps * overlaps) * sigma)
    else:
        with np.errstate(divide="ignore", invalid="ignore"):
            factors = ((1.0 - overlaps.astype(np.float64)) / (1.0 - worst.astype(np.float64))).astype(
                boxes.dtype
            )
    factors[np.triu_indices(len(boxes))] = 1  # only better boxes count
    return np.fmin(factors.min(1, initial=1), 1)
