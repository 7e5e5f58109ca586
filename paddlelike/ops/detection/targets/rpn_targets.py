"""Targets for the scores and box offsets of anchors: rpn_target_assign and retinanet_target_assign.

Ren et al., Faster R-CNN, 2015; Lin et al., Focal loss for dense object detection (RetinaNet), 2017.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, NamedTuple

import numpy as np

from paddlelike.core import Generator, VarType
from paddlelike.errors import ShapeError
from paddlelike.framework.opdef import Array, Attrs, Bool, Context, Float, Int, OpDef, Spec, register
from paddlelike.ops.kernels.detection.boxes import encode_boxes, overlap_pixels, sample_reservoir
from paddlelike.ops.kernels.lod import make_lod, read_last_level

_EQUAL: Final = 1e-5  # overlaps nearer than that are equal


class _RpnAttrs(Attrs):
    rpn_batch_size_per_im: int = Int(256)
    rpn_straddle_thresh: float = Float()
    rpn_positive_overlap: float = Float(0.7)
    rpn_negative_overlap: float = Float(0.3)
    rpn_fg_fraction: float = Float(0.25)
    use_random: bool = Bool(True)


class _Assigned(NamedTuple):
    """Anchors of one image: those with offsets to learn, their objects, and those with a score to learn."""

    moved: Array
    objects: Array
    weights: Array  # (len(moved), 4): 0 for anchors that stand in for others
    positive: Array
    negative: Array


def _check(op: str, anchors: Spec, boxes: Spec, info: Spec) -> None:
    for name, one in (("Anchor", anchors), ("GtBoxes", boxes), ("ImInfo", info)):
        if len(one.shape) != 2:
            raise ShapeError(f"{op}: {name} has shape {one.shape}; it needs 2 dims")


@register
class RpnTargetAssign(OpDef):
    """A sample of the anchors of each image, with the targets of the network's outputs.

    Anchor ``(A, 4)``; GtBoxes ``(G, 4)`` and IsCrowd ``(G, 1)`` int32 with one sequence per image; ImInfo
    ``(N, 3)``: height, width, scale of GtBoxes. An anchor is positive if its overlap with an object is at
    least ``rpn_positive_overlap`` or the greatest of that object. It is negative if its overlap with every
    object is below ``rpn_negative_overlap``. Crowds are left out, and so are anchors that reach over the
    border by ``rpn_straddle_thresh`` (unless that is negative). The sample has ``rpn_batch_size_per_im``
    anchors, of them at most the share ``rpn_fg_fraction`` positive.

    LocationIndex ``(F,)`` are the anchors, among the N * A of the batch, with an offset in TargetBBox ``(F,
    4)`` and a weight in BBoxInsideWeight ``(F, 4)``. ScoreIndex ``(F' + B,)`` are the anchors with a
    TargetLabel ``(F' + B, 1)`` of 1 or 0. All have one sequence per image. ``use_random=False`` takes the
    first anchors. The random choice comes from the scope's generator; Paddle's is seeded by the operating
    system.
    """

    type = "rpn_target_assign"
    inputs = ("Anchor", "GtBoxes", "IsCrowd", "ImInfo")
    outputs = ("LocationIndex", "ScoreIndex", "TargetBBox", "TargetLabel", "BBoxInsideWeight")
    attrs = _RpnAttrs.table()

    @classmethod
    def infer(cls, anchors: Spec, boxes: Spec, crowd: Spec, info: Spec) -> tuple[Spec, ...]:
        _check(cls.type, anchors, boxes, info)
        index = Spec((-1,), VarType.INT32)
        targets = Spec((-1, 4), anchors.dtype)
        return index, index, targets, Spec((-1, 1), VarType.INT32), targets

    @staticmethod
    def forward(
        ctx: Context, anchors: Array, boxes: Array, crowd: Array, info: Array, *, attrs: _RpnAttrs
    ) -> tuple[Any, ...]:
        seed = int(ctx.random(0).integers(1, 2**31 - 1, (1,))[0]) if attrs.use_random else None
        results = []
        for i, (objects, _, image) in enumerate(_split_images(ctx, boxes, None, crowd, info, anchors.dtype)):
            inside = _find_inside(anchors, image, attrs.rpn_straddle_thresh)
            overlaps = overlap_pixels(anchors[inside], objects)
            chosen = _assign(
                overlaps, attrs.rpn_positive_overlap, attrs.rpn_negative_overlap,
                attrs.rpn_batch_size_per_im, attrs.rpn_fg_fraction, seed,
            )  # fmt: skip
            labels = np.repeat([1, 0], [len(chosen.positive), len(chosen.negative)])
            results.append(_place(chosen, labels, anchors, inside, objects, i * len(anchors)))
        return _join(ctx, results)


class _RetinaAttrs(Attrs):
    positive_overlap: float = Float(0.5)
    negative_overlap: float = Float(0.4)


@register
class RetinanetTargetAssign(OpDef):
    """All anchors of each image that are near an object or far from all objects, with their targets.

    It works like ``rpn_target_assign``, but takes all anchors, also those over the border. GtLabels ``(G,
    1)`` int32, from 1 on, become the TargetLabel of positive anchors. ForegroundNumber ``(N, 1)`` int32 is
    the count of positive anchors plus one.
    """

    type = "retinanet_target_assign"
    inputs = ("Anchor", "GtBoxes", "GtLabels", "IsCrowd", "ImInfo")
    outputs = (*RpnTargetAssign.outputs, "ForegroundNumber")
    attrs = _RetinaAttrs.table()

    @classmethod
    def infer(cls, anchors: Spec, boxes: Spec, labels: Spec, crowd: Spec, info: Spec) -> tuple[Spec, ...]:
        _check(cls.type, anchors, boxes, info)
        count = labels.shape[0]
        index, targets = Spec((count,), VarType.INT32), Spec((count, 4), anchors.dtype)
        one = Spec((count, 1), VarType.INT32)
        return index, index, targets, one, targets, one

    @staticmethod
    def forward(
        ctx: Context,
        anchors: Array,
        boxes: Array,
        labels: Array,
        crowd: Array,
        info: Array,
        *,
        attrs: _RetinaAttrs,
    ) -> tuple[Any, ...]:
        results, counts = [], []
        everywhere = np.arange(len(anchors))
        images = _split_images(ctx, boxes, labels, crowd, info, anchors.dtype)
        for i, (objects, classes, _) in enumerate(images):
            overlaps = overlap_pixels(anchors, objects)
            chosen = _assign(overlaps, attrs.positive_overlap, attrs.negative_overlap, 0, 0.0, None)
            positive = classes[overlaps[chosen.positive].argmax(1)] if len(objects) else classes[:0]
            found = np.concatenate([positive.astype(np.int64), np.zeros(len(chosen.negative), np.int64)])
            results.append(_place(chosen, found, anchors, everywhere, objects, i * len(anchors)))
            counts.append([len(chosen.moved) + 1])
        ctx.set_lod("ForegroundNumber", [list(range(len(counts) + 1))])
        return (*_join(ctx, results), np.array(counts, np.int32).reshape(-1, 1))


def _split_images(
    ctx: Context, boxes: Array, labels: Array | None, crowd: Array, info: Array, dtype: Any
) -> Iterator[tuple[Array, Array, Array]]:
    """Yield the scaled objects of each image that are not crowds, their labels, and its ImInfo."""
    offsets = read_last_level(ctx, "GtBoxes", len(boxes))
    single = crowd.reshape(-1) == 0
    for start, end, image in zip(offsets[:-1], offsets[1:], info.astype(dtype, copy=False), strict=False):
        chosen = np.arange(start, end)[single[start:end]]
        classes = np.empty(0, np.int32) if labels is None else labels.reshape(-1)[chosen]
        yield boxes[chosen].astype(dtype, copy=False) * image[2], classes, image


def _find_inside(anchors: Array, image: Array, margin: float) -> Array:
    """Return the rows of the anchors that extend beyond the image by less than ``margin``."""
    if margin < 0:
        return np.arange(len(anchors))
    reach = np.float32(margin)
    inside = (anchors[:, :2] >= -reach).all(1) & (anchors[:, 2:] < image[[1, 0]] + reach).all(1)
    return np.flatnonzero(inside)


def _assign(
    overlaps: Array, positive: float, negative: float, batch: int, fraction: float, seed: int | None
) -> _Assigned:
    """Choose anchors by their overlaps (A, G) with the objects; ``batch`` 0 chooses all.

    Paddle's generator starts at the same seed for every sample.
    """
    best = overlaps.max(1, initial=-1)
    is_best = (np.abs(overlaps - overlaps.max(0, initial=-1)) < _EQUAL).any(1)
    near = np.flatnonzero(is_best | (best >= np.float32(positive)))
    far = np.flatnonzero(best < np.float32(negative))
    if batch > 0 and fraction > 0:
        near = _take_sample(near, int(np.float32(fraction) * np.float32(batch)), seed)
        far = _take_sample(far, batch - len(near), seed)
    label = np.full(len(overlaps), -1)
    label[near] = 1
    # The best anchor of an object is background if it is far from the object; the first positive anchor
    # stands in for it.
    twice = int((label[far] == 1).sum())
    label[far] = 0
    kept, rest = np.flatnonzero(label == 1), np.flatnonzero(label == 0)
    moved = np.concatenate([np.repeat(near[:1], twice), kept]).astype(np.int64)
    weights = np.ones((len(moved), 4), overlaps.dtype)
    weights[:twice] = 0
    objects = overlaps[moved].argmax(1) if overlaps.shape[1] else moved[:0]
    return _Assigned(moved, objects, weights, kept, rest)


def _take_sample(indices: Array, count: int, seed: int | None) -> Array:
    if seed is not None:
        indices = sample_reservoir(Generator(seed), indices, count)
    return indices[:count]


def _place(
    chosen: _Assigned, labels: Array, anchors: Array, rows: Array, objects: Array, first: int
) -> tuple[Array, ...]:
    """Return the outputs for one image with the anchors ``rows``; ``first`` is the number of earlier
    anchors.
    """
    moved = rows[chosen.moved]
    scored = rows[np.concatenate([chosen.positive, chosen.negative])]
    targets = encode_boxes(anchors[moved], objects[chosen.objects])
    return moved + first, scored + first, targets, labels, chosen.weights


def _join(ctx: Context, results: list[tuple[Array, ...]]) -> tuple[Array, ...]:
    """Return the outputs of all images, with their LoDs set."""
    for slot, parts in zip(RpnTargetAssign.outputs, zip(*results, strict=True), strict=True):
        ctx.set_lod(slot, [make_lod(np.array([len(part) for part in parts]))])
    moved, scored, targets, labels, weights = (np.concatenate(parts) for parts in zip(*results, strict=True))
    return (
        moved.astype(np.int32),
        scored.astype(np.int32),
        targets,
        labels.astype(np.int32).reshape(-1, 1),
        weights,
    )
