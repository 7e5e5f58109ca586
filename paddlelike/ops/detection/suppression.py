"""Non-maximum suppression: of boxes that overlap, keep the best.

multiclass_nms does it for every class of every image; locality_aware_nms first merges neighbours (Zhou et
al., EAST, 2017); matrix_nms lowers scores instead of dropping boxes (Wang et al., SOLOv2, 2020).
"""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

import numpy as np

from paddlelike.core.dtypes import VarType
from paddlelike.errors import ShapeError
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
    register,
)
from paddlelike.ops.kernels.detection.boxes import find_overlaps
from paddlelike.ops.kernels.detection.pairs import is_above
from paddlelike.ops.kernels.detection.suppression import (
    find_shape_overlaps,
    measure_shapes,
    rank_scores,
    suppress,
)
from paddlelike.ops.kernels.fast import boxes as fast_boxes
from paddlelike.ops.kernels.fast import polygons as fast_polygons
from paddlelike.ops.kernels.lod import make_lod, read_last_level
from paddlelike.ops.kernels.rounding import exp
from paddlelike.ops.kernels.sorting import argsort_descending, argsort_unstable

__all__ = ["LocalityAwareNms", "MatrixNms", "MulticlassNms", "MulticlassNms2", "NmsAttrs", "keep_boxes"]

_SIZES = (4, 8, 16, 24, 32)  # numbers of a box: its edges, or the corners of a polygon


class ChoiceAttrs(Attrs):
    """Attributes of every suppression: which scores count, and how many boxes of an image are kept."""

    background_label: int = Int(0)
    score_threshold: float = Float(REQUIRED)
    nms_top_k: int = Int(REQUIRED)
    keep_top_k: int = Int(REQUIRED)
    normalized: bool = Bool(True)


class NmsAttrs(ChoiceAttrs):
    """Attributes of a suppression by a threshold of the overlap."""

    nms_threshold: float = Float(0.3)
    nms_eta: float = Float(1.0)

    def suppress(self, boxes: Array) -> Array:
        """Return the indices of those of the sorted boxes that are kept."""
        return suppress(boxes, threshold=self.nms_threshold, eta=self.nms_eta, normalized=self.normalized)


class _Kept(NamedTuple):
    """The boxes kept of one image: equally many rows in each array."""

    label: Array
    score: Array
    box: Array
    place: Array  # of the box in the image


def _join(kept: list[_Kept]) -> _Kept:
    return _Kept(*(np.concatenate(part) for part in zip(*kept, strict=True)))


def _keep_best(kept: _Kept, limit: int) -> _Kept:
    """Return the boxes of the best scores, ``limit`` at most (-1: all), by label and then by score."""
    if not -1 < limit < len(kept.score):
        return kept
    best = argsort_descending(kept.score.astype(np.float32))[:limit]
    best = best[np.argsort(kept.label[best], kind="stable")]
    return _Kept(*(part[best] for part in kept))


def _write_rows(kept: _Kept) -> Array:
    """Return rows of label, score, box."""
    parts = (kept.label[:, None], kept.score[:, None], kept.box)
    return np.concatenate(parts, 1).astype(kept.box.dtype, copy=False)


def _infer(op: str, boxes: Spec, *, sequences: bool) -> Spec:
    """Return what Paddle declares for Out: as many rows as an image has boxes."""
    if len(boxes.shape) != 3:
        raise ShapeError(f"{op}: BBoxes has shape {boxes.shape}; it needs (N, M, 4) or (rows, classes, 4)")
    size = boxes.shape[2]
    # The rest is checked when it runs, as in Paddle: scripts declare scores of other shapes.
    return Spec((-1 if sequences else boxes.shape[1], size + 2 if size > 0 else -1), boxes.dtype)


def _check_operands(op: str, boxes: Array, scores: Array, *, ranks: tuple[int, ...]) -> None:
    """Raise ShapeError unless scores ``(N, classes, M)``, or (rows, classes) of sequences, fit the boxes."""
    shapes = f"BBoxes has shape {boxes.shape}, Scores {scores.shape}"
    if scores.ndim not in ranks:
        raise ShapeError(f"{op}: {shapes}; Scores needs {' or '.join(map(str, ranks))} dims")
    sizes = _SIZES if scores.ndim == 3 and op != "matrix_nms" else _SIZES[:1]
    if boxes.shape[2] not in sizes:
        raise ShapeError(
            f"{op}: {shapes}; the last dim of BBoxes must be one of {sizes}",
            hint="4 are xmin, ymin, xmax, ymax; more are the corners of a polygon",
        )
    dims = (len(scores), scores.shape[2]) if scores.ndim == 3 else scores.shape
    if boxes.shape[:2] != dims:
        raise ShapeError(
            f"{op}: {shapes}; expected (N, M, {boxes.shape[2]}) and (N, classes, M), or with sequences "
            "(rows, classes, 4) and (rows, classes)"
        )


@register
class MulticlassNms(OpDef):
    """``Out``: rows (label, score, box) of the boxes kept, those of an image one sequence.

    BBoxes is ``(N, M, 4)`` (or M polygons of 8, 16, 24 or 32 numbers) and Scores ``(N, classes, M)``; or both
    are sequences of boxes that every class has its own of: ``(rows, classes, 4)`` and ``(rows, classes)``.
    Of every class but ``background_label``, the ``nms_top_k`` best scores above ``score_threshold`` are
    suppressed; of an image the ``keep_top_k`` best boxes remain. Out is ``[[-1]]`` when no image has any.
    """

    type = "multiclass_nms"
    inputs = ("BBoxes", "Scores")
    attrs = NmsAttrs.table()
    context = True

    @staticmethod
    def infer(boxes: Spec, scores: Spec) -> Spec:
        return _infer("multiclass_nms", boxes, sequences=len(scores.shape) != 3)._replace(lod_level=1)

    @staticmethod
    def forward(ctx: Context, boxes: Array, scores: Array, *, attrs: NmsAttrs) -> Array:
        images, _ = _keep_in_images(ctx, boxes, scores, attrs)
        return _write_or_mark_empty(ctx, images)


@register
class MulticlassNms2(OpDef):
    """As multiclass_nms, with the index of each box kept; empty outputs when there is none.

    Index ``(rows, 1)`` int32 counts through the batch: ``image * M + box``; of sequences
    ``row * classes + label``.
    """

    type = "multiclass_nms2"
    inputs = ("BBoxes", "Scores")
    outputs = ("Out", "Index")
    attrs = NmsAttrs.table()
    context = True

    @staticmethod
    def infer(boxes: Spec, scores: Spec) -> tuple[Spec, Spec]:
        out = _infer("multiclass_nms2", boxes, sequences=len(scores.shape) != 3)._replace(lod_level=1)
        return out, Spec((out.shape[0], 1), VarType.INT64, 1)  # int32, but Paddle's layers declare it so

    @staticmethod
    def forward(ctx: Context, boxes: Array, scores: Array, *, attrs: NmsAttrs) -> tuple[Array, Array]:
        images, firsts = _keep_in_images(ctx, boxes, scores, attrs)
        return _write_with_index(ctx, images, firsts)


def _keep_in_images(
    ctx: Context, boxes: Array, scores: Array, attrs: NmsAttrs
) -> tuple[list[_Kept], list[int]]:
    """Return the boxes kept of each image, and where its indices start."""
    _check_operands(ctx.op.type, boxes, scores, ranks=(2, 3))
    starts = None if scores.ndim == 3 else read_last_level(ctx, "BBoxes", len(boxes))
    return _keep_in_parts(boxes, scores, starts, attrs)


def keep_boxes(
    boxes: Array, scores: Array, starts: Array | None, attrs: NmsAttrs
) -> tuple[Array, Array, Array]:
    """Return rows (label, score, box) of all images, the indices of their boxes, and the count of each image.

    ``starts``: where the boxes of each image begin, if every class has its own.
    """
    images, firsts = _keep_in_parts(boxes, scores, starts, attrs)
    index = np.concatenate([kept.place + first for kept, first in zip(images, firsts, strict=True)])
    counts = np.array([len(kept.label) for kept in images], np.int32)
    return np.concatenate([_write_rows(kept) for kept in images]), index.astype(np.int32)[:, None], counts


def _keep_in_parts(
    boxes: Array, scores: Array, offsets: Array | None, attrs: NmsAttrs
) -> tuple[list[_Kept], list[int]]:
    if offsets is None:
        firsts = [image * boxes.shape[1] for image in range(len(scores))]
        return [_keep_shared(*pair, attrs) for pair in zip(boxes, scores, strict=True)], firsts
    starts = offsets.tolist()
    parts = [slice(*pair) for pair in pairwise(starts)]
    images = [_keep_own(boxes[part], scores[part], attrs) for part in parts]
    return images, [start * scores.shape[1] for start in starts[:-1]]


def _labels(classes: int, attrs: ChoiceAttrs) -> list[int]:
    return [label for label in range(classes) if label != attrs.background_label]


def _keep_shared(boxes: Array, scores: Array, attrs: NmsAttrs) -> _Kept:
    """Return what is kept of boxes ``(M, size)`` that all classes share; scores are ``(classes, M)``."""
    kept = [_no_boxes(boxes)]
    for label in _labels(len(scores), attrs):
        ranked = rank_scores(scores[label], attrs.score_threshold, attrs.nms_top_k)
        index = ranked[attrs.suppress(boxes[ranked])]
        kept.append(_Kept(np.full(len(index), label), scores[label, index], boxes[index], index))
    return _keep_best(_join(kept), attrs.keep_top_k)


def _keep_own(boxes: Array, scores: Array, attrs: NmsAttrs) -> _Kept:
    """Return what is kept of boxes ``(rows, classes, 4)``, in the order of the rows within each class."""
    kept = [_no_boxes(boxes)]
    for label in _labels(scores.shape[1], attrs):
        ranked = rank_scores(scores[:, label], attrs.score_threshold, attrs.nms_top_k)
        row = np.sort(ranked[attrs.suppress(boxes[ranked, label])])
        index = row * scores.shape[1] + label
        kept.append(_Kept(np.full(len(row), label), scores[row, label], boxes[row, label], index))
    best = _keep_best(_join(kept), attrs.keep_top_k)
    order = np.lexsort((best.place, best.label))
    return _Kept(*(part[order] for part in best))


def _no_boxes(boxes: Array) -> _Kept:
    none = np.empty(0, boxes.dtype)
    return _Kept(np.empty(0, np.intp), none, none.reshape(0, boxes.shape[-1]), np.empty(0, np.intp))


def _write_or_mark_empty(ctx: Context, images: list[_Kept]) -> Array:
    """Return the rows of all images, or ``[[-1]]`` where there are none, and set the LoD of Out."""
    out = np.concatenate([_write_rows(kept) for kept in images])
    lengths = np.array([len(kept.label) for kept in images], np.int64)
    if not len(out):
        out, lengths = np.full((1, 1), -1, out.dtype), np.ones(1, np.int64)
    ctx.set_lod("Out", [make_lod(lengths)])
    return out


def _write_with_index(ctx: Context, images: list[_Kept], firsts: list[int]) -> tuple[Array, Array]:
    """Return the rows of all images and the indices of their boxes, and set the LoD of both."""
    out = np.concatenate([_write_rows(kept) for kept in images])
    index = np.concatenate([kept.place + first for kept, first in zip(images, firsts, strict=True)])
    lod = [make_lod(np.array([len(kept.label) for kept in images], np.int64))]
    ctx.set_lod("Out", lod)
    ctx.set_lod("Index", lod)
    return out, index.astype(np.int32).reshape(-1, 1)


@register
class LocalityAwareNms(OpDef):
    """As multiclass_nms, after neighbours in the order of the boxes were merged.

    BBoxes ``(N, M, 4)`` or polygons, Scores ``(N, 1, M)``. A box that overlaps the one merged last by more
    than ``nms_threshold`` goes into it: the mean of both by their scores, with the sum of the scores.
    """

    type = "locality_aware_nms"
    inputs = ("BBoxes", "Scores")
    attrs = NmsAttrs.table(background_label=Int(-1))
    context = True

    @staticmethod
    def infer(boxes: Spec, scores: Spec) -> Spec:
        return _infer("locality_aware_nms", boxes, sequences=False)._replace(lod_level=NO_LOD)

    @staticmethod
    def forward(ctx: Context, boxes: Array, scores: Array, *, attrs: NmsAttrs) -> Array:
        _check_operands("locality_aware_nms", boxes, scores, ranks=(3,))
        boxes, scores = boxes.copy(), scores.copy()
        return _write_or_mark_empty(
            ctx, [_keep_merged(*pair, attrs) for pair in zip(boxes, scores, strict=True)]
        )


def _keep_merged(boxes: Array, scores: Array, attrs: NmsAttrs) -> _Kept:
    """Return what is kept of an image; ``boxes`` and ``scores`` are overwritten with the merged ones."""
    labels, indices = [], []
    for label in _labels(len(scores), attrs):
        apart = _merge_neighbours(boxes, scores[label], attrs)
        index = apart[rank_scores(scores[label, apart], attrs.score_threshold, attrs.nms_top_k)]
        indices.append(index[attrs.suppress(boxes[index])])
        labels.append(np.full(len(indices[-1]), label))
    # A class read boxes that the classes after it have merged on.
    kept = [_no_boxes(boxes)]
    for same, index in zip(labels, indices, strict=True):
        kept.append(_Kept(same, scores[same, index], boxes[index], index))
    return _keep_best(_join(kept), attrs.keep_top_k)


def _merge_neighbours(boxes: Array, scores: Array, attrs: NmsAttrs) -> Array:
    """Merge boxes in place, and return the indices of those that the others went into."""
    threshold = boxes.dtype.type(np.float32(attrs.nms_threshold))
    is_box = boxes.shape[1] == 4
    kernel = fast_boxes.merge_boxes if is_box else fast_polygons.merge_polygons
    if (merge := kernel.choose(len(boxes), boxes, scores)) is not None and np.isfinite(boxes).all():
        index = np.empty(len(boxes), np.intp)
        edges = (boxes.dtype.type(not attrs.normalized),) if is_box else ()
        return index[: merge(boxes, scores, threshold, *edges, index)]
    apart = [0] if len(boxes) else []
    rows, limit = boxes.tolist(), float(threshold)
    for i in range(1, len(boxes)):
        last = apart[-1]
        same = is_above(rows[i], rows[last], limit, normalized=attrs.normalized)
        if same is None:
            pair = measure_shapes(boxes[[i, last]], normalized=attrs.normalized)
            same = find_shape_overlaps(pair, pair)[0, 1] > threshold
        if same:
            total = scores[i] + scores[last]
            boxes[last] = (boxes[i] * scores[i] + boxes[last] * scores[last]) / total
            scores[last], rows[last] = total, boxes[last].tolist()
        else:
            apart.append(i)
    return np.array(apart, np.intp)


class MatrixNmsAttrs(ChoiceAttrs):
    """Attributes of matrix_nms."""

    post_threshold: float = Float(0.0)
    use_gaussian: bool = Bool(False)
    gaussian_sigma: float = Float(2.0)


@register
class MatrixNms(OpDef):
    """``Out``: rows (label, score, box) of an image, the best first, scores lowered by overlaps.

    BBoxes ``(N, M, 4)``, Scores ``(N, classes, M)``; Index ``(rows, 1)`` int32 is ``image * M + box``. A
    score is multiplied by the least, over the better boxes of its class, of ``(1 - overlap) / (1 - worst)``,
    where ``worst`` is the greatest overlap of the better box with one better still; with ``use_gaussian``, of
    ``exp((worst**2 - overlap**2) * gaussian_sigma)``. Boxes whose score is then above ``post_threshold``
    remain.
    """

    type = "matrix_nms"
    inputs = ("BBoxes", "Scores")
    outputs = ("Out", "Index")
    attrs = MatrixNmsAttrs.table()
    context = True

    @staticmethod
    def infer(boxes: Spec, scores: Spec) -> tuple[Spec, Spec]:
        out = _infer("matrix_nms", boxes, sequences=False)._replace(lod_level=1)
        return out, Spec((out.shape[0], 1), VarType.INT64, 1)  # int32, but Paddle's layers declare it so

    @staticmethod
    def forward(ctx: Context, boxes: Array, scores: Array, *, attrs: MatrixNmsAttrs) -> tuple[Array, Array]:
        _check_operands("matrix_nms", boxes, scores, ranks=(3,))
        images = [_keep_decayed(*pair, attrs) for pair in zip(boxes, scores, strict=True)]
        return _write_with_index(ctx, images, [i * boxes.shape[1] for i in range(len(boxes))])


def _keep_decayed(boxes: Array, scores: Array, attrs: MatrixNmsAttrs) -> _Kept:
    kept = [_no_boxes(boxes)]
    for label in _labels(len(scores), attrs):
        able = np.flatnonzero(scores[label] > scores.dtype.type(np.float32(attrs.score_threshold)))
        limit = len(able) if attrs.nms_top_k < 0 else attrs.nms_top_k
        index = able[argsort_unstable(scores[label, able], first=limit)]
        if not len(index):
            continue
        score = _decay(boxes[index], attrs) * scores[label, index]
        stays = score > score.dtype.type(np.float32(attrs.post_threshold))
        index = index[stays]
        kept.append(_Kept(np.full(len(index), label), score[stays], boxes[index], index))
    found = _join(kept)
    limit = len(found.score) if attrs.keep_top_k < 0 else attrs.keep_top_k
    best = argsort_unstable(found.score, first=limit)
    return _Kept(*(part[best] for part in found))


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
