"""Pools over regions of images, whose count for each image is a tensor of its own."""

from __future__ import annotations

from typing import Any

import numpy as np

from paddlelike.framework.opdef import Array, Bool
from paddlelike.ops.detection.roi_align import AlignAttrs, RoiAttrs, sample_regions
from paddlelike.ops.detection.roi_pool import RoiPool
from paddlelike.ops.kernels.detection.regions import pool_by_axes
from paddlelike.ops.paddle2.registration import register_kernel


class LaterAlignAttrs(AlignAttrs):
    """Attributes of the later roi_align; ``aligned``: pixels are points in the middle of their squares."""

    aligned: bool = Bool(False)


@register_kernel("roi_align", "X ROIs RoisNum? -> Out", LaterAlignAttrs.table(), changed=True)
def _roi_align(x: Array, rois: Array, counts: Array | None, *, attrs: LaterAlignAttrs) -> Array:
    """The mean of X over each bin of a region, linear between pixels."""
    if not len(rois):
        return np.empty((0, x.shape[1], attrs.pooled_height, attrs.pooled_width), x.dtype)
    places = {"shift": 0.5, "least": 0} if attrs.aligned else {"shift": 0.0, "least": 1}
    weights = sample_regions(x, rois, attrs, shift=places["shift"], least=int(places["least"]))
    return pool_by_axes(x, _find_owners(x, rois, counts), *weights)


@register_kernel("roi_pool", "X ROIs RoisNum? -> Out Argmax", RoiAttrs.table(), changed=True)
def _roi_pool(x: Array, rois: Array, counts: Array | None, *, attrs: RoiAttrs) -> Any:
    """The maximum of X in each bin of a region, and its place."""
    owners = _find_owners(x, rois, counts)
    offsets = np.r_[0, np.cumsum(np.bincount(owners, minlength=len(x)))]
    context: Any = None  # it would tell the offsets
    return RoiPool.forward(context, x, rois, offsets, attrs=attrs)


def _find_owners(x: Array, rois: Array, counts: Array | None) -> Array:
    """Return the index of the image of each region; without counts all are of the first."""
    each = np.array([len(rois)]) if counts is None else counts.reshape(-1)
    return np.repeat(np.arange(len(each)), each)
