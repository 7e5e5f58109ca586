"""YOLOv3: boxes decoded from the output of a head, and the loss that trains it.

Redmon and Farhadi, YOLOv3: an incremental improvement, 2018.
"""

from __future__ import annotations

import math

import numpy as np

from paddlelike.core import VarType
from paddlelike.errors import EnforceNotMet, ShapeError
from paddlelike.framework.opdef import (
    NO_LOD,
    REQUIRED,
    Array,
    Attrs,
    Bool,
    Float,
    Gradient,
    GradOp,
    Int,
    Ints,
    OpDef,
    OpView,
    Spec,
    register,
)
from paddlelike.framework.opdef.registry import LATER
from paddlelike.ops.kernels.detection.yolo import Head, Matches, find_iou, split_head
from paddlelike.ops.kernels.nn.image.windows import check_image
from paddlelike.ops.kernels.rounding import exp, log, sigmoid
from paddlelike.ops.operands import can_be_equal


class HeadAttrs(Attrs):
    """Attributes of a head: anchors (width, height, width, ...) in pixels, and pixels per cell."""

    anchors: list[int] = Ints([])
    class_num: int = Int(REQUIRED)
    downsample_ratio: int = Int(32)
    scale_x_y: float = Float(1.0)

    def sides(self) -> Array:
        """Return the anchors ``(A, 2)``."""
        return np.array(self.anchors, np.int64).reshape(-1, 2)


class YoloBoxAttrs(HeadAttrs):
    """Attributes of yolo_box."""

    conf_thresh: float = Float(0.01)
    clip_bbox: bool = Bool(True)


@register
class YoloBox(OpDef):
    """The boxes of a head and their scores: X ``(N, A * (5 + classes), H, W)``, ImgSize ``(N, 2)`` int32.

    Boxes ``(N, A * H * W, 4)`` are (xmin, ymin, xmax, ymax) in pixels of an image of ImgSize (height, width);
    Scores ``(N, A * H * W, classes)``. Both are 0 where the objectness is below ``conf_thresh``.
    """

    type = "yolo_box"
    inputs = ("X", "ImgSize")
    outputs = ("Boxes", "Scores")
    fluid_order = "class_num anchors downsample_ratio conf_thresh clip_bbox scale_x_y"
    attrs = YoloBoxAttrs.table()

    @staticmethod
    def infer(x: Spec, size: Spec, *, attrs: YoloBoxAttrs) -> tuple[Spec, Spec]:
        _check_anchors("yolo_box", attrs.anchors)
        count = len(attrs.anchors) // 2
        _check_head("yolo_box", x, count, attrs.class_num)
        if (
            len(size.shape) != 2
            or size.shape[1] not in (2, -1)
            or not can_be_equal(x.shape[0], size.shape[0])
        ):
            raise ShapeError(f"yolo_box: X has shape {x.shape}, ImgSize {size.shape}; ImgSize needs (N, 2)")
        cells = -1 if min(x.shape[2:]) < 0 else count * x.shape[2] * x.shape[3]
        dims = (x.shape[0], cells)
        return Spec((*dims, 4), x.dtype, NO_LOD), Spec((*dims, attrs.class_num), x.dtype, NO_LOD)

    @classmethod
    def forward(cls, x: Array, size: Array, *, attrs: YoloBoxAttrs) -> tuple[Array, Array]:
        head = split_head(x, len(attrs.anchors) // 2)
        n, anchors, height, width = head.objectness.shape
        number = x.dtype.type
        # Fluid divides by the height of the grid along both axes.
        cells = (number(height if cls.since == "1" else width), number(height))
        image = size.astype(x.dtype)[:, ::-1].T[:, :, None, None, None]
        centers, sides = head.find_centers(attrs.scale_x_y), head.find_sides(attrs.sides())
        boxes = np.empty((n, anchors, height, width, 4), x.dtype)
        for axis in (0, 1):
            grid, pixels = cells[axis], cells[axis] * number(attrs.downsample_ratio)
            center, half = centers[axis] * image[axis] / grid, sides[axis] * image[axis] / pixels / 2
            low, high = center - half, center + half
            if attrs.clip_bbox:
                low, high = np.maximum(low, 0), np.minimum(high, image[axis] - 1)
            boxes[..., axis], boxes[..., axis + 2] = low, high
        objectness = sigmoid(head.objectness)
        scores = (sigmoid(head.classes) * objectness[:, :, None]).transpose(0, 1, 3, 4, 2)
        hidden = objectness < number(np.float32(attrs.conf_thresh))
        boxes[hidden] = 0
        scores = np.ascontiguousarray(scores)
        scores[hidden] = 0
        count = math.prod(boxes.shape[1:-1])
        return boxes.reshape(n, count, 4), scores.reshape(n, count, scores.shape[-1])


@register
class LaterYoloBox(YoloBox):
    """``yolo_box`` of Paddle 2, which divides by the width of the grid along the first axis."""

    type = "yolo_box" + LATER
    since = "2"


class LossAttrs(HeadAttrs):
    """Attributes of yolov3_loss; ``anchor_mask`` selects the entries of ``anchors`` that this head has."""

    anchor_mask: list[int] = Ints([])
    ignore_thresh: float = Float(0.7)
    use_label_smooth: bool = Bool(True)

    def find_class_targets(self, labels: Array, dtype: np.dtype[np.generic]) -> Array:
        """Return the targets of the class outputs: ``(matches, classes)``."""
        spread = min(1 / self.class_num, 1 / 40) if self.use_label_smooth else 0.0
        right = labels[:, None] == np.arange(self.class_num)
        return np.where(right, 1 - spread, spread).astype(dtype)


@register
class Yolov3Loss(OpDef):
    """``Loss`` (N,) of one head: the sum of the losses of boxes, objectness and classes.

    X ``(N, A * (5 + classes), H, H)``, GTBox ``(N, B, 4)`` (x, y of the center, width, height, as shares of
    the image; a box without width or height is ignored), GTLabel ``(N, B)`` int32, GTScore ``(N, B)``.

    A true box belongs to the cell of its center and to the anchor that overlaps it most. GTMatchMask ``(N,
    B)`` is the index of that anchor in this head, or -1 when another head has it. ObjectnessMask ``(N, A, H,
    H)`` is the score of the true box where a true box belongs, -1 where a prediction overlaps a true box by
    more than ``ignore_thresh``, else 0. A center outside of the image belongs to the cell at the border.
    """

    type = "yolov3_loss"
    inputs = ("X", "GTBox", "GTLabel", "GTScore?")
    outputs = ("Loss", "ObjectnessMask", "GTMatchMask")
    fluid_order = "class_num anchors anchor_mask downsample_ratio ignore_thresh use_label_smooth scale_x_y"
    attrs = LossAttrs.table()
    gradient = Gradient(
        "X",
        "GTBox",
        "GTLabel",
        "GTScore?",
        "Loss@GRAD",
        "ObjectnessMask",
        "GTMatchMask",
        outputs=("X@GRAD", "GTBox@GRAD", "GTLabel@GRAD", "GTScore@GRAD"),
    )

    @classmethod
    def make_grad(cls, op: OpView) -> list[GradOp]:
        (grad,) = super().make_grad(op)
        # As Paddle writes it: slots for the gradients of the truth, without variables.
        outputs = {slot: names if slot == "X@GRAD" else [] for slot, names in grad.outputs.items()}
        return [grad._replace(outputs=outputs)]

    @staticmethod
    def infer(
        x: Spec, box: Spec, label: Spec, score: Spec | None, *, attrs: LossAttrs
    ) -> tuple[Spec, Spec, Spec]:
        _check_anchors("yolov3_loss", attrs.anchors)
        count = len(attrs.anchors) // 2
        wrong = [index for index in attrs.anchor_mask if not 0 <= index < count]
        if wrong:
            raise ShapeError(f"yolov3_loss: anchor_mask has {wrong}, but there are {count} anchors")
        _check_head("yolov3_loss", x, len(attrs.anchor_mask), attrs.class_num)
        if not can_be_equal(*x.shape[2:]):
            raise ShapeError(f"yolov3_loss: X has shape {x.shape}; its height and width must be the same")
        if len(box.shape) != 3 or box.shape[2] not in (4, -1):
            raise ShapeError(f"yolov3_loss: GTBox has shape {box.shape}; it needs (N, boxes, 4)")
        for slot, spec in (("GTLabel", label), ("GTScore", score)):
            if spec is not None and (
                len(spec.shape) != 2 or not all(map(can_be_equal, spec.shape, box.shape))
            ):
                raise ShapeError(
                    f"yolov3_loss: {slot} has shape {spec.shape}, GTBox {box.shape}; {slot} needs (N, boxes)"
                )
        mask = (x.shape[0], len(attrs.anchor_mask), *x.shape[2:])
        return (
            Spec((x.shape[0],), x.dtype, NO_LOD),
            Spec(mask, VarType.INT32, NO_LOD),  # of X's dtype, but Paddle's layer declares it so
            Spec(box.shape[:2], VarType.INT32, NO_LOD),
        )

    @staticmethod
    def forward(
        x: Array, box: Array, label: Array, score: Array | None, *, attrs: LossAttrs
    ) -> tuple[Array, Array, Array]:
        head = split_head(x, len(attrs.anchor_mask))
        matches, match_mask = _match(x, box, label, score, attrs)
        mask = _find_ignored(head, box, attrs)
        mask[matches.image, matches.anchor, matches.row, matches.column] = matches.score
        found = matches.take(head.box)
        box_loss = np.abs(matches.target - found)
        box_loss[:, :2] = _cross_entropy(found[:, :2], matches.target[:, :2])
        targets = attrs.find_class_targets(label[matches.image, matches.place], x.dtype)
        class_loss = _cross_entropy(matches.take(head.classes), targets)
        parts = (box_loss * matches.weight[:, None], class_loss * matches.score[:, None])
        matched_loss = np.concatenate(parts, 1)
        loss = np.zeros(len(x), x.dtype)
        for i, one in enumerate(mask):
            # Added up one after the other, as in C++: so float32 gives the same sum.
            terms = [
                matched_loss[matches.image == i].reshape(-1),
                _measure_objectness(head.objectness[i], one),
            ]
            loss[i] = np.cumsum(np.concatenate(terms), dtype=x.dtype)[-1]
        return loss, mask, match_mask

    @staticmethod
    def backward(
        x: Array,
        box: Array,
        label: Array,
        score: Array | None,
        d_loss: Array,
        mask: Array,
        match_mask: Array,
        *,
        attrs: LossAttrs,
    ) -> tuple[Array, None, None, None]:
        head = split_head(x, len(attrs.anchor_mask))
        matches, _ = _match(x, box, label, score, attrs)
        d_x = np.zeros_like(x)
        d_head = split_head(d_x, len(attrs.anchor_mask))
        found = matches.take(head.box)
        d_box = np.where(found > matches.target, 1, -1).astype(x.dtype)
        d_box[:, :2] = sigmoid(found[:, :2]) - matches.target[:, :2]
        targets = attrs.find_class_targets(label[matches.image, matches.place], x.dtype)
        d_classes = sigmoid(matches.take(head.classes)) - targets
        above = d_loss[matches.image, None]
        # Of two true boxes at one cell and anchor the last one decides, as in Paddle.
        place = (matches.image, matches.anchor, slice(None), matches.row, matches.column)
        d_head.box[place] = d_box * matches.weight[:, None] * above
        d_head.classes[place] = d_classes * matches.score[:, None] * above
        probability = sigmoid(head.objectness)
        d_objectness = np.where(mask > 1e-5, (probability - 1) * mask, probability * (mask > -0.5))
        d_head.objectness[...] = d_objectness * d_loss[:, None, None, None]
        return d_x, None, None, None


def _match(
    x: Array, box: Array, label: Array, score: Array | None, attrs: LossAttrs
) -> tuple[Matches, Array]:
    """Return the true boxes assigned to this head, and GTMatchMask."""
    if len(box) != len(x) or label.shape != box.shape[:2]:
        raise EnforceNotMet(
            f"yolov3_loss: X has shape {x.shape}, GTBox {box.shape}, GTLabel {label.shape}; expected the "
            "same number of images, and (N, boxes) labels"
        )
    grid, number = x.shape[2], x.dtype.type
    pixels = number(attrs.downsample_ratio * grid)
    valid = (box[..., 2] >= 1e-6) & (box[..., 3] >= 1e-6)
    zero = np.zeros((1, 1, 1), x.dtype)
    anchors = (zero, zero, *(side / pixels for side in attrs.sides().T.astype(x.dtype)[:, :, None, None]))
    iou = find_iou(anchors, (zero, zero, box[None, ..., 2], box[None, ..., 3]))
    best = np.where(valid, iou, 0).argmax(0)
    in_head = np.full(len(attrs.sides()), -1)
    for index in reversed(range(len(attrs.anchor_mask))):
        in_head[attrs.anchor_mask[index]] = index
    match_mask = np.where(valid, in_head[best], -1).astype(np.int32)
    image, place = np.nonzero(match_mask >= 0)
    true, anchor = box[image, place], best[image, place]
    cells = (true[:, :2] * number(grid)).astype(np.int64)
    cell = np.clip(cells, 0, grid - 1)
    sides = attrs.sides()[anchor].astype(x.dtype)
    target = np.concatenate(
        [true[:, :2] * number(grid) - cell.astype(x.dtype), log(true[:, 2:] * pixels / sides)], 1
    )
    scores = np.ones(len(image), x.dtype) if score is None else score[image, place]
    area = (true[:, 2] * true[:, 3]).astype(np.float64)
    weight = ((2.0 - area) * scores).astype(x.dtype)
    row, column = cell[:, 1], cell[:, 0]
    return Matches(image, place, in_head[anchor], row, column, target, weight, scores), match_mask


def _find_ignored(head: Head, box: Array, attrs: LossAttrs) -> Array:
    """Return -1 where a prediction overlaps a true box too much to count as background, else 0."""
    number = box.dtype.type
    grid = number(head.box.shape[3])
    sides = head.find_sides(attrs.sides()[list(attrs.anchor_mask)])
    pixels = number(attrs.downsample_ratio * head.box.shape[3])
    centers = head.find_centers(attrs.scale_x_y)
    found = (*(center / grid for center in centers), *(side / pixels for side in sides))
    mask = np.zeros(head.objectness.shape, box.dtype)
    threshold = number(np.float32(attrs.ignore_thresh))
    for i, one in enumerate(box):
        true = one[(one[:, 2] >= 1e-6) & (one[:, 3] >= 1e-6)]
        columns = tuple(true.T[:, :, None, None, None])
        iou = find_iou(tuple(part[i] for part in found), columns)
        mask[i][np.fmax.reduce(iou, 0, initial=0) > threshold] = -1
    return mask


def _cross_entropy(x: Array, target: Array) -> Array:
    """Return the cross entropy of sigmoid(x), in float64 except where Paddle uses x's dtype."""
    positive = np.maximum(x, 0).astype(np.float64)
    rest = np.log(1.0 + exp(-np.abs(x)).astype(np.float64))
    return (positive - x * target + rest).astype(x.dtype)


def _measure_objectness(x: Array, mask: Array) -> Array:
    """Return the loss of each cell's objectness, in the order of the cells."""
    right = _cross_entropy(x, np.ones((), x.dtype)) * mask
    wrong = _cross_entropy(x, np.zeros((), x.dtype)) * (mask > -0.5)
    return np.where(mask > 1e-5, right, wrong).reshape(-1)


def _check_anchors(op: str, anchors: list[int]) -> None:
    if not anchors or len(anchors) % 2 or min(anchors) <= 0:
        raise ShapeError(
            f"{op}: anchors are {anchors}; they need a width and a height above 0 for every anchor"
        )


def _check_head(op: str, x: Spec, anchors: int, classes: int) -> None:
    check_image(op, x)
    if classes <= 0:
        raise ShapeError(f"{op}: class_num is {classes}; it must be above 0")
    if not can_be_equal(x.shape[1], anchors * (5 + classes)):
        raise ShapeError(
            f"{op}: X has shape {x.shape}, but {anchors} anchors of {classes} classes need "
            f"{anchors * (5 + classes)} channels",
            hint="a head has (5 + class_num) channels for each of its anchors",
        )
