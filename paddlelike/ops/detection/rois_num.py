"""Pools over regions of images, where a separate tensor holds the number of regions of each image."""

from __future__ import annotations

import numpy as np

from paddlelike.errors import EnforceNotMet
from paddlelike.framework.opdef import Array, Bool, Context
from paddlelike.ops.detection.proposals import LevelAttrs, ProposalAttrs, divide_by_size, propose
from paddlelike.ops.detection.regions.roi_align import AlignAttrs, RoiAttrs, sample_regions
from paddlelike.ops.detection.regions.roi_pool import PsRoiAttrs, RoiPool, pool_means
from paddlelike.ops.detection.suppression.kept import NmsAttrs
from paddlelike.ops.detection.suppression.matrix import MatrixNmsAttrs, keep_decayed
from paddlelike.ops.detection.suppression.multiclass import keep_boxes
from paddlelike.ops.kernels.detection.boxes import measure_areas
from paddlelike.ops.kernels.detection.regions import index_images, pool_by_axes
from paddlelike.ops.kernels.lod import find_lod
from paddlelike.ops.later import register_kernel


class LaterAlignAttrs(AlignAttrs):
    """Attributes of the later roi_align. With ``aligned``, a pixel is the point in the middle of its
    square.
    """

    aligned: bool = Bool(False)


@register_kernel("roi_align", "X ROIs RoisNum? -> Out", LaterAlignAttrs.table(), changed=True)
def _roi_align(ctx: Context, x: Array, rois: Array, counts: Array | None, *, attrs: LaterAlignAttrs) -> Array:
    """The mean of X over each bin of a region, interpolated linearly between pixels."""
    if not len(rois):
        return np.empty((0, x.shape[1], attrs.pooled_height, attrs.pooled_width), x.dtype)
    places = {"shift": 0.5, "least": 0} if attrs.aligned else {"shift": 0.0, "least": 1}
    weights = sample_regions(x, rois, attrs, shift=places["shift"], least=int(places["least"]))
    return pool_by_axes(x, _find_owners(ctx, x, rois, counts), *weights)


@register_kernel("roi_pool", "X ROIs RoisNum? -> Out Argmax", RoiAttrs.table(), changed=True)
def _roi_pool(ctx: Context, x: Array, rois: Array, counts: Array | None, *, attrs: RoiAttrs) -> object:
    """The maximum of X in each bin of a region, and its index."""
    owners = _find_owners(ctx, x, rois, counts)
    offsets = np.r_[0, np.cumsum(np.bincount(owners, minlength=len(x)))]
    return RoiPool.forward(ctx, x, rois, offsets, attrs=attrs)


class LaterProposalAttrs(ProposalAttrs):
    """Attributes of the later generate_proposals. Without ``pixel_offset`` a box from 3 to 5 has width 2."""

    pixel_offset: bool = Bool(True)


@register_kernel(
    "generate_proposals_v2",
    "Scores BboxDeltas ImShape Anchors Variances -> RpnRois RpnRoiProbs RpnRoisNum?",
    LaterProposalAttrs.table(),
    ends_gradients=True,
)
def _generate_proposals(
    scores: Array, deltas: Array, sizes: Array, anchors: Array, variances: Array, *, attrs: LaterProposalAttrs
) -> tuple[Array, Array, Array]:
    """The best anchors of every image, moved by the network's output. ImShape ``(N, 2)`` is height, width."""
    anchors, variances = anchors.reshape(-1, 4), variances.reshape(-1, 4)
    moves = deltas.transpose(0, 2, 3, 1).reshape(len(deltas), -1, 4)
    ranked = scores.transpose(0, 2, 3, 1).reshape(len(scores), -1)
    infos = np.concatenate([sizes, np.ones_like(sizes[:, :1])], 1).astype(anchors.dtype)
    found = [
        propose(*each, anchors, variances, attrs, offset=float(attrs.pixel_offset))
        for each in zip(ranked, moves, infos, strict=True)
    ]
    boxes, probabilities = (np.concatenate(parts) for parts in zip(*found, strict=True))
    return boxes, probabilities[:, None], np.array([len(one) for one, _ in found], np.int32)


class LaterLevelAttrs(LevelAttrs):
    """Attributes of the later distribute_fpn_proposals."""

    pixel_offset: bool = Bool(True)


@register_kernel(
    "distribute_fpn_proposals",
    "FpnRois RoisNum? -> MultiFpnRois* RestoreIndex MultiLevelRoIsNum*?",
    LaterLevelAttrs.table(),
    changed=True,
)
def _distribute(
    ctx: Context, rois: Array, counts: Array | None, *, attrs: LaterLevelAttrs
) -> tuple[list[Array], Array, list[Array]]:
    """Regions, each in the level of the pyramid that fits its size, and the count per image of each level."""
    if counts is None:
        counts = np.diff((find_lod(ctx, "FpnRois") or [[0, len(rois)]])[-1])
    each = counts.reshape(-1)
    owners = np.repeat(np.arange(len(each)), each)
    scale = np.sqrt(measure_areas(rois, normalized=not attrs.pixel_offset))
    level, restore = divide_by_size(scale / rois.dtype.type(attrs.refer_scale) + rois.dtype.type(1e-8), attrs)
    chosen = [level == index for index in range(attrs.max_level - attrs.min_level + 1)]
    held = [np.bincount(owners[mine], minlength=len(each)).astype(np.int32) for mine in chosen]
    for index, one in enumerate(held):
        ctx.set_lod("MultiFpnRois", [[0, *np.cumsum(one).tolist()]], index)
    return [rois[mine] for mine in chosen], restore, held


@register_kernel(
    "multiclass_nms3",
    "BBoxes Scores RoisNum? -> Out Index? NmsRoisNum?",
    NmsAttrs.table(),
    ends_gradients=True,
)
def _multiclass_nms(
    boxes: Array, scores: Array, counts: Array | None, *, attrs: NmsAttrs
) -> tuple[Array, Array, Array]:
    """Suppress boxes as multiclass_nms2 does; a tensor, not a LoD, holds the number of boxes per image."""
    if counts is None:
        return keep_boxes(boxes, scores, None, attrs)
    return keep_boxes(boxes, scores, np.r_[0, np.cumsum(counts)], attrs)


@register_kernel("matrix_nms", "BBoxes Scores -> Out Index? RoisNum?", MatrixNmsAttrs.table(), changed=True)
def _matrix_nms(boxes: Array, scores: Array, *, attrs: MatrixNmsAttrs) -> tuple[Array, Array, Array]:
    """Suppress boxes as Fluid 1.8 does; a tensor, not a LoD, holds the number of boxes kept per image."""
    return keep_decayed(boxes, scores, attrs)


@register_kernel("psroi_pool", "X ROIs RoisNum? -> Out", PsRoiAttrs.table(), changed=True)
def _psroi_pool(ctx: Context, x: Array, rois: Array, counts: Array | None, *, attrs: PsRoiAttrs) -> Array:
    """The mean in each bin of a region; every bin reads a separate channel."""
    return pool_means(x, rois.astype(x.dtype, copy=False), _find_owners(ctx, x, rois, counts), attrs)


def _find_owners(ctx: Context, x: Array, rois: Array, counts: Array | None) -> Array:
    """Return the image index of each region, from the counts or the LoD; without both, 0.

    Raises EnforceNotMet for counts or a LoD that do not fit the images and the regions.
    """
    if counts is None:
        return index_images(ctx, len(rois), len(x)) if find_lod(ctx, "ROIs") else np.zeros(len(rois), np.intp)
    each = counts.reshape(-1)
    if len(each) != len(x) or each.sum() != len(rois) or (each < 0).any():
        raise EnforceNotMet(
            f"RoisNum is {each.tolist()}; there are {len(x)} images and {len(rois)} regions",
            hint="it holds the number of regions of each image; their sum is the number of all regions",
        )
    return np.repeat(np.arange(len(each)), each)
