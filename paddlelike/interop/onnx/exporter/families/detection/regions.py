"""Regions of images, and proposals for regions."""

from __future__ import annotations

import numpy as np

from paddlelike.interop.onnx.exporter.graph import Step, converts
from paddlelike.interop.onnx.exporter.sequences import find_owners
from paddlelike.ops.detection.proposals import LARGEST


def _find_images(step: Step) -> str:
    """Return the image of each region."""
    if step.has("RoisLod"):
        step.refuse("input RoisLod is given")
    counts = step.cast(step.input("RoisNum"), "int64") if step.has("RoisNum") else step.lengths("ROIs")
    return find_owners(step.graph, counts)[0]


@converts("roi_pool")
def _convert_roi_pool(step: Step) -> str:
    if step.is_read("Argmax"):
        step.refuse("Argmax is read")
    images = step.cast(step.unsqueeze(_find_images(step), 1), step.dtype("ROIs"))
    regions = step.add("Concat", images, step.input("ROIs"), axis=1)
    sizes = [step.attr("pooled_height"), step.attr("pooled_width")]
    scale = float(step.attr("spatial_scale"))
    return step.add("MaxRoiPool", step.input(), regions, pooled_shape=sizes, spatial_scale=scale)


@converts("roi_align")
def _convert_roi_align(step: Step) -> str:
    images = _find_images(step)
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
    return step.add("RoiAlign", step.input(), step.input("ROIs"), images, **options)


@converts("generate_proposals", "generate_proposals_v2")
def _convert_generate_proposals(step: Step) -> None:
    if step.attr("nms_thresh") <= 0 or step.attr("eta") != 1:
        step.refuse("nms_thresh is not above 0, or eta is not 1")
    later = step.op.type.endswith("_v2")
    offset = step.like(float(step.attr("pixel_offset")) if later else 1.0, "Scores")
    info, least = step.input("ImShape" if later else "ImInfo"), max(step.attr("min_size"), 1.0)
    scores = step.reshape(step.transpose(step.input("Scores"), [0, 2, 3, 1]), 0, -1)
    count = step.dims(scores, 1, 2)
    if step.attr("pre_nms_topN") > 0:
        count = step.add("Min", count, step.ints(step.attr("pre_nms_topN")))
    scores, order = step.add_several("TopK", scores, count, count=2)  # (N, K)
    boxes = _move_anchors(step, order, offset)  # (N, K, 4)
    edges = step.unsqueeze(step.add("Gather", info, step.ints(1, 0, 1, 0), axis=1), 1)
    zero = step.like(0.0, "Scores")
    boxes = step.add("Max", step.add("Min", boxes, step.add("Sub", edges, offset)), zero)
    first, last = step.add_several("Split", boxes, step.ints(2, 2), count=2, axis=2)
    span = step.add("Sub", last, first)
    scale = None if later else step.unsqueeze(step.add("Gather", info, step.ints(2), axis=1), 2)
    side = step.add("Add", span if scale is None else step.add("Div", span, scale), offset)
    fits = step.add("GreaterOrEqual", side, step.like(least, "Scores"))
    if not later or step.attr("pixel_offset"):
        one, two = step.like(1.0, "Scores"), step.like(2.0, "Scores")
        center = step.add("Add", first, step.add("Div", step.add("Add", span, one), two))
        sides = step.unsqueeze(step.add("Gather", info, step.ints(1, 0), axis=1), 1)
        fits = step.add("And", fits, step.add("LessOrEqual", center, sides))
    fits = step.cast(step.reduce("ReduceMin", step.cast(fits, "int32"), [2], keep=False), "bool")
    lowest = step.like(np.finfo(np.float32).min, "Scores")
    scores = step.add("Where", fits, scores, lowest)
    last = step.add("Add", last, offset)  # the last pixel counts
    shown = step.add("Concat", first, last, axis=2)
    most = step.attr("post_nms_topN")
    limits = [step.constant(most if most > 0 else np.iinfo(np.int64).max, np.int64)]
    limits += [step.constant(one, np.float32) for one in (step.attr("nms_thresh"), np.finfo(np.float32).min)]
    chosen = step.add("NonMaxSuppression", shown, step.unsqueeze(scores, 1), *limits)
    place = step.add("Gather", chosen, step.ints(0, 2), axis=1)  # image, box
    images, ranks = step.add_several("Split", place, step.ints(1, 1), count=2, axis=1)
    keys = step.reshape(step.add("Add", step.add("Mul", images, count), ranks), -1)
    _, order = step.add_several("TopK", keys, step.add("Shape", keys), count=2, largest=0)
    place = step.add("Gather", place, order, axis=0)
    total = step.squeeze(step.dims(info, 0, 1), 0)
    each = step.add("Range", step.constant(0, np.int64), total, step.constant(1, np.int64))
    owned = step.cast(step.add("Equal", images, each), "int64")
    lengths = step.reduce("ReduceSum", owned, [0], keep=False)
    lod = None if step.op.output("RpnRoisNum") else lengths
    step.give("RpnRois", step.add("GatherND", boxes, place), lengths=lod)
    step.give("RpnRoiProbs", step.unsqueeze(step.add("GatherND", scores, place), 1), lengths=lod)
    step.give("RpnRoisNum", step.cast(lengths, "int32"))
    if step.op.output("RpnRoisLod"):
        step.give("RpnRoisLod", step.add("CumSum", lengths, step.constant(0, np.int64)))


def _move_anchors(step: Step, order: str, offset: str) -> str:
    """Return the anchors, moved and scaled by the output of the network."""
    deltas = step.reshape(step.transpose(step.input("BboxDeltas"), [0, 2, 3, 1]), 0, -1, 4)
    deltas = step.add("GatherND", deltas, step.unsqueeze(order, 2), batch_dims=1)
    anchors, variances = (
        step.add("Gather", step.reshape(step.input(slot), -1, 4), order, axis=0)
        for slot in ("Anchors", "Variances")
    )
    first, last = step.add_several("Split", anchors, step.ints(2, 2), count=2, axis=2)
    size = step.add("Add", step.add("Sub", last, first), offset)
    center = step.add("Add", first, step.add("Mul", size, step.like(0.5, "Anchors")))
    steps = step.add("Mul", variances, deltas)
    move, growth = step.add_several("Split", steps, step.ints(2, 2), count=2, axis=2)
    middle = step.add("Add", step.add("Mul", move, size), center)
    growth = step.add("Exp", step.add("Min", growth, step.like(LARGEST, "Anchors")))
    half = step.add("Div", step.add("Mul", growth, size), step.like(2.0, "Anchors"))
    low, high = step.add("Sub", middle, half), step.add("Sub", step.add("Add", middle, half), offset)
    return step.add("Concat", low, high, axis=2)
