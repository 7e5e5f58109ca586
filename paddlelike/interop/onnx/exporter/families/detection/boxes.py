"""Anchors, encoded boxes, and the boxes of YOLO."""

from __future__ import annotations

import numpy as np

from paddlelike.framework.environment import PADDLE2_VERSION
from paddlelike.framework.opdef import registry
from paddlelike.interop.onnx.exporter.graph import Step, Value, converts


def _edges(step: Step, boxes: Value) -> list[Value]:
    """Return xmin, ymin, xmax, ymax, each with a last dim of 1."""
    return step.add_several("Split", boxes, step.ints(1, 1, 1, 1), count=4, axis=-1)


@converts("box_coder")
def _convert_box_coder(step: Step) -> None:
    """Encode or decode boxes: centers and sides relative to the anchors, sides as logarithms."""
    encodes, axis = step.attr("code_type") == "encode_center_size", step.attr("axis")
    edge = step.like(0.0 if step.attr("box_normalized") else 1.0, "PriorBox")
    two = step.like(2.0, "PriorBox")
    prior, target = step.input("PriorBox"), step.input("TargetBox")
    place = 0 if encodes or axis == 0 else 1
    prior = prior.unsqueeze(place)
    variances = None
    if step.has("PriorBoxVar"):
        variances = step.input("PriorBoxVar").unsqueeze(place)
    elif step.attr("variance"):
        variances = step.like(step.attr("variance"), "PriorBox")
    if encodes:
        target = target.unsqueeze(1)
    elif variances is not None:
        target = target * variances
    ours, theirs = _edges(step, prior), _edges(step, target)
    firsts, lasts = [], []
    for i in (0, 1):
        side = ours[i + 2] - ours[i] + edge
        center = ours[i] + side / two
        if encodes:
            middle = (theirs[i + 2] + theirs[i]) / two
            length = theirs[i + 2] - theirs[i] + edge
            firsts.append((middle - center) / side)
            lasts.append(step.add("Log", abs(length / side)))
        else:
            middle = theirs[i] * side + center
            half = step.add("Exp", theirs[i + 2]) * side / two
            firsts.append(middle - half)
            lasts.append(middle + half - edge)
    out = step.concat(*firsts, *lasts, axis=-1)
    if encodes and variances is not None:
        out = out / variances
    lod = step.lengths("PriorBox") if not encodes and axis and step.has_lengths("PriorBox") else None
    step.give("OutputBox", out, lengths=lod)


@converts("iou_similarity")
def _convert_iou(step: Step) -> Value:
    edge = step.like(0.0 if step.attr("box_normalized") else 1.0)
    return find_overlaps(step, step.input(), step.input("Y"), 1, edge, touching=False)


def find_overlaps(
    step: Step, first: Value, second: Value, axis: int, edge: Value, *, touching: bool
) -> Value:
    """Return the overlap of each box of ``first``, along the dim before ``axis``, with each of ``second``.

    With ``touching``, the overlap of boxes less than an ``edge`` apart is 0.
    """
    mine, theirs = _edges(step, first.unsqueeze(axis)), _edges(step, second.unsqueeze(axis - 1))
    zero = edge - edge
    sides: list[list[Value]] = [[], [], []]
    for i in (0, 1):
        high, low = mine[i + 2].minimum(theirs[i + 2]), mine[i].maximum(theirs[i])
        gap = high - low
        common = (gap + edge).maximum(zero)
        if touching:
            common = (gap < zero).where(zero, common)
        sides[0].append(common)
        for k, box in ((1, mine), (2, theirs)):
            sides[k].append(box[i + 2] - box[i] + edge)
    shared, one, other = (step.add("Mul", *pair) for pair in sides)
    union = one + other - shared
    return (shared / union).squeeze(axis + 1)


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


@converts("yolo_box")
def _convert_yolo_box(step: Step) -> None:
    """Decode boxes; Fluid divides both axes by the height of the grid."""
    sides = np.array(step.attr("anchors"), np.float64).reshape(-1, 2)
    anchors, classes, (height, width) = len(sides), step.attr("class_num"), step.shape()[2:]
    if min(height, width) < 0:
        step.refuse(f"X has shape {step.shape()}: its height and width are not known")
    x = step.input().reshape(0, anchors, 5 + classes, height, width)
    parts = step.add_several("Split", x, step.ints(2, 2, 1, classes), count=4, axis=2)
    is_later = step.op.block.program.paddle_version >= PADDLE2_VERSION
    cells = np.array([width if is_later else height, height]).reshape(1, 1, 2, 1, 1)
    scale = step.attr("scale_x_y", 1.0)
    centers = step.add("Sigmoid", parts[0]) * step.like(scale)
    grid = np.stack(np.meshgrid(np.arange(width), np.arange(height))) - 0.5 * (scale - 1)
    centers = centers + step.like(grid[None, None])
    image = step.input("ImgSize").cast(step.dtype())  # height, width
    image = image.take(step.ints(1, 0), 1)
    image = image.reshape(0, 1, 2, 1, 1)
    centers = centers * image / step.like(cells)
    lengths = step.add("Exp", parts[1]) * step.like(sides[None, :, :, None, None])
    pixels = step.like(step.attr("downsample_ratio", 32) * cells)
    half = lengths * image / pixels / 2.0
    low, high = centers - half, centers + half
    if step.attr("clip_bbox", True):
        low = low.maximum(0.0)
        high = high.minimum(image - 1.0)
    objectness = step.add("Sigmoid", parts[2])
    hidden = objectness < step.like(step.attr("conf_thresh"))
    boxes = hidden.where(0.0, step.concat(low, high, axis=2))
    scores = step.add("Sigmoid", parts[3]) * objectness
    scores = hidden.where(0.0, scores)
    for slot, value, count in (("Boxes", boxes, 4), ("Scores", scores, classes)):
        step.give(slot, value.transpose([0, 1, 3, 4, 2]).reshape(0, -1, count))
