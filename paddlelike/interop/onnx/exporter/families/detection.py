"""Anchors, boxes and their suppression.

What prior_box and its kin compute depends on sizes alone: where those are known, it is a constant.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from paddlelike.framework.opdef import registry
from paddlelike.interop.onnx.exporter.converters import converts
from paddlelike.interop.onnx.exporter.graph import Step
from paddlelike.interop.onnx.exporter.sequences import find_owners

_MOST: Final = np.iinfo(np.int64).max


@converts("anchor_generator", "density_prior_box", "prior_box")
def _convert_anchors(step: Step) -> None:
    op = registry.find(step.op.type)
    images = []
    for slot in op.input_slots:
        shape = step.shape(slot.name)
        if -1 in shape[2:]:
            step.refuse(f"{slot.name} has shape {shape}: its height and width are not known")
        images.append(np.empty((1, 1, *shape[2:]), step.dtype(slot.name)))
    found = op.forward(*images, **op.make_forward_keywords(step.op.attrs, None))
    for slot, value in zip(op.output_slots, found, strict=True):
        step.give(slot.name, step.constant(value, value.dtype))


def _edges(step: Step, boxes: str) -> list[str]:
    """Return xmin, ymin, xmax, ymax, each with a last dim of 1."""
    return step.add_several("Split", boxes, step.ints(1, 1, 1, 1), count=4, axis=-1)


@converts("box_coder")
def _convert_box_coder(step: Step) -> None:
    """Centers and sides, as shares of the anchors'; sides as logarithms."""
    encodes, axis = step.attr("code_type") == "encode_center_size", step.attr("axis")
    edge = step.like(0.0 if step.attr("box_normalized") else 1.0, "PriorBox")
    two = step.like(2.0, "PriorBox")
    prior, target = step.input("PriorBox"), step.input("TargetBox")
    place = 0 if encodes or axis == 0 else 1
    prior = step.unsqueeze(prior, place)
    variances = None
    if step.has("PriorBoxVar"):
        variances = step.unsqueeze(step.input("PriorBoxVar"), place)
    elif step.attr("variance"):
        variances = step.like(step.attr("variance"), "PriorBox")
    if encodes:
        target = step.unsqueeze(target, 1)
    elif variances is not None:
        target = step.add("Mul", target, variances)
    ours, theirs = _edges(step, prior), _edges(step, target)
    firsts, lasts = [], []
    for i in (0, 1):
        side = step.add("Add", step.add("Sub", ours[i + 2], ours[i]), edge)
        center = step.add("Add", ours[i], step.add("Div", side, two))
        if encodes:
            middle = step.add("Div", step.add("Add", theirs[i + 2], theirs[i]), two)
            length = step.add("Add", step.add("Sub", theirs[i + 2], theirs[i]), edge)
            firsts.append(step.add("Div", step.add("Sub", middle, center), side))
            lasts.append(step.add("Log", step.add("Abs", step.add("Div", length, side))))
        else:
            middle = step.add("Add", step.add("Mul", theirs[i], side), center)
            half = step.add("Div", step.add("Mul", step.add("Exp", theirs[i + 2]), side), two)
            firsts.append(step.add("Sub", middle, half))
            lasts.append(step.add("Sub", step.add("Add", middle, half), edge))
    out = step.add("Concat", *firsts, *lasts, axis=-1)
    if encodes and variances is not None:
        out = step.add("Div", out, variances)
    step.give("OutputBox", out)


@converts("iou_similarity")
def _convert_iou(step: Step) -> None:
    edge = step.like(0.0 if step.attr("box_normalized") else 1.0)
    mine = _edges(step, step.unsqueeze(step.input(), 1))
    theirs = _edges(step, step.unsqueeze(step.input("Y"), 0))
    sides: list[list[str]] = [[], [], []]
    for i in (0, 1):
        high, low = step.add("Min", mine[i + 2], theirs[i + 2]), step.add("Max", mine[i], theirs[i])
        common = step.add("Add", step.add("Sub", high, low), edge)
        sides[0].append(step.add("Max", common, step.like(0)))
        for k, box in ((1, mine), (2, theirs)):
            sides[k].append(step.add("Add", step.add("Sub", box[i + 2], box[i]), edge))
    shared, first, second = (step.add("Mul", *pair) for pair in sides)
    union = step.add("Sub", step.add("Add", first, second), shared)
    step.give("Out", step.squeeze(step.add("Div", shared, union), 2))


@converts("yolo_box")
def _convert_yolo_box(step: Step) -> None:
    """Both axes are divided by the height of the grid, as Paddle does."""
    sides = np.array(step.attr("anchors"), np.float64).reshape(-1, 2)
    anchors, classes, (height, width) = len(sides), step.attr("class_num"), step.shape()[2:]
    if min(height, width) < 0:
        step.refuse(f"X has shape {step.shape()}: its height and width are not known")
    x = step.reshape(step.input(), 0, anchors, 5 + classes, height, width)
    parts = step.add_several("Split", x, step.ints(2, 2, 1, classes), count=4, axis=2)
    scale = step.attr("scale_x_y", 1.0)
    centers = step.add("Mul", step.add("Sigmoid", parts[0]), step.like(scale))
    grid = np.stack(np.meshgrid(np.arange(width), np.arange(height))) - 0.5 * (scale - 1)
    centers = step.add("Add", centers, step.like(grid[None, None]))
    image = step.cast(step.input("ImgSize"), step.dtype())  # height, width
    image = step.add("Gather", image, step.ints(1, 0), axis=1)
    image = step.reshape(image, 0, 1, 2, 1, 1)
    centers = step.add("Div", step.add("Mul", centers, image), step.like(height))
    lengths = step.add("Mul", step.add("Exp", parts[1]), step.like(sides[None, :, :, None, None]))
    pixels = step.like(step.attr("downsample_ratio", 32) * height)
    half = step.add("Div", step.add("Div", step.add("Mul", lengths, image), pixels), step.like(2))
    low, high = step.add("Sub", centers, half), step.add("Add", centers, half)
    if step.attr("clip_bbox", True):
        low = step.add("Max", low, step.like(0))
        high = step.add("Min", high, step.add("Sub", image, step.like(1)))
    objectness = step.add("Sigmoid", parts[2])
    hidden = step.add("Less", objectness, step.like(step.attr("conf_thresh")))
    boxes = step.add("Where", hidden, step.like(0), step.add("Concat", low, high, axis=2))
    scores = step.add("Mul", step.add("Sigmoid", parts[3]), objectness)
    scores = step.add("Where", hidden, step.like(0), scores)
    for slot, value, count in (("Boxes", boxes, 4), ("Scores", scores, classes)):
        step.give(slot, step.reshape(step.transpose(value, [0, 1, 3, 4, 2]), 0, -1, count))


@converts("roi_align")
def _convert_roi_align(step: Step) -> None:
    if step.has("RoisNum"):
        counts = step.cast(step.input("RoisNum"), "int64")
    elif step.has("RoisLod"):
        step.refuse("input RoisLod is given")
    else:
        counts = step.lengths("ROIs")
    options = {
        "output_height": step.attr("pooled_height"),
        "output_width": step.attr("pooled_width"),
        "spatial_scale": float(step.attr("spatial_scale")),
        "sampling_ratio": max(step.attr("sampling_ratio"), 0),
    }
    aligned = bool(step.attr("aligned", False))
    if step.graph.opset >= 16:
        options["coordinate_transformation_mode"] = "half_pixel" if aligned else "output_half_pixel"
    elif aligned:
        step.refuse("aligned needs opset 16")
    owners, _ = find_owners(step.graph, counts)
    step.give("Out", step.add("RoiAlign", step.input(), step.input("ROIs"), owners, **options))


@converts("multiclass_nms", "multiclass_nms2")
def _convert_multiclass_nms(step: Step) -> None:
    """The boxes of each image are a sequence. Where none is left, there is no row; Fluid writes one of -1."""
    if step.rank("Scores") != 3 or step.shape("BBoxes")[2] != 4 or step.attr("nms_eta") != 1:
        step.refuse("its boxes are sequences or polygons, or nms_eta is not 1")
    if step.is_read("Index"):
        step.refuse("Index is read")
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
    step.give("Out", step.add("Gather", table, order, axis=0), lengths=lengths)


def _limit_scores(step: Step) -> str:
    """Return the scores, lowest where they do not count: the background's, those after ``nms_top_k``."""
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
