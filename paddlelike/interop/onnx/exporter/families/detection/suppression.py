"""Suppression of boxes that overlap better ones."""

from __future__ import annotations

from typing import Final

import numpy as np

from paddlelike.interop.onnx.exporter.families.detection.boxes import find_overlaps
from paddlelike.interop.onnx.exporter.graph import Step, converts

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
        shown = step.add("Add", boxes, step.like([0.0, 0.0, 1.0, 1.0], "BBoxes"))
    limits = [step.constant(_MOST if most < 0 else most, np.int64)]
    limits += [step.constant(step.attr(name), np.float32) for name in ("nms_threshold", "score_threshold")]
    chosen = step.add("NonMaxSuppression", shown, scores, *limits)  # (K, 3): image, class, box
    images, classes, places = step.add_several("Split", chosen, step.ints(1, 1, 1), count=3, axis=1)
    values = step.add("GatherND", scores, chosen)
    count = step.add("Shape", values)
    values, order = step.add_several("TopK", values, count, count=2)
    images, classes, places = (step.add("Gather", one, order, axis=0) for one in (images, classes, places))
    total = step.squeeze(step.dims(scores, 0, 1), 0)
    each = step.add("Range", step.constant(0, np.int64), total, step.constant(1, np.int64))
    owned = step.add("Equal", images, each)  # (K, N)
    if step.attr("keep_top_k") >= 0:
        so_far = step.add("CumSum", step.cast(owned, "int64"), step.constant(0, np.int64))
        within = step.add("Less", so_far, step.constant(step.attr("keep_top_k") + 1, np.int64))
        owned = step.add("And", owned, within)
    kept = step.reduce("ReduceMax", step.cast(owned, "int32"), [1], keep=False)
    kept = step.cast(kept, "bool")
    rows = [step.add("Compress", one, kept, axis=0) for one in (images, classes, places, values)]
    images, classes, places, values = rows
    left = step.add("Shape", values)
    rank = step.add("Add", step.add("Mul", images, step.dims(scores, 1, 2)), classes)
    here = step.add("Range", step.constant(0, np.int64), step.squeeze(left, 0), step.constant(1, np.int64))
    rank = step.add("Add", step.add("Mul", step.reshape(rank, -1), left), here)
    _, order = step.add_several("TopK", rank, left, count=2, largest=0)
    picked = step.add("GatherND", boxes, step.add("Concat", images, places, axis=1))
    labels = step.cast(classes, step.dtype("BBoxes"))
    table = step.add("Concat", labels, step.unsqueeze(values, 1), picked, axis=1)
    lengths = step.reduce("ReduceSum", step.cast(owned, "int64"), [0], keep=False)
    places = step.add("Add", step.add("Mul", images, step.dims(boxes, 1, 2)), places)  # among those of all
    kept, numbers = (step.add("Gather", one, order, axis=0) for one in (table, places))
    _give_kept(step, kept, numbers, lengths)


def _limit_scores(step: Step) -> str:
    """Return the scores, with the lowest value for the background and for boxes after the first
    ``nms_top_k``.
    """
    scores, (_, classes, boxes) = step.input("Scores"), step.shape("Scores")
    lowest = step.like(np.finfo(step.dtype("Scores")).min, "Scores")
    most, background = step.attr("nms_top_k"), step.attr("background_label")
    if most >= 0 and not 0 <= boxes <= most:
        count = step.dims(scores, 2, 3)
        best, _ = step.add_several("TopK", scores, step.add("Min", count, step.ints(most)), count=2)
        least = step.reduce("ReduceMin", best, [2], keep=True)
        scores = step.add("Where", step.add("Less", scores, least), lowest, scores)
    if 0 <= background < classes:
        mask = (np.arange(classes) == background)[None, :, None]
        scores = step.add("Where", step.constant(mask, np.bool_), lowest, scores)
    return scores


def _give_kept(step: Step, rows: str, places: str, lengths: str) -> None:
    """Set the output to the kept boxes, image by image. Paddle 2 counts them in an output, Fluid in a LoD."""
    counts = step.op.output("NmsRoisNum") or step.op.output("RoisNum")
    lod = None if counts else lengths
    step.give("Out", rows, lengths=lod)
    if step.op.output("Index"):
        step.give("Index", step.cast(places, step.variable("Index").dtype), lengths=lod)
    if counts:
        slot = "NmsRoisNum" if step.op.output("NmsRoisNum") else "RoisNum"
        step.give(slot, step.cast(lengths, "int32"))


@converts("matrix_nms")
def _convert_matrix_nms(step: Step) -> None:
    """Reduce each score by the overlaps with better boxes of the same class and image."""
    boxes, scores, classes = step.input("BBoxes"), step.input("Scores"), step.shape("Scores")[1]
    most, best = step.attr("nms_top_k"), step.dims(scores, 2, 3)
    if most >= 0:
        best = step.add("Min", best, step.ints(most))
    scores, index = step.add_several("TopK", scores, best, count=2)  # (N, classes, K)
    index = step.unsqueeze(index, 3)
    chosen = step.add("GatherND", boxes, index, batch_dims=1)  # (N, classes, K, 4)
    edge = step.like(0.0 if step.attr("normalized") else 1.0, "BBoxes")
    one, zero = step.like(1.0, "BBoxes"), step.like(0.0, "BBoxes")
    end = step.squeeze(best, 0)
    order = step.add("Range", step.constant(0, np.int64), end, step.constant(1, np.int64))
    is_better = step.add("Less", step.unsqueeze(order, 0), step.unsqueeze(order, 1))
    overlaps = step.add("Where", is_better, find_overlaps(step, chosen, chosen, 3, edge, touching=True), zero)
    worst = step.unsqueeze(step.reduce("ReduceMax", overlaps, [3], keep=False), 2)
    if step.attr("use_gaussian"):
        squares = (step.add("Mul", each, each) for each in (worst, overlaps))
        sigma = step.like(step.attr("gaussian_sigma"), "BBoxes")
        factors = step.add("Exp", step.add("Mul", step.add("Sub", *squares), sigma))
    else:
        factors = step.add("Div", step.add("Sub", one, overlaps), step.add("Sub", one, worst))
    factors = step.reduce("ReduceMin", step.add("Where", is_better, factors, one), [3], keep=False)
    lowered = step.add("Mul", step.add("Min", factors, one), scores)
    stays = step.add("Greater", scores, step.like(step.attr("score_threshold"), "Scores"))
    limit = step.like(step.attr("post_threshold"), "Scores")
    stays = step.add("And", stays, step.add("Greater", lowered, limit))
    if 0 <= step.attr("background_label") < classes:
        foreground = np.arange(classes)[None, :, None] != step.attr("background_label")
        stays = step.add("And", stays, step.constant(foreground, np.bool_))
    lowest = step.like(np.finfo(step.dtype("Scores")).min, "Scores")
    flat = step.reshape(step.add("Where", stays, lowered, lowest), 0, -1)
    total = step.dims(flat, 1, 2)
    if step.attr("keep_top_k") >= 0:
        total = step.add("Min", total, step.ints(step.attr("keep_top_k")))
    values, ranks = step.add_several("TopK", flat, total, count=2)  # (N, T)
    kept = step.add("Greater", values, lowest)
    labels = step.cast(step.add("Div", ranks, end), step.dtype("BBoxes"))
    place = step.unsqueeze(ranks, 2)
    flat_boxes, flat_index = step.reshape(chosen, 0, -1, 4), step.reshape(index, 0, -1)
    edges = step.add("GatherND", flat_boxes, place, batch_dims=1)
    rows = step.add("Concat", step.unsqueeze(labels, 2), step.unsqueeze(values, 2), edges, axis=2)
    places = step.add("GatherND", flat_index, place, batch_dims=1)
    images = step.squeeze(step.dims(boxes, 0, 1), 0)
    firsts = step.add("Range", step.constant(0, np.int64), images, step.constant(1, np.int64))
    places = step.add("Add", places, step.unsqueeze(step.add("Mul", firsts, step.dims(boxes, 1, 2)), 1))
    mask = step.reshape(kept, -1)
    rows = step.add("Compress", step.reshape(rows, -1, 6), mask, axis=0)
    places = step.add("Compress", step.reshape(places, -1, 1), mask, axis=0)
    _give_kept(step, rows, places, step.reduce("ReduceSum", step.cast(kept, "int64"), [1], keep=False))


@converts("nms")
def _convert_nms(step: Step) -> str:
    """Keep the boxes, best first, that overlap no better one by more than the threshold."""
    boxes = step.input("Boxes")
    count = step.dims(boxes, 0, 1)
    end = step.reshape(count)
    falling = step.add("Neg", step.add("Range", step.constant(0, np.int64), end, step.constant(1, np.int64)))
    scores = step.unsqueeze(step.cast(falling, np.float32), 0, 1)
    threshold = step.constant([step.attr("iou_threshold")], np.float32)
    found = step.add("NonMaxSuppression", step.unsqueeze(boxes, 0), scores, count, threshold)
    return step.reshape(step.add("Slice", found, step.ints(2), step.ints(3), step.ints(1)), -1)
