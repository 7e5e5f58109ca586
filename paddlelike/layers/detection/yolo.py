"""YOLOv3: boxes decoded from the output of a head, and the loss that trains it.

Parameters
----------
x
    The map, (N, anchors * (5 + classes), H, W).
img_size
    (height, width) of each image, int32 (N, 2).
anchors
    Widths and heights of the anchors, in pixels: w0, h0, w1, h1, ...
class_num
    The number of classes.
conf_thresh
    The confidence below which a box is zeros.
downsample_ratio
    The pixels of the image per place of the map.
clip_bbox
    Whether boxes are cut off at the borders of the image.
scale_x_y
    The factor of the sigmoid of the center.
gt_box
    The true boxes, (N, B, 4): center, width, height, as shares of the image.
gt_label
    The classes of the true boxes, int32 (N, B).
anchor_mask
    The indices of the anchors of this map.
ignore_thresh
    The overlap above which a box without an object is not counted as background.
gt_score
    The weight of each true box, (N, B); None for 1.
use_label_smooth
    Whether classes are smoothed.
"""

from __future__ import annotations

from collections.abc import Sequence

from paddlelike.framework import Variable
from paddlelike.layers.emit import check_type, check_variable, emit_all

__all__ = ["yolo_box", "yolov3_loss"]


def yolov3_loss(
    x: Variable,
    gt_box: Variable,
    gt_label: Variable,
    anchors: Sequence[int],
    anchor_mask: Sequence[int],
    class_num: int,
    ignore_thresh: float,
    downsample_ratio: int,
    gt_score: Variable | None = None,
    use_label_smooth: bool = True,
    name: str | None = None,
    scale_x_y: float = 1.0,
) -> Variable:
    """Return the loss (N,) of one head of a YOLOv3: boxes, objectness and classes.

    ``x`` is (N, A * (5 + class_num), H, H); it holds x, y, w, h, objectness and classes for each of the A
    anchors of ``anchor_mask``. ``anchors`` lists the anchors of all heads, in pixels of an image of H *
    ``downsample_ratio`` pixels. Rows of 0 fill up ``gt_box`` where an image has fewer than B boxes. A
    prediction that overlaps a true box by more than ``ignore_thresh`` is not trained as background. Operator
    ``yolov3_loss``. Redmon and Farhadi, 2018.

    Returns
    -------
    Variable
        (N,), in the dtype of ``x``.

    Raises
    ------
    TypeError
        An argument has another type.

    >>> from paddlelike.input import data
    >>> x, boxes = data("x", [None, 24, 13, 13]), data("boxes", [None, 50, 4])
    >>> labels = data("labels", [None, 50], "int32")
    >>> yolov3_loss(x, boxes, labels, [10, 13, 16, 30, 33, 23], [0, 1, 2], 3, 0.7, 32).shape
    (-1,)
    """
    layer = "yolov3_loss"
    check_variable(layer, "x", x)
    check_variable(layer, "gt_box", gt_box)
    check_variable(layer, "gt_label", gt_label)
    if gt_score is not None:
        check_variable(layer, "gt_score", gt_score)
    check_type(layer, "anchors", anchors, list, tuple)
    check_type(layer, "anchor_mask", anchor_mask, list, tuple)
    check_type(layer, "class_num", class_num, int)
    check_type(layer, "ignore_thresh", ignore_thresh, float)
    check_type(layer, "use_label_smooth", use_label_smooth, bool)
    attrs = {
        "anchors": anchors,
        "anchor_mask": anchor_mask,
        "class_num": class_num,
        "ignore_thresh": ignore_thresh,
        "downsample_ratio": downsample_ratio,
        "use_label_smooth": use_label_smooth,
        "scale_x_y": scale_x_y,
    }
    inputs = {"X": x, "GTBox": gt_box, "GTLabel": gt_label, "GTScore": gt_score}
    outputs = {"Loss": x.dtype, "ObjectnessMask": "int32", "GTMatchMask": "int32"}
    return emit_all(layer, inputs, outputs, attrs, name=name)[0]


def yolo_box(
    x: Variable,
    img_size: Variable,
    anchors: Sequence[int],
    class_num: int,
    conf_thresh: float,
    downsample_ratio: int,
    clip_bbox: bool = True,
    name: str | None = None,
    scale_x_y: float = 1.0,
) -> tuple[Variable, Variable]:
    """Return the boxes that one head of a YOLOv3 predicts, and their scores.

    ``anchors`` lists the A anchors of this head. Boxes are in pixels of images of size ``img_size``. Boxes
    and scores are 0 where the objectness is below ``conf_thresh``. Operator ``yolo_box``. Redmon and Farhadi,
    2018.

    Returns
    -------
    boxes : Variable
        (N, A * H * W, 4), in the dtype of ``x``: xmin, ymin, xmax, ymax.
    scores : Variable
        (N, A * H * W, class_num).

    Raises
    ------
    TypeError
        An argument has another type.

    >>> from paddlelike.input import data
    >>> x, size = data("x", [None, 24, 13, 13]), data("size", [None, 2], "int32")
    >>> [one.shape for one in yolo_box(x, size, [10, 13, 16, 30, 33, 23], 3, 0.01, 32)]
    [(-1, 507, 4), (-1, 507, 3)]
    """
    layer = "yolo_box"
    check_variable(layer, "x", x)
    check_variable(layer, "img_size", img_size)
    check_type(layer, "anchors", anchors, list, tuple)
    check_type(layer, "class_num", class_num, int)
    check_type(layer, "conf_thresh", conf_thresh, float)
    attrs = {
        "anchors": anchors,
        "class_num": class_num,
        "conf_thresh": conf_thresh,
        "downsample_ratio": downsample_ratio,
        "clip_bbox": clip_bbox,
        "scale_x_y": scale_x_y,
    }
    outputs = {"Boxes": x.dtype, "Scores": x.dtype}
    boxes, scores = emit_all(layer, {"X": x, "ImgSize": img_size}, outputs, attrs, name=name)
    return boxes, scores
