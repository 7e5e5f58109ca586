"""Regions of images, and proposals for regions."""

from __future__ import annotations

import numpy as np

from paddlelike.interop.onnx.exporter.graph import Step, Value, converts
from paddlelike.interop.onnx.exporter.sequences import find_owners
from paddlelike.ops.detection.proposals import LARGEST


def _find_images(step: Step) -> Value:
    """Return the image of each region."""
    if step.has("RoisLod"):
        step.refuse("input RoisLod is given")
    counts = step.input("RoisNum").cast("int64") if step.has("RoisNum") else step.lengths("ROIs")
    return find_owners(counts)[0]


@converts("roi_pool")
def _convert_roi_pool(step: Step) -> Value:
    if step.is_read("Argmax"):
        step.refuse("Argmax is read")
    images = _find_images(step).unsqueeze(1).cast(step.dtype("ROIs"))
    regions = step.concat(images, step.input("ROIs"), axis=1)
    sizes = [step.attr("pooled_height"), step.attr("pooled_width")]
    scale = float(step.attr("spatial_scale"))
    return step.add("MaxRoiPool", step.input(), regions, pooled_shape=sizes, spatial_scale=scale)


@converts("roi_align")
def _convert_roi_align(step: Step) -> Value:
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
    scores = step.input("Scores").transpose([0, 2, 3, 1]).reshape(0, -1)
    count = scores.dims(1, 2)
    if step.attr("pre_nms_topN") > 0:
        count = count.minimum(step.attr("pre_nms_topN"))
    scores, order = step.add_several("TopK", scores, count, count=2)  # (N, K)
    boxes = _move_anchors(step, order, offset)  # (N, K, 4)
    edges = info.take(step.ints(1, 0, 1, 0), 1).unsqueeze(1)
    zero = step.like(0.0, "Scores")
    boxes = boxes.minimum(edges - offset).maximum(zero)
    first, last = step.add_several("Split", boxes, step.ints(2, 2), count=2, axis=2)
    span = last - first
    scale = None if later else info.take(step.ints(2), 1).unsqueeze(2)
    side = (span if scale is None else span / scale) + offset
    fits = side >= step.like(least, "Scores")
    if not later or step.attr("pixel_offset"):
        one, two = step.like(1.0, "Scores"), step.like(2.0, "Scores")
        center = first + (span + one) / two
        sides = info.take(step.ints(1, 0), 1).unsqueeze(1)
        fits = fits & (center <= sides)
    fits = fits.cast("int32").reduce("ReduceMin", 2).cast("bool")
    lowest = step.like(np.finfo(np.float32).min, "Scores")
    scores = fits.where(scores, lowest)
    last = last + offset  # the last pixel counts
    shown = step.concat(first, last, axis=2)
    most = step.attr("post_nms_topN")
    limits = [step.constant(most if most > 0 else np.iinfo(np.int64).max, np.int64)]
    limits += [step.constant(one, np.float32) for one in (step.attr("nms_thresh"), np.finfo(np.float32).min)]
    chosen = step.add("NonMaxSuppression", shown, scores.unsqueeze(1), *limits)
    place = chosen.take(step.ints(0, 2), 1)  # image, box
    images, ranks = step.add_several("Split", place, step.ints(1, 1), count=2, axis=1)
    keys = (images * count + ranks).reshape(-1)
    _, order = step.add_several("TopK", keys, keys.dims(), count=2, largest=0)
    place = place.take(order)
    total = info.dims(0, 1).squeeze(0)
    each = total.range()
    owned = images.equals(each).cast("int64")
    lengths = owned.reduce("ReduceSum", 0)
    lod = None if step.op.output("RpnRoisNum") else lengths
    step.give("RpnRois", step.add("GatherND", boxes, place), lengths=lod)
    step.give("RpnRoiProbs", step.add("GatherND", scores, place).unsqueeze(1), lengths=lod)
    step.give("RpnRoisNum", lengths.cast("int32"))
    if step.op.output("RpnRoisLod"):
        step.give("RpnRoisLod", step.add("CumSum", lengths, step.scalar(0)))


def _move_anchors(step: Step, order: Value, offset: Value) -> Value:
    """Return the anchors, moved and scaled by the output of the network."""
    deltas = step.input("BboxDeltas").transpose([0, 2, 3, 1]).reshape(0, -1, 4)
    deltas = step.add("GatherND", deltas, order.unsqueeze(2), batch_dims=1)
    anchors, variances = (step.input(slot).reshape(-1, 4).take(order) for slot in ("Anchors", "Variances"))
    first, last = step.add_several("Split", anchors, step.ints(2, 2), count=2, axis=2)
    size = last - first + offset
    center = first + size * 0.5
    steps = variances * deltas
    move, growth = step.add_several("Split", steps, step.ints(2, 2), count=2, axis=2)
    middle = move * size + center
    growth = step.add("Exp", growth.minimum(step.like(LARGEST, "Anchors")))
    half = growth * size / 2.0
    low, high = middle - half, middle + half - offset
    return step.concat(low, high, axis=2)
