"""Training targets of anchors or regions, with the matching predictions of the network.

Parameters
----------
im_info
    (height, width, scale) of each image, (N, 3).
gt_classes
    The true classes, int32 (G, 1), one sequence per image.
is_crowd
    1 for a box around several objects, int32 (G, 1); such boxes are ignored.
gt_segms
    Points (S, 2) of the polygons, with three levels of LoD: objects, polygons, points.
rois
    Regions (R, 4) of :func:`generate_proposal_labels`.
labels_int32
    The classes of the regions, (R, 1).
num_classes
    The number of classes: with the background for masks, without it for RetinaNet.
resolution
    The side of a mask.
rpn_rois
    Regions (R, 4), one sequence per image.
gt_boxes
    The true boxes, (G, 4), one sequence per image.
batch_size_per_im
    The number of regions of an image that are sampled.
fg_fraction
    The largest share of the sampled regions that is foreground.
fg_thresh
    The overlap from which a region is foreground.
bg_thresh_hi, bg_thresh_lo
    The overlaps between which a region is background.
bbox_reg_weights
    The four numbers by which the offsets of boxes are divided.
class_nums
    The number of classes, background included.
use_random
    Whether regions are sampled at random; otherwise the first ones are taken.
is_cls_agnostic
    Whether all classes share one box.
is_cascade_rcnn
    Whether regions come from an earlier stage of a cascade.
bbox_pred
    Codes of the boxes, (N, M, 4).
cls_logits
    Unnormalized scores, (N, M, classes).
anchor_box
    The anchors, (M, 4).
anchor_var
    The variances of the anchors, (M, 4); not used.
gt_labels
    The true classes, int32 (G, 1), one sequence per image.
positive_overlap, rpn_positive_overlap
    The overlap from which an anchor is foreground.
negative_overlap, rpn_negative_overlap
    The overlap below which an anchor is background.
rpn_batch_size_per_im
    The number of anchors of an image that are sampled.
rpn_straddle_thresh
    The number of pixels that an anchor may reach beyond the image; below 0 for any.
rpn_fg_fraction
    The largest share of the sampled anchors that is foreground.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from paddlelike.core import VarType
from paddlelike.errors import GraphError
from paddlelike.framework import Variable
from paddlelike.layers.emit import WIDE_FLOATS, check_variable, emit_all
from paddlelike.layers.tensor.gather import gather
from paddlelike.layers.tensor.reshape import reshape

__all__ = ["generate_mask_labels", "generate_proposal_labels", "retinanet_target_assign", "rpn_target_assign"]


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
    """Return the scores, encoded boxes, labels, target boxes and weights of a sample of the anchors.

    Operator ``rpn_target_assign``. ``cls_logits`` has one class. F is the number of sampled anchors on
    objects, B on the background. Ren et al., Faster R-CNN, 2015.

    Returns
    -------
    scores : Variable
        (F + B, 1): the scores of the sampled anchors.
    moves : Variable
        (F, 4).
    labels : Variable
        int32 (F + B, 1).
    targets : Variable
        (F, 4): the codes of the true boxes.
    weights : Variable
        (F, 4).

    Raises
    ------
    TypeError
        An input is not a variable of its dtype.

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
    """Return scores, encoded boxes, labels, target boxes and weights of anchors, and the numbers of
    foreground anchors.

    Operator ``retinanet_target_assign``. It works like :func:`rpn_target_assign`, but takes all anchors that
    are foreground or background, without sampling. A label is a class of ``gt_labels``, from 1, or 0 for
    background. The counts are one too high, so that a loss can be divided by them. Lin et al., 2017.

    Returns
    -------
    scores : Variable
        (F + B, num_classes), for F anchors on objects and B on the background.
    moves : Variable
        (F, 4).
    labels : Variable
        int32 (F + B, 1).
    targets : Variable
        (F, 4): the codes of the true boxes.
    weights : Variable
        (F, 4).
    counts : Variable
        int32 (N, 1).

    Raises
    ------
    TypeError
        An input is not a variable of its dtype.

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
    """Return the network's predictions for the chosen anchors: scores and moves."""
    logits, moves = reshape(logits, (-1, classes)), reshape(moves, (-1, 4))
    return gather(logits, scored), gather(moves, moved)


_INT32 = (VarType.INT32,)


def generate_proposal_labels(
    rpn_rois: Variable,
    gt_classes: Variable,
    is_crowd: Variable,
    gt_boxes: Variable,
    im_info: Variable,
    batch_size_per_im: int = 256,
    fg_fraction: float = 0.25,
    fg_thresh: float = 0.25,
    bg_thresh_hi: float = 0.5,
    bg_thresh_lo: float = 0.0,
    bbox_reg_weights: Sequence[float] = [0.1, 0.1, 0.2, 0.2],
    class_nums: int | None = None,
    use_random: bool = True,
    is_cls_agnostic: bool = False,
    is_cascade_rcnn: bool = False,
) -> tuple[Variable, ...]:
    """Return a sample of regions, their classes, the offsets to their objects, and two weights for the
    offsets.

    Operator ``generate_proposal_labels``. All results have one sequence per image. A region is background if
    its overlap is in [``bg_thresh_lo``, ``bg_thresh_hi``).

    Returns
    -------
    rois : Variable
        (P, 4): the sample of regions.
    labels : Variable
        int32 (P, 1): the classes of these regions.
    moves : Variable
        (P, 4 * class_nums): the offsets from the regions to their objects.
    inside, outside : Variable
        (P, 4 * class_nums) each: weights of the offsets.

    Raises
    ------
    TypeError
        An input is not a variable of its dtype.
    GraphError
        ``class_nums`` is missing.

    >>> from paddlelike.input import data
    >>> rois, boxes = data("rois", [None, 4], lod_level=1), data("boxes", [None, 4], lod_level=1)
    >>> classes, crowd = (data(n, [None, 1], "int32", lod_level=1) for n in ("classes", "crowd"))
    >>> info = data("im_info", [None, 3])
    >>> found = generate_proposal_labels(rois, classes, crowd, boxes, info, class_nums=10)
    >>> [each.shape for each in found[:3]]
    [(-1, 4), (-1, 1), (-1, 40)]
    """
    layer = "generate_proposal_labels"
    check_variable(layer, "rpn_rois", rpn_rois, WIDE_FLOATS)
    check_variable(layer, "gt_classes", gt_classes, _INT32)
    check_variable(layer, "is_crowd", is_crowd, _INT32)
    if class_nums is None:
        raise GraphError(
            f"layer {layer!r}: class_nums is not given", hint="pass the number of classes with the background"
        )
    floats = rpn_rois.dtype
    return emit_all(
        layer,
        {
            "RpnRois": rpn_rois,
            "GtClasses": gt_classes,
            "IsCrowd": is_crowd,
            "GtBoxes": gt_boxes,
            "ImInfo": im_info,
        },
        {
            "Rois": floats,
            "LabelsInt32": gt_classes.dtype,
            "BboxTargets": floats,
            "BboxInsideWeights": floats,
            "BboxOutsideWeights": floats,
        },
        {
            "batch_size_per_im": batch_size_per_im,
            "fg_fraction": fg_fraction,
            "fg_thresh": fg_thresh,
            "bg_thresh_hi": bg_thresh_hi,
            "bg_thresh_lo": bg_thresh_lo,
            "bbox_reg_weights": list(bbox_reg_weights),
            "class_nums": class_nums,
            "use_random": use_random,
            "is_cls_agnostic": is_cls_agnostic,
            "is_cascade_rcnn": is_cascade_rcnn,
        },
        constant=True,
    )


def generate_mask_labels(
    im_info: Variable,
    gt_classes: Variable,
    is_crowd: Variable,
    gt_segms: Variable,
    rois: Variable,
    labels_int32: Variable,
    num_classes: int,
    resolution: int,
) -> tuple[Variable, ...]:
    """Return the regions that have a class, (P, 4), their indexes, (P, 1), and the masks of their objects.

    Operator ``generate_mask_labels``. The inputs except ``gt_segms`` are inputs and results of
    :func:`generate_proposal_labels`. Masks are int32 (P, num_classes * resolution ^ 2): 1 inside, 0 outside,
    -1 for other classes.

    Returns
    -------
    rois : Variable
        (P, 4) with a sequence for each image: the regions that have a class.
    rows : Variable
        int32 (P, 1): the indices of these regions in ``rois``.
    masks : Variable
        int32 (P, num_classes * resolution ^ 2).

    Raises
    ------
    TypeError
        An argument is not a variable.

    >>> from paddlelike.input import data
    >>> classes, crowd, labels = (data(n, [None, 1], "int32", lod_level=1) for n in ("c", "d", "l"))
    >>> segments, rois = data("segments", [None, 2], lod_level=3), data("rois", [None, 4], lod_level=1)
    >>> info = data("info", [None, 3])
    >>> generate_mask_labels(info, classes, crowd, segments, rois, labels, 5, 14)[2].shape
    (-1, 980)
    """
    inputs = {
        "ImInfo": im_info,
        "GtClasses": gt_classes,
        "IsCrowd": is_crowd,
        "GtSegms": gt_segms,
        "Rois": rois,
        "LabelsInt32": labels_int32,
    }
    for slot, value in inputs.items():
        check_variable("generate_mask_labels", slot, value)
    outputs = {"MaskRois": rois.dtype, "RoiHasMaskInt32": gt_classes.dtype, "MaskInt32": gt_classes.dtype}
    attrs = {"num_classes": num_classes, "resolution": resolution}
    return emit_all("generate_mask_labels", inputs, outputs, attrs, constant=True)
