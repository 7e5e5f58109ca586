"""Regions that a network proposes: chosen from anchors, divided among levels, labelled for training.

Ren et al., Faster R-CNN, 2015; Lin et al., Feature pyramid networks, 2017; He et al., Mask R-CNN, 2017.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from paddlelike.core.dtypes import VarType
from paddlelike.errors import GraphError
from paddlelike.framework.graph.variable import Variable
from paddlelike.layers.checks import WIDE_FLOATS, check_variable, check_variables, describe
from paddlelike.layers.emit import emit, emit_all
from paddlelike.layers.helper import LayerHelper

__all__ = [
    "collect_fpn_proposals",
    "distribute_fpn_proposals",
    "generate_mask_labels",
    "generate_proposal_labels",
    "generate_proposals",
    "retinanet_detection_output",
]

_INT32 = (VarType.INT32,)


def generate_proposals(
    scores: Variable,
    bbox_deltas: Variable,
    im_info: Variable,
    anchors: Variable,
    variances: Variable,
    pre_nms_top_n: int = 6000,
    post_nms_top_n: int = 1000,
    nms_thresh: float = 0.5,
    min_size: float = 0.1,
    eta: float = 1.0,
    name: str | None = None,
    return_rois_num: bool = False,
) -> tuple[Variable, ...]:
    """Return the regions that look most like objects, (P, 4), and their scores, (P, 1).

    Operator ``generate_proposals``. ``scores`` (N, A, H, W) and ``bbox_deltas`` (N, 4 A, H, W) belong to
    ``anchors`` (H, W, A, 4) with ``variances`` of the same shape; ``im_info`` (N, 3): height, width, scale.
    The results have one sequence per image; with ``return_rois_num`` the end of each, int64 (N,), comes
    third. ``pre_nms_top_n`` are taken by score, ``post_nms_top_n`` are left by suppression at
    ``nms_thresh``; those below ``min_size`` pixels of the original image are dropped. Raises TypeError for
    inputs of another dtype than float32.

    ``eta`` below 1 lowers the threshold of suppression from box to box.

    >>> from paddlelike.input import data
    >>> scores, deltas = data("scores", [None, 3, 8, 8]), data("deltas", [None, 12, 8, 8])
    >>> anchors, variances = data("anchors", [8, 8, 3, 4]), data("variances", [8, 8, 3, 4])
    >>> rois, probs = generate_proposals(scores, deltas, data("info", [None, 3]), anchors, variances)
    >>> rois.shape, probs.shape
    ((-1, 4), (-1, 1))
    """
    layer = "generate_proposals"
    inputs = {"scores": scores, "bbox_deltas": bbox_deltas, "anchors": anchors, "variances": variances}
    for argument, value in inputs.items():
        check_variable(layer, argument, value, WIDE_FLOATS[:1])
    check_variable(layer, "im_info", im_info, WIDE_FLOATS)
    found = emit_all(
        layer,
        {
            "Scores": scores,
            "BboxDeltas": bbox_deltas,
            "ImInfo": im_info,
            "Anchors": anchors,
            "Variances": variances,
        },
        {"RpnRois": bbox_deltas.dtype, "RpnRoiProbs": scores.dtype, "RpnRoisLod": "int32"},
        {
            "pre_nms_topN": pre_nms_top_n,
            "post_nms_topN": post_nms_top_n,
            "nms_thresh": nms_thresh,
            "min_size": min_size,
            "eta": eta,
        },
        name=name,
        constant=True,
    )
    return found if return_rois_num else found[:2]


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
    """Return a sample of regions, their classes, moves to their objects, and two weights of the moves.

    Operator ``generate_proposal_labels``. ``rpn_rois`` (R, 4), ``gt_classes`` and ``is_crowd`` (G, 1)
    int32, ``gt_boxes`` (G, 4) have one sequence per image; ``im_info`` (N, 3): height, width, scale. The
    results are (P, 4), (P, 1) int32 and three of (P, 4 * class_nums), also with one sequence per image. A
    region is foreground from an overlap of ``fg_thresh`` on, background in [``bg_thresh_lo``,
    ``bg_thresh_hi``). The moves are divided by ``bbox_reg_weights``. Raises TypeError for other dtypes,
    GraphError without ``class_nums``.

    Of ``batch_size_per_im`` boxes an image ``fg_fraction`` are foreground, drawn at random with
    ``use_random``. ``is_cls_agnostic`` has one box for all classes, ``is_cascade_rcnn`` takes boxes
    of a stage before.

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
        raise GraphError(f"layer {layer!r}: class_nums is not given", hint="count the background, too")
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
    """Return the regions that have a class, (P, 4), their rows, (P, 1), and the masks of their objects.

    Operator ``generate_mask_labels``. ``gt_segms`` (S, 2): points of polygons with three levels of LoD
    (objects of images, polygons of objects, points of polygons); the other inputs are those and the results
    of :func:`generate_proposal_labels`. Masks are int32 (P, num_classes * resolution ^ 2): 1 inside, 0
    outside, -1 for other classes. Raises TypeError when an argument is no variable.

    ``rois`` are the boxes, (R, 4), ``labels_int32`` their classes, (R, 1).

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


def distribute_fpn_proposals(
    fpn_rois: Variable,
    min_level: int,
    max_level: int,
    refer_level: int,
    refer_scale: int,
    name: str | None = None,
) -> tuple[list[Variable], Variable]:
    """Return the regions of each level of a feature pyramid, and where each region is among them.

    Operator ``distribute_fpn_proposals``. ``fpn_rois`` (R, 4) with one sequence per image; a region of
    ``refer_scale`` pixels squared belongs to ``refer_level``, one of twice the size to the next. The levels
    from ``min_level`` to ``max_level`` are (R', 4) with one sequence per image; gather of all of them,
    joined, with the second result, int32 (R, 1), restores the order. Raises TypeError when ``fpn_rois`` is
    no variable.

    >>> from paddlelike.input import data
    >>> rois = data("rois", [None, 4], lod_level=1)
    >>> levels, restore = distribute_fpn_proposals(rois, 2, 5, refer_level=4, refer_scale=224)
    >>> len(levels), restore.shape
    (4, (-1, 1))
    """
    layer = "distribute_fpn_proposals"
    check_variable(layer, "fpn_rois", fpn_rois)
    helper = LayerHelper(layer, name=name)
    levels = [
        helper.create_variable_for_type_inference(fpn_rois.dtype) for _ in range(min_level, max_level + 1)
    ]
    restore = helper.create_variable_for_type_inference("int32")
    helper.append_op(
        type=layer,
        inputs={"FpnRois": fpn_rois},
        outputs={"MultiFpnRois": levels, "RestoreIndex": restore},
        attrs={
            "min_level": min_level,
            "max_level": max_level,
            "refer_level": refer_level,
            "refer_scale": refer_scale,
        },
    )
    return levels, restore


def collect_fpn_proposals(
    multi_rois: Sequence[Variable],
    multi_scores: Sequence[Variable],
    min_level: int,
    max_level: int,
    post_nms_top_n: int,
    name: str | None = None,
) -> Variable:
    """Return the ``post_nms_top_n`` best regions of all levels of a feature pyramid, image by image.

    Operator ``collect_fpn_proposals``. ``multi_rois`` are (R, 4) and ``multi_scores`` (R, 1) for each level
    from ``min_level`` to ``max_level``, with one sequence per image. Raises TypeError when one is no
    variable.

    >>> from paddlelike.input import data
    >>> rois = [data(f"rois{i}", [None, 4], lod_level=1) for i in range(2)]
    >>> scores = [data(f"scores{i}", [None, 1], lod_level=1) for i in range(2)]
    >>> collect_fpn_proposals(rois, scores, 2, 3, post_nms_top_n=100).shape
    (100, 4)
    """
    layer, count = "collect_fpn_proposals", max_level - min_level + 1
    rois = check_variables(layer, "multi_rois", multi_rois)[:count]
    scores = check_variables(layer, "multi_scores", multi_scores)[:count]
    inputs = {"MultiLevelRois": rois, "MultiLevelScores": scores}
    return emit(layer, inputs, {"post_nms_topN": post_nms_top_n}, slot="FpnRois", name=name, constant=True)


def retinanet_detection_output(
    bboxes: list[Variable],
    scores: list[Variable],
    anchors: list[Variable],
    im_info: Variable,
    score_threshold: float = 0.05,
    nms_top_k: int = 1000,
    keep_top_k: int = 100,
    nms_threshold: float = 0.3,
    nms_eta: float = 1.0,
) -> Variable:
    """Return what is seen in each image: (D, 6), class from 1 on, score, corners; one sequence per image.

    Operator ``retinanet_detection_output``. For each level ``bboxes`` (N, M, 4) moves ``anchors`` (M, 4),
    and ``scores`` (N, M, C) are probabilities; ``im_info`` (N, 3): height, width, scale. As in Fluid 1.8
    ``nms_eta`` is not passed on: the threshold of the suppression stays. Raises TypeError for other types.

    Of each level the ``nms_top_k`` best above ``score_threshold`` are taken; of all, those that
    overlap by less than ``nms_threshold``, at most ``keep_top_k``.

    >>> from paddlelike.input import data
    >>> moves, scores = data("moves", [None, 90, 4]), data("scores", [None, 90, 8])
    >>> anchors, info = data("anchors", [90, 4]), data("info", [None, 3])
    >>> retinanet_detection_output([moves], [scores], [anchors], info).shape
    (90, 6)
    """
    layer = "retinanet_detection_output"
    lists: dict[str, Any] = {"bboxes": bboxes, "scores": scores, "anchors": anchors}
    for argument, value in lists.items():
        if not isinstance(value, list):
            raise TypeError(f"layer {layer!r}: {argument} must be a list of variables, got {describe(value)}")
        check_variables(layer, argument, value, WIDE_FLOATS)
    check_variable(layer, "im_info", im_info, WIDE_FLOATS)
    return emit(
        layer,
        {"BBoxes": bboxes, "Scores": scores, "Anchors": anchors, "ImInfo": im_info},
        {
            "score_threshold": score_threshold,
            "nms_top_k": nms_top_k,
            "nms_threshold": nms_threshold,
            "keep_top_k": keep_top_k,
            "nms_eta": 1.0,
        },
        dtype=scores[0].dtype,
        constant=True,
    )
