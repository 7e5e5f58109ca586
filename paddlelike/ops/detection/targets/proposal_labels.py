"""generate_proposal_labels: a sample of proposed regions, with the targets for training a detector.

Ren et al., Faster R-CNN, 2015; Cai and Vasconcelos, Cascade R-CNN, 2018.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np

from paddlelike.core import Generator
from paddlelike.errors import EnforceNotMet, ShapeError
from paddlelike.framework.opdef import Array, Attrs, Bool, Context, Float, Floats, Int, OpDef, Spec, register
from paddlelike.ops.kernels.detection.boxes import encode_boxes, overlap_pixels, sample_reservoir
from paddlelike.ops.kernels.lod import check_equal_counts, make_lod, read_last_level

_EQUAL: Final = 1e-5  # overlaps nearer than that are equal


class _Attrs(Attrs):
    batch_size_per_im: int = Int()
    fg_fraction: float = Float()
    fg_thresh: float = Float()
    bg_thresh_hi: float = Float()
    bg_thresh_lo: float = Float()
    bbox_reg_weights: list[float] = Floats()
    class_nums: int = Int()
    use_random: bool = Bool(True)
    is_cascade_rcnn: bool = Bool(False)
    is_cls_agnostic: bool = Bool(False)


class _Objects(NamedTuple):
    """The objects of one image."""

    boxes: Array  # (G, 4), in the original image
    classes: Array
    crowd: Array


@register
class GenerateProposalLabels(OpDef):
    """A sample of the proposed regions and objects of each image, with classes and offsets to their objects.

    RpnRois ``(R, 4)``, GtClasses ``(G, 1)`` int32, IsCrowd ``(G, 1)`` int32 and GtBoxes ``(G, 4)`` have one
    sequence per image; ImInfo ``(N, 3)``: height, width, and the scale of RpnRois (GtBoxes are in the
    original image). A region is foreground if its greatest overlap with an object is ``fg_thresh`` or more,
    background if it is in [``bg_thresh_lo``, ``bg_thresh_hi``). The sample has ``batch_size_per_im`` regions,
    of them at most the share ``fg_fraction`` foreground; with ``is_cascade_rcnn`` all regions are taken.

    Rois ``(P, 4)`` are in the scaled image; LabelsInt32 ``(P, 1)`` is the class, 0 for background.
    BboxTargets and the two weights are ``(P, 4 * class_nums)``; the offsets, and weights of 1, stand in the
    columns of the class (of class 1 with ``is_cls_agnostic``). All have one sequence per image.
    ``use_random=False`` takes the first regions. The random choice comes from the scope's generator; Paddle's
    is seeded by the operating system.
    """

    type = "generate_proposal_labels"
    inputs = ("RpnRois", "GtClasses", "IsCrowd", "GtBoxes", "ImInfo")
    outputs = ("Rois", "LabelsInt32", "BboxTargets", "BboxInsideWeights", "BboxOutsideWeights")
    attrs = _Attrs.table()

    @classmethod
    def infer(
        cls, rois: Spec, classes: Spec, crowd: Spec, boxes: Spec, info: Spec, *, attrs: _Attrs
    ) -> tuple[Spec, ...]:
        for name, one in (("RpnRois", rois), ("GtBoxes", boxes), ("ImInfo", info)):
            if len(one.shape) != 2:
                raise ShapeError(f"{cls.type}: {name} has shape {one.shape}; it needs 2 dims")
        wide = Spec((-1, 4 * attrs.class_nums), rois.dtype)
        return Spec((-1, 4), rois.dtype), Spec((-1, 1), classes.dtype), wide, wide, wide

    @classmethod
    def forward(
        cls,
        ctx: Context,
        rois: Array,
        classes: Array,
        crowd: Array,
        boxes: Array,
        info: Array,
        *,
        attrs: _Attrs,
    ) -> tuple[Any, ...]:
        given = {"RpnRois": rois, "GtClasses": classes, "IsCrowd": crowd, "GtBoxes": boxes}
        offsets = {slot: read_last_level(ctx, slot, len(array)) for slot, array in given.items()}
        check_equal_counts(cls.type, list(offsets), [len(each) - 1 for each in offsets.values()])
        seed = int(ctx.random(0).integers(1, 2**31 - 1, (1,))[0]) if attrs.use_random else None
        results = []
        for i, image in enumerate(info.astype(rois.dtype, copy=False)[: len(offsets["RpnRois"]) - 1]):
            part = {slot: array[slice(*offsets[slot][i : i + 2])] for slot, array in given.items()}
            objects = _Objects(
                part["GtBoxes"].astype(rois.dtype, copy=False),
                part["GtClasses"].reshape(-1),
                part["IsCrowd"].reshape(-1),
            )
            results.append(_label(part["RpnRois"], objects, image[2], attrs, seed))
        counts = np.array([len(each) for each, *_ in results])
        for slot in cls.outputs:
            ctx.set_lod(slot, [make_lod(counts)])
        return tuple(np.concatenate(parts) for parts in zip(*results, strict=True))


def _label(
    rois: Array, objects: _Objects, scale: Any, attrs: _Attrs, seed: int | None
) -> tuple[Array, Array, Array, Array, Array]:
    """Return the outputs of one image."""
    if not len(objects.boxes):
        raise EnforceNotMet(
            "generate_proposal_labels: an image has no objects; real Paddle fails on such images, too",
            hint="leave images without objects out of the batch",
        )
    boxes = _join_objects(rois, objects, scale, cascade=attrs.is_cascade_rcnn)
    overlaps = overlap_pixels(boxes, objects.boxes)
    best = overlaps.max(1)
    best[: len(objects.crowd)][objects.crowd[: len(best)] != 0] = -1
    if attrs.is_cascade_rcnn:
        best[((boxes[:, 2:] - boxes[:, :2] + 1) <= 0).any(1)] = -1
    near = np.flatnonzero(best >= np.float32(attrs.fg_thresh))
    far = np.flatnonzero(
        (best < np.float32(attrs.fg_thresh))
        & (best >= np.float32(attrs.bg_thresh_lo))
        & (best < np.float32(attrs.bg_thresh_hi))
    )
    if not attrs.is_cascade_rcnn:
        near, far = _sample(near, far, attrs, seed)
    nearest = (np.abs(overlaps[near] - best[near, None]) < _EQUAL).argmax(1)
    chosen = boxes[np.concatenate([near, far])]
    labels = np.zeros((len(chosen), 1), np.int32)
    labels[: len(near), 0] = objects.classes[nearest]
    moves = encode_boxes(chosen[: len(near)], objects.boxes[nearest], attrs.bbox_reg_weights)
    targets = np.zeros((len(chosen), attrs.class_nums, 4), rois.dtype)
    weights = np.zeros_like(targets)
    rows = np.flatnonzero(labels[:, 0] > 0)
    columns = np.ones(len(rows), np.int64) if attrs.is_cls_agnostic else labels[rows, 0]
    if (columns >= attrs.class_nums).any():
        raise EnforceNotMet(
            f"generate_proposal_labels: a class is {columns.max()}, but class_nums is {attrs.class_nums}",
            hint="classes begin with 1; class_nums counts the background, too",
        )
    targets[rows, columns] = moves[rows]
    weights[rows, columns] = 1
    wide = weights.reshape(len(chosen), -1)
    return chosen * scale, labels, targets.reshape(len(chosen), -1), wide, wide.copy()


def _join_objects(rois: Array, objects: _Objects, scale: Any, *, cascade: bool) -> Array:
    """Return the boxes to sample from, in the original image: the objects, then the proposed regions.

    The regions of a cascade come from this operator, so they begin with the objects already. As in Paddle,
    these objects are not divided by the scale.
    """
    if not cascade:
        return np.concatenate([objects.boxes, rois / scale])
    count = len(objects.boxes)
    return np.concatenate([rois[:count], rois[count:] / scale])


def _sample(near: Array, far: Array, attrs: _Attrs, seed: int | None) -> tuple[Array, Array]:
    """Return the sampled foreground and background."""
    count = min(int(np.float32(attrs.batch_size_per_im) * np.float32(attrs.fg_fraction)), len(near))
    rest = min(attrs.batch_size_per_im - count, len(far))
    if seed is not None:
        generator = Generator(seed)
        near = sample_reservoir(generator, near, count)
        # Paddle compares with the number of the foreground here, too.
        far = sample_reservoir(generator, far, rest, swaps_below=count)
    return near[:count], far[:rest]
