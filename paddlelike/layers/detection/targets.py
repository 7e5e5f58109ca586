"""What anchors should say, beside what the network says of them."""

from __future__ import annotations

from typing import Any

from paddlelike.core.dtypes import VarType
from paddlelike.framework.graph.variable import Variable
from paddlelike.layers.checks import WIDE_FLOATS, check_variable
from paddlelike.layers.emit import emit_all
from paddlelike.layers.tensor.indexing import gather
from paddlelike.layers.tensor.shaping import reshape

__all__ = ["retinanet_target_assign", "rpn_target_assign"]

_INT32 = (VarType.INT32,)


def rpn_target_assign(
    bbox_pred: Variable,
    cls_logits: Variable,
    anchor_box: Variable,
    anchor_var: Variable,
    gt_boxes: Variable,
    is_crowd: Variable,
    im_info: Variable,
    rpn_batch_size_per_im: int = 256,
    rpn_straddle_thresh: float = 0.0,
    rpn_fg_fraction: float = 0.5,
    rpn_positive_overlap: float = 0.7,
    rpn_negative_overlap: float = 0.3,
    use_random: bool = True,
) -> tuple[Variable, ...]:
    """Return scores, moves, labels, targets of the moves and their weights, for a sample of the anchors.

    Operator ``rpn_target_assign``. ``bbox_pred`` (N, A, 4) and ``cls_logits`` (N, A, 1) belong to
    ``anchor_box`` (A, 4) (``anchor_var`` is not used); ``gt_boxes`` (G, 4) and ``is_crowd`` (G, 1) int32
    have one sequence per image; ``im_info`` (N, 3): height, width, scale. The results are (F + B, 1), (F,
    4), int32 (F + B, 1), (F, 4), (F, 4), F anchors on objects and B on the background. Raises TypeError for
    other dtypes. Ren et al., Faster R-CNN, 2015.

    ``rpn_batch_size_per_im`` anchors an image are drawn, ``rpn_fg_fraction`` of them foreground:
    those that overlap a box by ``rpn_positive_overlap``, background below ``rpn_negative_overlap``.
    Anchors more than ``rpn_straddle_thresh`` outside of the image do not count; ``use_random`` draws,
    else the first are taken.

    >>> from paddlelike.input import data
    >>> moves, logits = data("moves", [None, 90, 4]), data("logits", [None, 90, 1])
    >>> anchors, variances = data("anchors", [90, 4]), data("variances", [90, 4])
    >>> boxes, crowd = data("boxes", [None, 4], lod_level=1), data("crowd", [None, 1], "int32", lod_level=1)
    >>> info = data("im_info", [None, 3])
    >>> found = rpn_target_assign(moves, logits, anchors, variances, boxes, crowd, info)
    >>> [each.shape for each in found]
    [(-1, 1), (-1, 4), (-1, 1), (-1, 4), (-1, 4)]
    """
    layer = "rpn_target_assign"
    _check(layer, bbox_pred, cls_logits, anchor_box, anchor_var, gt_boxes, is_crowd, im_info)
    moved, scored, labels, targets, weights = emit_all(
        layer,
        {"Anchor": anchor_box, "GtBoxes": gt_boxes, "IsCrowd": is_crowd, "ImInfo": im_info},
        _outputs(anchor_box.dtype),
        {
            "rpn_batch_size_per_im": rpn_batch_size_per_im,
            "rpn_straddle_thresh": rpn_straddle_thresh,
            "rpn_positive_overlap": rpn_positive_overlap,
            "rpn_negative_overlap": rpn_negative_overlap,
            "rpn_fg_fraction": rpn_fg_fraction,
            "use_random": use_random,
        },
        constant=True,
    )
    return (*_pick(cls_logits, 1, scored, bbox_pred, moved), labels, targets, weights)


def retinanet_target_assign(
    bbox_pred: Variable,
    cls_logits: Variable,
    anchor_box: Variable,
    anchor_var: Variable,
    gt_boxes: Variable,
    gt_labels: Variable,
    is_crowd: Variable,
    im_info: Variable,
    num_classes: int = 1,
    positive_overlap: float = 0.5,
    negative_overlap: float = 0.4,
) -> tuple[Variable, ...]:
    """Return scores, moves, labels, targets of the moves, their weights, and counts of anchors on objects.

    Operator ``retinanet_target_assign``. As :func:`rpn_target_assign`, for all anchors that are near an
    object or far from all: ``cls_logits`` is (N, A, num_classes), labels are ``gt_labels`` (G, 1) int32,
    from 1 on, or 0; the counts, int32 (N, 1), are one too high, so that they can divide. Raises TypeError
    for other dtypes. Lin et al., 2017.

    Anchors that overlap a box by ``positive_overlap`` are foreground, below ``negative_overlap``
    background.

    >>> from paddlelike.input import data
    >>> moves, logits = data("moves", [None, 90, 4]), data("logits", [None, 90, 8])
    >>> anchors, variances = data("anchors", [90, 4]), data("variances", [90, 4])
    >>> labels, crowd = (data(n, [None, 1], "int32", lod_level=1) for n in ("labels", "crowd"))
    >>> boxes, info = data("boxes", [None, 4], lod_level=1), data("im_info", [None, 3])
    >>> found = retinanet_target_assign(moves, logits, anchors, variances, boxes, labels, crowd, info, 8)
    >>> [each.shape for each in found]
    [(-1, 8), (-1, 4), (-1, 1), (-1, 4), (-1, 4), (-1, 1)]
    """
    layer = "retinanet_target_assign"
    _check(layer, bbox_pred, cls_logits, anchor_box, anchor_var, gt_boxes, is_crowd, im_info)
    check_variable(layer, "gt_labels", gt_labels, _INT32)
    moved, scored, labels, targets, weights, count = emit_all(
        layer,
        {
            "Anchor": anchor_box,
            "GtBoxes": gt_boxes,
            "GtLabels": gt_labels,
            "IsCrowd": is_crowd,
            "ImInfo": im_info,
        },
        {**_outputs(anchor_box.dtype), "ForegroundNumber": "int32"},
        {"positive_overlap": positive_overlap, "negative_overlap": negative_overlap},
        constant=True,
    )
    return (*_pick(cls_logits, num_classes, scored, bbox_pred, moved), labels, targets, weights, count)


def _check(
    layer: str,
    bbox_pred: Variable,
    cls_logits: Variable,
    anchor_box: Variable,
    anchor_var: Variable,
    gt_boxes: Variable,
    is_crowd: Variable,
    im_info: Variable,
) -> None:
    floats = {
        "bbox_pred": bbox_pred,
        "cls_logits": cls_logits,
        "anchor_box": anchor_box,
        "anchor_var": anchor_var,
        "gt_boxes": gt_boxes,
        "im_info": im_info,
    }
    for argument, value in floats.items():
        check_variable(layer, argument, value, WIDE_FLOATS)
    check_variable(layer, "is_crowd", is_crowd, _INT32)


def _outputs(floats: VarType) -> dict[str, Any]:
    """Return the dtypes of the outputs, in the order in which Fluid creates them."""
    return {
        "LocationIndex": "int32",
        "ScoreIndex": "int32",
        "TargetLabel": "int32",
        "TargetBBox": floats,
        "BBoxInsideWeight": floats,
    }


def _pick(
    logits: Variable, classes: int, scored: Variable, moves: Variable, moved: Variable
) -> tuple[Variable, Variable]:
    """Return what the network says of the chosen anchors: scores and moves."""
    logits, moves = reshape(logits, (-1, classes)), reshape(moves, (-1, 4))
    return gather(logits, scored), gather(moves, moved)
