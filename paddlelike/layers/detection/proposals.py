"""Proposed regions: selected from anchors, distributed over levels, labelled for training.

Ren et al., Faster R-CNN, 2015; Lin et al., Feature pyramid networks, 2017; He et al., Mask R-CNN, 2017.

Parameters
----------
multi_rois
    The regions of each level, (R, 4), one sequence per image.
multi_scores
    Their scores, (R, 1).
min_level, max_level
    The first and the last level of the pyramid.
post_nms_top_n
    The number of regions of an image that remain.
fpn_rois
    Regions (R, 4), one sequence per image.
refer_level
    The level of a square region with sides of ``refer_scale`` pixels.
refer_scale
    The side of a region of level ``refer_level``, in pixels.
scores
    The scores of the anchors: how likely each is an object, (N, A, H, W).
bbox_deltas
    Codes of the boxes, (N, 4 * A, H, W).
im_info
    (height, width, scale) of each image, (N, 3).
anchors
    The anchors, (H, W, A, 4).
variances
    Their variances, in the same shape.
pre_nms_top_n
    The number of anchors of an image that are taken by score.
nms_thresh
    The overlap from which a worse box is dropped.
min_size
    The least side of a region, in pixels of the original image.
eta
    A factor; below 1, the overlap threshold is multiplied by it after each box that is kept.
return_rois_num
    Whether the end of each image's regions is returned as well.
"""

from __future__ import annotations

from collections.abc import Sequence

from paddlelike.framework import Variable
from paddlelike.layers.emit import WIDE_FLOATS, check_variable, check_variables, emit, emit_all
from paddlelike.layers.helper import LayerHelper

__all__ = ["collect_fpn_proposals", "distribute_fpn_proposals", "generate_proposals"]


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
    """Return the regions most likely to be objects, (P, 4), and their scores, (P, 1).

    Operator ``generate_proposals``. In each image, the ``pre_nms_top_n`` anchors with the best scores are
    decoded. Regions below ``min_size`` are dropped. Non-maximum suppression at ``nms_thresh`` keeps at most
    ``post_nms_top_n`` of the others.

    Returns
    -------
    rois : Variable
        (P, 4) with a sequence for each image.
    scores : Variable
        (P, 1) with the same LoD.
    ends : Variable
        Only with ``return_rois_num``: int64 (N,), the end of each image's regions.

    Raises
    ------
    TypeError
        An input is not a variable of float32.

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


def distribute_fpn_proposals(
    fpn_rois: Variable,
    min_level: int,
    max_level: int,
    refer_level: int,
    refer_scale: int,
    name: str | None = None,
) -> tuple[list[Variable], Variable]:
    """Return the regions of each level of a feature pyramid, and the index that restores the original order.

    Operator ``distribute_fpn_proposals``. A square region with sides of ``refer_scale`` pixels belongs to
    ``refer_level``, a region with sides twice as long to the next level. To restore the order, concatenate
    the regions of all levels and ``gather`` them by the second result.

    Returns
    -------
    levels : list
        For each level its regions, (R', 4), with a sequence for each image.
    restore : Variable
        int32 (R, 1): the position of each region among the concatenated regions of all levels.

    Raises
    ------
    TypeError
        ``fpn_rois`` is not a variable.

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
    from ``min_level`` to ``max_level``, with one sequence per image.

    Returns
    -------
    Variable
        (R', 4) with a sequence for each image, R' at most ``post_nms_top_n``.

    Raises
    ------
    TypeError
        An element of ``multi_rois`` or ``multi_scores`` is not a variable.

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
