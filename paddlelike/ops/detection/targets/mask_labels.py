"""generate_mask_labels: the target masks of regions, drawn from polygons.

He et al., Mask R-CNN, 2017; the polygons are filled as by the COCO API (Lin et al., 2014).
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from paddlelike.errors import EnforceNotMet
from paddlelike.framework.opdef import Array, Context, Int, OpDef, Spec, register
from paddlelike.ops.kernels.detection.boxes import overlap_pixels
from paddlelike.ops.kernels.lod import make_lod, read_last_level, read_levels

_FINER: Final = 5.0  # outlines are drawn on a grid that is finer by this factor


class _Image(NamedTuple):
    """The objects and regions of one image."""

    scale: Any
    classes: Array
    crowd: Array
    outlines: list[list[Array]]  # of each object: polygons (points, 2)
    rois: Array
    labels: Array


@register
class GenerateMaskLabels(OpDef):
    """For each region with a class, the mask of its object in ``resolution`` x ``resolution`` pixels.

    ImInfo ``(N, 3)`` is height, width, scale of Rois; GtClasses and IsCrowd are ``(G, 1)`` int32. GtSegms
    ``(S, 2)`` holds points in the original image; its three levels of LoD are the objects of each image, the
    polygons of each object and the points of each polygon. Rois ``(R, 4)`` and LabelsInt32 ``(R, 1)`` come
    from generate_proposal_labels.

    MaskRois ``(P, 4)`` are the regions with a class; RoiHasMaskInt32 ``(P, 1)`` are their indices among the
    regions of the image. MaskInt32 ``(P, num_classes * resolution ^ 2)`` is 1 inside the object, 0 outside,
    -1 in the columns of other classes. An image without such regions gives its first background region with a
    mask of -1.
    """

    type = "generate_mask_labels"
    inputs = ("ImInfo", "GtClasses", "IsCrowd", "GtSegms", "Rois", "LabelsInt32")
    outputs = ("MaskRois", "RoiHasMaskInt32", "MaskInt32")
    attrs = {"num_classes": Int(), "resolution": Int()}

    @staticmethod
    def infer(
        info: Spec, classes: Spec, crowd: Spec, segments: Spec, rois: Spec, labels: Spec,
        *, num_classes: int, resolution: int
    ) -> tuple[Spec, ...]:  # fmt: skip
        size = num_classes * resolution * resolution
        level = rois.lod_level
        return (
            Spec((-1, 4), rois.dtype, level),
            Spec((-1, 1), classes.dtype, level),  # declared as Paddle's layer does, held as int32
            Spec((-1, size), classes.dtype, level),
        )

    @classmethod
    def forward(
        cls, ctx: Context, info: Array, classes: Array, crowd: Array, segments: Array, rois: Array,
        labels: Array, *, num_classes: int, resolution: int
    ) -> tuple[Any, ...]:  # fmt: skip
        results: list[tuple[Array, Array, Array]] = []
        counts = []
        for image in _split(ctx, info, (classes, crowd, rois, labels), segments):
            counts.append(0)
            if len(image.rois):
                results.append(_draw(image, num_classes, resolution))
                counts[-1] = len(results[-1][0])
        for slot in cls.outputs:
            ctx.set_lod(slot, [make_lod(np.array(counts))])
        nothing = (rois[:0], np.empty((0, 1), np.int32), np.empty((0, num_classes * resolution**2), np.int32))
        return tuple(np.concatenate(parts) for parts in zip(nothing, *results, strict=True))


def _split(ctx: Context, info: Array, given: Sequence[Array], segments: Array) -> list[_Image]:
    """Return the images of a batch; raise EnforceNotMet unless all inputs have the same number."""
    slots = ("GtClasses", "IsCrowd", "Rois", "LabelsInt32")
    offsets = [read_last_level(ctx, slot, len(array)) for slot, array in zip(slots, given, strict=True)]
    levels = read_levels(ctx, "GtSegms")
    counts = [len(each) - 1 for each in offsets]
    if len(levels) != 3 or any(count != len(levels[0]) - 1 for count in counts):
        raise EnforceNotMet(
            f"generate_mask_labels: GtSegms has {len(levels)} levels of LoD, the first with "
            f"{len(levels[0]) - 1} images; {', '.join(slots)} have {counts}",
            hint="GtSegms needs three levels: objects of images, polygons of objects, points of polygons",
        )
    polygons = [segments[a:b] for a, b in itertools.pairwise(levels[2])]
    objects = [polygons[a:b] for a, b in itertools.pairwise(levels[1])]
    images = []
    for i, (start, end) in enumerate(itertools.pairwise(levels[0])):
        parts = [array[slice(*each[i : i + 2])] for array, each in zip(given, offsets, strict=True)]
        classes, crowd, rois, labels = (
            part if part.shape[1:] == (4,) else part.reshape(-1) for part in parts
        )
        images.append(_Image(info[i, 2], classes, crowd, objects[start:end], rois, labels))
    return images


def _draw(image: _Image, classes: int, resolution: int) -> tuple[Array, Array, Array]:
    """Return the outputs of one image."""
    able = np.flatnonzero((image.classes > 0) & (image.crowd == 0))
    rows = np.flatnonzero(image.labels > 0)
    masks = np.full((max(len(rows), 1), classes, resolution * resolution), -1, np.int32)
    if not len(rows):
        rows = np.flatnonzero(image.labels == 0)[:1]
        boxes = image.rois[rows] / image.scale
        return boxes * image.scale, rows.astype(np.int32)[:, None], masks[: len(rows)].reshape(len(rows), -1)
    if not len(able):
        raise EnforceNotMet(
            "generate_mask_labels: regions of an image have classes, but all of its objects are crowds"
        )
    outlines = [image.outlines[i] for i in able]
    boxes = image.rois[rows] / image.scale
    nearest = overlap_pixels(boxes, _bound(outlines, boxes.dtype)).argmax(1)
    for n, (box, which) in enumerate(zip(boxes, nearest, strict=True)):
        masks[n, image.labels[rows[n]]] = _fill(outlines[which], box, resolution).reshape(-1)
    return boxes * image.scale, rows.astype(np.int32)[:, None], masks.reshape(len(rows), -1)


def _bound(outlines: list[list[Array]], dtype: Any) -> Array:
    """Return the bounding box of the polygons of each object: (objects, 4)."""
    least = np.finfo(np.float32).tiny  # the start value of Paddle's maxima
    boxes = []
    for polygons in outlines:
        points = np.concatenate(polygons)
        boxes.append(np.concatenate([points.min(0), np.maximum(points.max(0), least)]))
    return np.array(boxes, dtype)


def _fill(polygons: list[Array], box: Array, resolution: int) -> Array:
    """Return a mask of the pixels of a box that lie in any of the polygons: (resolution, resolution), 0 or
    1.
    """
    size = np.maximum(box[2:] - box[:2], box.dtype.type(1))
    inside = np.zeros((resolution, resolution), np.int32)
    for polygon in polygons:
        inside |= _fill_polygon((polygon - box[:2]) * box.dtype.type(resolution) / size, resolution)
    return inside


def _fill_polygon(points: Array, resolution: int) -> Array:
    """Return a mask of the pixels that lie in a polygon (points, 2), 0 or 1."""
    corners = np.trunc(_FINER * points.astype(np.float64) + 0.5).astype(np.int64)
    x, y = _trace(corners)
    # Places at which the outline enters another column of the finer grid; only middles of pixels count.
    moves = np.flatnonzero(x[1:] != x[:-1])
    column = np.where(x[moves + 1] < x[moves], x[moves + 1], x[moves + 1] - 1)
    at = (column + 0.5) / _FINER - 0.5
    down = (np.minimum(y[moves + 1], y[moves]) + 0.5) / _FINER - 0.5
    used = (np.floor(at) == at) & (at >= 0) & (at <= resolution - 1)
    row = np.ceil(np.clip(down[used], 0, resolution)).astype(np.int64)
    # Going down the columns, inside and outside take turns at these places.
    turns = np.bincount(at[used].astype(np.int64) * resolution + row, minlength=resolution * resolution)
    mask = turns[: resolution * resolution].cumsum() % 2
    return mask.reshape(resolution, resolution).T.astype(np.int32)


def _trace(corners: Array) -> tuple[Array, Array]:
    """Return all points of the finer grid along the sides of a polygon, x and y."""
    xs, ys = [], []
    for (x1, y1), (x2, y2) in zip(corners, np.roll(corners, -1, 0), strict=True):
        wide, tall = abs(x2 - x1), abs(y2 - y1)
        flat = wide >= tall
        flip = x1 > x2 if flat else y1 > y2
        if flip:
            x1, x2, y1, y2 = x2, x1, y2, y1
        steps = np.arange(max(wide, tall) + 1)
        if flat:
            slope = (y2 - y1) / wide if wide else 0.0
            x, y = steps + x1, np.trunc(y1 + slope * steps + 0.5).astype(np.int64)
        else:
            x, y = np.trunc(x1 + (x2 - x1) / tall * steps + 0.5).astype(np.int64), steps + y1
        xs.append(x[::-1] if flip else x)
        ys.append(y[::-1] if flip else y)
    return np.concatenate(xs), np.concatenate(ys)
