"""Proposed regions: selected from anchors, and distributed over the levels of a pyramid.

Ren et al., Faster R-CNN, 2015; Lin et al., Feature pyramid networks, 2017.
"""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np

from paddlelike.core import VarType
from paddlelike.errors import EnforceNotMet, ShapeError
from paddlelike.framework.opdef import Array, Attrs, Context, Float, Int, LoD, OpDef, Spec, register
from paddlelike.ops.kernels.detection.boxes import measure_areas
from paddlelike.ops.kernels.detection.suppression import suppress
from paddlelike.ops.kernels.lod import make_lod, read_last_level
from paddlelike.ops.kernels.rounding import exp
from paddlelike.ops.kernels.sorting import argselect_unstable, argsort_descending, argsort_unstable

LARGEST: Final = math.log(1000.0 / 16.0)  # of the logarithm by which a size grows


class ProposalAttrs(Attrs):
    pre_nms_topN: int = Int()  # noqa: N815  (Paddle's name)
    post_nms_topN: int = Int()  # noqa: N815
    nms_thresh: float = Float()
    min_size: float = Float()
    eta: float = Float()


@register
class GenerateProposals(OpDef):
    """The best anchors of every image, moved by the network's output and suppressed by overlap.

    Scores ``(N, A, H, W)``; BboxDeltas ``(N, 4 A, H, W)``; ImInfo ``(N, 3)``: height, width, scale; Anchors
    and Variances ``(H, W, A, 4)``. RpnRois ``(P, 4)`` and RpnRoiProbs ``(P, 1)`` have one sequence per image;
    RpnRoisLod ``(N,)`` int64 holds their ends. The ``pre_nms_topN`` best anchors are moved and clipped to the
    image. Boxes smaller than ``min_size`` in the original image are dropped, the others suppressed by
    ``nms_thresh`` (0: not at all), and the ``post_nms_topN`` best remain. Equal scores keep the order of
    Paddle's selection and sort; without suppression the boxes are only selected, not sorted.
    """

    type = "generate_proposals"
    inputs = ("Scores", "BboxDeltas", "ImInfo", "Anchors", "Variances")
    outputs = ("RpnRois", "RpnRoiProbs", "RpnRoisLod?")
    attrs = ProposalAttrs.table()

    @classmethod
    def infer(cls, scores: Spec, deltas: Spec, info: Spec, anchors: Spec, variances: Spec) -> tuple[Any, ...]:
        for name, one in (("Scores", scores), ("BboxDeltas", deltas)):
            if len(one.shape) != 4:
                raise ShapeError(f"{cls.type}: {name} has shape {one.shape}; it needs 4 dims (N, C, H, W)")
        return Spec((-1, 4), deltas.dtype), Spec((-1, 1), scores.dtype), None

    @staticmethod
    def forward(
        ctx: Context,
        scores: Array,
        deltas: Array,
        info: Array,
        anchors: Array,
        variances: Array,
        *,
        attrs: ProposalAttrs,
    ) -> tuple[Array, Array, Array]:
        anchors, variances = anchors.reshape(-1, 4), variances.reshape(-1, 4)
        rows = deltas.transpose(0, 2, 3, 1).reshape(len(deltas), -1, 4)
        ranked = scores.transpose(0, 2, 3, 1).reshape(len(scores), -1)
        if ranked.shape[1] != len(anchors) or rows.shape[1] != len(anchors):
            raise EnforceNotMet(
                f"generate_proposals: there are {len(anchors)} anchors; Scores of shape {scores.shape} and "
                f"BboxDeltas of shape {deltas.shape} have {ranked.shape[1]} and {rows.shape[1]} per image"
            )
        found = [
            propose(each, moves, image.astype(anchors.dtype), anchors, variances, attrs)
            for each, moves, image in zip(ranked, rows, info, strict=True)
        ]
        counts = np.array([len(boxes) for boxes, _ in found])
        for slot in ("RpnRois", "RpnRoiProbs"):
            ctx.set_lod(slot, [make_lod(counts)])
        boxes, probabilities = (np.concatenate(parts) for parts in zip(*found, strict=True))
        return boxes, probabilities[:, None], np.cumsum(counts, dtype=np.int64)


def propose(
    scores: Array,
    deltas: Array,
    info: Array,
    anchors: Array,
    variances: Array,
    attrs: ProposalAttrs,
    *,
    offset: float = 1,
) -> tuple[Array, Array]:
    """Return the boxes of one image and their scores, the best first.

    ``info`` holds height, width and scale. ``offset`` is added to widths: 1 for boxes that include their last
    pixel, else 0.
    """
    limit = attrs.pre_nms_topN
    order = _choose_best(scores, limit, is_sorted_later=attrs.nms_thresh > 0)
    boxes = _move_anchors(anchors[order], deltas[order], variances[order], offset)
    edge = boxes.dtype.type(offset)
    boxes = np.maximum(np.minimum(boxes, info[[1, 0, 1, 0]] - edge), 0)
    kept = _find_large(boxes, info, max(np.float32(attrs.min_size), np.float32(1)), offset)
    boxes, scores = boxes[kept], scores[order][kept]
    if attrs.nms_thresh <= 0:
        return boxes, scores
    # Paddle sorts again, from low to high, and takes the boxes from the end: equal scores change places.
    boxes, scores = boxes[::-1], scores[::-1]
    again = argsort_descending(scores)
    boxes, scores = boxes[again], scores[again]
    most = attrs.post_nms_topN if attrs.post_nms_topN > 0 else -1
    left = suppress(boxes, threshold=attrs.nms_thresh, eta=attrs.eta, normalized=not offset, most=most)
    return boxes[left], scores[left]


def _choose_best(scores: Array, limit: int, *, is_sorted_later: bool) -> Array:
    """Return the indices of the ``limit`` highest scores, or of all, in Paddle's order."""
    if not 0 < limit < len(scores):
        return argsort_unstable(scores)
    best = argsort_descending(scores)
    ranked = scores[best[: limit + 1]]
    if is_sorted_later and not (ranked[1:] == ranked[:-1]).any():
        return best[:limit]
    return argselect_unstable(scores, limit)


def _move_anchors(anchors: Array, deltas: Array, variances: Array, offset: float) -> Array:
    real = anchors.dtype.type
    size = anchors[:, 2:] - anchors[:, :2] + real(offset)
    center = anchors[:, :2] + real(0.5) * size
    steps = variances * deltas
    middle = steps[:, :2] * size + center
    new_size = exp(np.minimum(steps[:, 2:], real(LARGEST))) * size
    half = new_size / real(2)
    return np.concatenate([middle - half, middle + half - real(offset)], 1)


def _find_large(boxes: Array, info: Array, least: Any, offset: float) -> Array:
    """Return a mask of boxes that are large enough in the original image and have their centers in it."""
    span = boxes[:, 2:] - boxes[:, :2]
    large: Array = (span / info[2] + boxes.dtype.type(offset) >= least).all(1)
    if not offset:
        return large
    center = boxes[:, :2] + (span + boxes.dtype.type(1)) / boxes.dtype.type(2)
    inside: Array = large & (center <= info[[1, 0]]).all(1)
    return inside


class LevelAttrs(Attrs):
    min_level: int = Int()
    max_level: int = Int()
    refer_level: int = Int()
    refer_scale: int = Int()


@register
class DistributeFpnProposals(OpDef):
    """Regions, each in the level of the pyramid that fits its size.

    FpnRois ``(R, 4)`` has one sequence per image. MultiFpnRois holds the regions of each level from
    ``min_level`` to ``max_level``, one sequence per image. RestoreIndex ``(R, 1)`` int32 is the position of
    each region when all levels are joined. A region with sides of ``refer_scale`` belongs to ``refer_level``,
    one with sides twice as long to the next level.
    """

    type = "distribute_fpn_proposals"
    inputs = ("FpnRois",)
    outputs = ("MultiFpnRois*", "RestoreIndex")
    attrs = LevelAttrs.table()

    @staticmethod
    def infer(rois: Spec, *, attrs: LevelAttrs) -> tuple[list[Spec], Spec]:
        count = attrs.max_level - attrs.min_level + 1
        if count < 1:
            raise ShapeError(
                f"distribute_fpn_proposals: max_level is {attrs.max_level}, min_level {attrs.min_level}; "
                "expected one level or more"
            )
        return [Spec((-1, 4), rois.dtype, 1) for _ in range(count)], Spec((-1, 1), VarType.INT32)

    @staticmethod
    def forward(ctx: Context, rois: Array, *, attrs: LevelAttrs) -> tuple[list[Array], Array]:
        offsets = read_last_level(ctx, "FpnRois", len(rois))
        scale = np.sqrt(measure_areas(rois, normalized=False)) / rois.dtype.type(attrs.refer_scale)
        level, restore = divide_by_size(scale, attrs)
        owners = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
        parts = []
        for i in range(attrs.max_level - attrs.min_level + 1):
            chosen = level == i
            parts.append(rois[chosen])
            ctx.set_lod(
                "MultiFpnRois", [make_lod(np.bincount(owners[chosen], minlength=len(offsets) - 1))], i
            )
        return parts, restore


def divide_by_size(scale: Array, attrs: LevelAttrs) -> tuple[Array, Array]:
    """Return the level of each region, from 0, and its position when the regions of all levels are joined.

    ``scale`` holds the sizes of the regions, divided by the size of ``refer_level``.
    """
    with np.errstate(divide="ignore"):
        steps = np.log2(scale, dtype=np.float64).astype(scale.dtype)
    steps = np.floor(steps + scale.dtype.type(attrs.refer_level))
    whole = np.where(np.abs(steps) < 2**31, steps, -(2**31))  # what C gives when an int overflows
    level = np.clip(whole, attrs.min_level, attrs.max_level).astype(np.int64) - attrs.min_level
    restore = np.empty((len(scale), 1), np.int32)
    restore[np.argsort(level, kind="stable"), 0] = np.arange(len(scale))
    return level, restore


@register
class CollectFpnProposals(OpDef):
    """The best ``post_nms_topN`` regions of all levels, grouped by image.

    MultiLevelRois ``(R, 4)`` and MultiLevelScores ``(R, 1)`` of every level, with one sequence per image;
    FpnRois: the best regions of the batch, image by image, in the order of their scores. Equal scores come in
    reverse order, as in Paddle. An image without regions has an empty sequence, which Paddle leaves out of
    the LoD.
    """

    type = "collect_fpn_proposals"
    inputs = ("MultiLevelRois*", "MultiLevelScores*")
    outputs = ("FpnRois",)
    attrs = {"post_nms_topN": Int()}

    @staticmethod
    def infer(rois: list[Spec], scores: list[Spec], *, post_nms_topN: int) -> Spec:  # noqa: N803
        if len(rois) != len(scores) or not rois:
            raise ShapeError(
                f"collect_fpn_proposals: got {len(rois)} MultiLevelRois, but {len(scores)} MultiLevelScores"
            )
        if post_nms_topN < 0:
            raise ShapeError(f"collect_fpn_proposals: post_nms_topN is {post_nms_topN}, expected 0 or more")
        return Spec((post_nms_topN, 4), rois[0].dtype, 1)

    @staticmethod
    def forward(ctx: Context, rois: list[Array], scores: list[Array], *, post_nms_topN: int) -> Array:  # noqa: N803
        offsets: list[Array] = [
            read_last_level(ctx, "MultiLevelScores", len(each), i) for i, each in enumerate(scores)
        ]
        images = len(offsets[0]) - 1
        owners = np.concatenate([np.repeat(np.arange(len(each) - 1), np.diff(each)) for each in offsets])
        ranked = np.concatenate([each.reshape(-1) for each in scores])
        backwards = argsort_descending(ranked[::-1])[:post_nms_topN]
        best = len(ranked) - 1 - backwards
        best = best[np.argsort(owners[best], kind="stable")]
        lod: LoD = [make_lod(np.bincount(owners[best], minlength=images))]
        ctx.set_lod("FpnRois", lod)
        return np.concatenate(rois)[best]
