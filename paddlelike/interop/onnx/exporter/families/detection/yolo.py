"""yolo_box: the boxes and scores that YOLO's output means."""

from __future__ import annotations

import numpy as np

from paddlelike.interop.onnx.exporter.converters import converts
from paddlelike.interop.onnx.exporter.graph import Step


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
