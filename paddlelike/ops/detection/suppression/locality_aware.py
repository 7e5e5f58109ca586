"""Suppression after merging neighbouring boxes (Zhou et al., EAST, 2017)."""

from __future__ import annotations

import numpy as np

from paddlelike.framework.opdef import NO_LOD, Array, Context, Int, OpDef, Spec, register
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
)
from paddlelike.ops.kernels.detection.pairs import is_above
from paddlelike.ops.kernels.detection.suppression import find_shape_overlaps, measure_shapes, rank_scores
from paddlelike.ops.kernels.fast import boxes as fast_boxes, polygons as fast_polygons


@register
class LocalityAwareNms(OpDef):
    """Suppression as in multiclass_nms, after merging boxes with their predecessors.

    BBoxes ``(N, M, 4)`` or polygons, Scores ``(N, 1, M)``. A box that overlaps the last merged box by
    more than ``nms_threshold`` is merged into it: the result is the mean of both, weighted by their
    scores, and has the sum of the scores.
    """

    type = "locality_aware_nms"
    inputs = ("BBoxes", "Scores")
    fluid_order = "background_label score_threshold nms_top_k nms_threshold nms_eta keep_top_k normalized"
    attrs = NmsAttrs.table(background_label=Int(-1))

    @staticmethod
    def infer(boxes: Spec, scores: Spec) -> Spec:
        return infer_rows("locality_aware_nms", boxes, sequences=False)._replace(lod_level=NO_LOD)

    @staticmethod
    def forward(ctx: Context, boxes: Array, scores: Array, *, attrs: NmsAttrs) -> Array:
        check_operands("locality_aware_nms", boxes, scores, ranks=(3,))
        boxes, scores = boxes.copy(), scores.copy()
        images = [_keep_merged(*pair, attrs) for pair in zip(boxes, scores, strict=True)]
        return write_or_mark_empty(ctx, images or [no_boxes(boxes)])


def _keep_merged(boxes: Array, scores: Array, attrs: NmsAttrs) -> Kept:
    """Merge the boxes of an image, with their scores, in place; return the boxes that are kept."""
    labels, indices = [], []
    for label in list_labels(len(scores), attrs):
        apart = _merge_neighbours(boxes, scores[label], attrs)
        index = apart[rank_scores(scores[label, apart], attrs.score_threshold, attrs.nms_top_k)]
        indices.append(index[attrs.suppress(boxes[index])])
        labels.append(np.full(len(indices[-1]), label))
    # The boxes are read last: later classes have merged them further.
    kept = [no_boxes(boxes)]
    for same, index in zip(labels, indices, strict=True):
        kept.append(Kept(same, scores[same, index], boxes[index], index))
    return keep_best(join(kept), attrs.keep_top_k)


def _merge_neighbours(boxes: Array, scores: Array, attrs: NmsAttrs) -> Array:
    """Merge boxes in place, and return the indices of the merged boxes."""
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
