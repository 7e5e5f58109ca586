"""Suppression of boxes that overlap better ones."""

from __future__ import annotations

from typing import Final

import numpy as np

from paddlelike.interop.onnx.exporter.families.detection.boxes import find_overlaps
from paddlelike.interop.onnx.exporter.graph import Step, Value, converts

_MOST: Final = np.iinfo(np.int64).max


@converts("multiclass_nms", "multiclass_nms2", "multiclass_nms3")
def _convert_multiclass_nms(step: Step) -> None:
    """Suppress boxes. An image without boxes has no row; Fluid writes a row of -1 for it."""
    if step.rank("Scores") != 3 or step.shape("BBoxes")[2] != 4 or step.attr("nms_eta") != 1:
        step.refuse("its boxes are sequences or polygons, or nms_eta is not 1")
    step.refuse_inputs("RoisNum")
    boxes, scores = step.input("BBoxes"), _limit_scores(step)
    most = step.attr("nms_top_k")
    shown = boxes
    if not step.attr("normalized"):  # the last pixel counts
        shown = boxes + step.like([0.0, 0.0, 1.0, 1.0], "BBoxes")
    limits = [step.constant(_MOST if most < 0 else most, np.int64)]
    limits += [step.constant(step.attr(name), np.float32) for name in ("nms_threshold", "score_threshold")]
    chosen = step.add("NonMaxSuppression", shown, scores, *limits)  # (K, 3): image, class, box
    images, classes, places = step.add_several("Split", chosen, step.ints(1, 1, 1), count=3, axis=1)
    values = step.add("GatherND", scores, chosen)
    count = values.dims()
    values, order = step.add_several("TopK", values, count, count=2)
    images, classes, places = (one.take(order) for one in (images, classes, places))
    total = scores.dims(0, 1).squeeze(0)
    each = total.range()
    owned = images.equals(each)  # (K, N)
    if step.attr("keep_top_k") >= 0:
        so_far = step.add("CumSum", owned.cast("int64"), step.scalar(0))
        within = so_far < step.scalar(step.attr("keep_top_k") + 1)
        owned = owned & within
    kept = owned.cast("int32").reduce("ReduceMax", 1)
    kept = kept.cast("bool")
    rows = [one[kept] for one in (images, classes, places, values)]
    images, classes, places, values = rows
    left = values.dims()
    rank = images * scores.dims(1, 2) + classes
    here = left.squeeze(0).range()
    rank = rank.reshape(-1) * left + here
    _, order = step.add_several("TopK", rank, left, count=2, largest=0)
    picked = step.add("GatherND", boxes, step.concat(images, places, axis=1))
    labels = classes.cast(step.dtype("BBoxes"))
    table = step.concat(labels, values.unsqueeze(1), picked, axis=1)
    lengths = owned.cast("int64").reduce("ReduceSum", 0)
    places = images * boxes.dims(1, 2) + places  # among those of all
    kept, numbers = (one.take(order) for one in (table, places))
    _give_kept(step, kept, numbers, lengths)


def _limit_scores(step: Step) -> Value:
    """Return the scores, with the lowest value for the background and for boxes after the first
    ``nms_top_k``.
    """
    scores, (_, classes, boxes) = step.input("Scores"), step.shape("Scores")
    lowest = step.like(np.finfo(step.dtype("Scores")).min, "Scores")
    most, background = step.attr("nms_top_k"), step.attr("background_label")
    if most >= 0 and not 0 <= boxes <= most:
        count = scores.dims(2, 3)
        best, _ = step.add_several("TopK", scores, count.minimum(most), count=2)
        least = best.reduce("ReduceMin", 2, keep=True)
        scores = (scores < least).where(lowest, scores)
    if 0 <= background < classes:
        mask = (np.arange(classes) == background)[None, :, None]
        scores = step.constant(mask, np.bool_).where(lowest, scores)
    return scores


def _give_kept(step: Step, rows: Value, places: Value, lengths: Value) -> None:
    """Set the output to the kept boxes, image by image. Paddle 2 counts them in an output, Fluid in a LoD."""
    counts = step.op.output("NmsRoisNum") or step.op.output("RoisNum")
    lod = None if counts else lengths
    step.give("Out", rows, lengths=lod)
    if step.op.output("Index"):
        step.give("Index", places.cast(step.variable("Index").dtype), lengths=lod)
    if counts:
        slot = "NmsRoisNum" if step.op.output("NmsRoisNum") else "RoisNum"
        step.give(slot, lengths.cast("int32"))


@converts("matrix_nms")
def _convert_matrix_nms(step: Step) -> None:
    """Reduce each score by the overlaps with better boxes of the same class and image."""
    boxes, scores, classes = step.input("BBoxes"), step.input("Scores"), step.shape("Scores")[1]
    most, best = step.attr("nms_top_k"), scores.dims(2, 3)
    if most >= 0:
        best = best.minimum(most)
    scores, index = step.add_several("TopK", scores, best, count=2)  # (N, classes, K)
    index = index.unsqueeze(3)
    chosen = step.add("GatherND", boxes, index, batch_dims=1)  # (N, classes, K, 4)
    edge = step.like(0.0 if step.attr("normalized") else 1.0, "BBoxes")
    one, zero = step.like(1.0, "BBoxes"), step.like(0.0, "BBoxes")
    end = best.squeeze(0)
    order = end.range()
    is_better = order.unsqueeze(0) < order.unsqueeze(1)
    overlaps = is_better.where(find_overlaps(step, chosen, chosen, 3, edge, touching=True), zero)
    worst = overlaps.reduce("ReduceMax", 3).unsqueeze(2)
    if step.attr("use_gaussian"):
        squares = (each * each for each in (worst, overlaps))
        sigma = step.like(step.attr("gaussian_sigma"), "BBoxes")
        factors = step.add("Exp", step.add("Sub", *squares) * sigma)
    else:
        factors = (one - overlaps) / (one - worst)
    factors = is_better.where(factors, one).reduce("ReduceMin", 3)
    lowered = factors.minimum(one) * scores
    stays = scores > step.like(step.attr("score_threshold"), "Scores")
    limit = step.like(step.attr("post_threshold"), "Scores")
    stays = stays & (lowered > limit)
    if 0 <= step.attr("background_label") < classes:
        foreground = np.arange(classes)[None, :, None] != step.attr("background_label")
        stays = stays & step.constant(foreground, np.bool_)
    lowest = step.like(np.finfo(step.dtype("Scores")).min, "Scores")
    flat = stays.where(lowered, lowest).reshape(0, -1)
    total = flat.dims(1, 2)
    if step.attr("keep_top_k") >= 0:
        total = total.minimum(step.attr("keep_top_k"))
    values, ranks = step.add_several("TopK", flat, total, count=2)  # (N, T)
    kept = values > lowest
    labels = (ranks / end).cast(step.dtype("BBoxes"))
    place = ranks.unsqueeze(2)
    flat_boxes, flat_index = chosen.reshape(0, -1, 4), index.reshape(0, -1)
    edges = step.add("GatherND", flat_boxes, place, batch_dims=1)
    rows = step.concat(labels.unsqueeze(2), values.unsqueeze(2), edges, axis=2)
    places = step.add("GatherND", flat_index, place, batch_dims=1)
    images = boxes.dims(0, 1).squeeze(0)
    firsts = images.range()
    places = places + (firsts * boxes.dims(1, 2)).unsqueeze(1)
    mask = kept.reshape(-1)
    rows = rows.reshape(-1, 6)[mask]
    places = places.reshape(-1, 1)[mask]
    _give_kept(step, rows, places, kept.cast("int64").reduce("ReduceSum", 1))


@converts("nms")
def _convert_nms(step: Step) -> Value:
    """Keep the boxes, best first, that overlap no better one by more than the threshold."""
    boxes = step.input("Boxes")
    count = boxes.dims(0, 1)
    end = count.reshape()
    falling = -end.range()
    scores = falling.cast(np.float32).unsqueeze(0, 1)
    threshold = step.constant([step.attr("iou_threshold")], np.float32)
    found = step.add("NonMaxSuppression", boxes.unsqueeze(0), scores, count, threshold)
    return step.add("Slice", found, step.ints(2), step.ints(3), step.ints(1)).reshape(-1)
