"""The boxes that a YOLO head predicts, and the matching of true boxes with its cells and anchors.

A head gives for each of A anchors and each cell of a grid the numbers x, y, w, h, objectness and the classes:
``(N, A * (5 + classes), H, W)``. Redmon and Farhadi, YOLOv3: an incremental improvement, 2018.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from paddlelike.framework.opdef import Array
from paddlelike.ops.kernels.rounding import exp, sigmoid


class Head(NamedTuple):
    """The numbers of a head by anchor and cell: ``(N, A, H, W)`` each, classes ``(N, A, classes, H, W)``."""

    box: Array  # (N, A, 4, H, W)
    objectness: Array
    classes: Array

    def find_centers(self, scale: float) -> tuple[Array, Array]:
        """Return x and y of the box centers in units of cells, from the corner of the grid."""
        number: Any = self.box.dtype.type
        factor, bias = number(np.float32(scale)), number(np.float32(-0.5 * (float(np.float32(scale)) - 1)))
        height, width = self.box.shape[3:]
        column = np.arange(width, dtype=self.box.dtype)
        row = np.arange(height, dtype=self.box.dtype)[:, None]
        x, y = (sigmoid(self.box[:, :, i]) * factor for i in (0, 1))
        return x + column + bias, y + row + bias

    def find_sides(self, anchors: Array) -> tuple[Array, Array]:
        """Return width and height of the boxes in pixels; anchors are ``(A, 2)``."""
        sides = anchors.astype(self.box.dtype)[:, :, None, None]
        return exp(self.box[:, :, 2]) * sides[:, 0], exp(self.box[:, :, 3]) * sides[:, 1]


def split_head(x: Array, anchors: int) -> Head:
    """Return the numbers of a head as views of ``x``."""
    parts = x.reshape(len(x), anchors, x.shape[1] // anchors, *x.shape[2:])
    return Head(parts[:, :, :4], parts[:, :, 4], parts[:, :, 5:])


def find_iou(first: tuple[Array, ...], second: tuple[Array, ...]) -> Array:
    """Return the overlaps of boxes given by x, y of the center, width and height."""
    sizes = []
    for axis in (0, 1):
        low = [box[axis] - box[axis + 2] / 2 for box in (first, second)]
        high = [box[axis] + box[axis + 2] / 2 for box in (first, second)]
        sizes.append(np.minimum(*high) - np.maximum(*low))
    common = np.where((sizes[0] < 0) | (sizes[1] < 0), first[0].dtype.type(0), sizes[0] * sizes[1])
    with np.errstate(divide="ignore", invalid="ignore"):
        iou: Array = common / (first[2] * first[3] + second[2] * second[3] - common)
    return iou


class Matches(NamedTuple):
    """The true boxes assigned to this head, in order; each array has one element, and ``box`` one row,
    for each of them.
    """

    image: Array
    place: Array  # index of the true box in the image
    anchor: Array  # of this head
    row: Array
    column: Array
    target: Array  # (matches, 4): what the head's numbers of the box should be
    weight: Array  # of the box's loss
    score: Array

    def take(self, numbers: Array) -> Array:
        """Return the numbers ``(N, A, k, H, W)`` at the cells of the matches: ``(matches, k)``."""
        return numbers[self.image, self.anchor, :, self.row, self.column]
