"""Attributes, checks and row formats that all suppression operators share."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from paddlelike.errors import ShapeError
from paddlelike.framework.opdef import REQUIRED, Array, Attrs, Bool, Context, Float, Int, Spec
from paddlelike.ops.kernels.detection.suppression import suppress
from paddlelike.ops.kernels.lod import make_lod
from paddlelike.ops.kernels.sorting import argsort_descending

_SIZES = (4, 8, 16, 24, 32)  # numbers of a box: its edges, or the corners of a polygon


class ChoiceAttrs(Attrs):
    """Attributes of every suppression operator: thresholds for scores, and limits of boxes per image."""

    background_label: int = Int(0)
    score_threshold: float = Float(REQUIRED)
    nms_top_k: int = Int(REQUIRED)
    keep_top_k: int = Int(REQUIRED)
    normalized: bool = Bool(True)


class NmsAttrs(ChoiceAttrs):
    """Attributes of suppression by a threshold for the overlap."""

    nms_threshold: float = Float(0.3)
    nms_eta: float = Float(1.0)

    def suppress(self, boxes: Array, most: int = -1) -> Array:
        """Return the indices of the sorted boxes to keep, ``most`` of them at most (-1: all)."""
        return suppress(
            boxes, threshold=self.nms_threshold, eta=self.nms_eta, normalized=self.normalized, most=most
        )


class Kept(NamedTuple):
    """The boxes kept of one image; all arrays have the same number of rows."""

    label: Array
    score: Array
    box: Array
    place: Array  # of the box in the image


def join(kept: list[Kept]) -> Kept:
    return Kept(*(np.concatenate(part) for part in zip(*kept, strict=True)))


def keep_best(kept: Kept, limit: int) -> Kept:
    """Return at most ``limit`` boxes (-1: all) with the highest scores, sorted by label and then by score."""
    if not -1 < limit < len(kept.score):
        return kept
    best = argsort_descending(kept.score.astype(np.float32))[:limit]
    best = best[np.argsort(kept.label[best], kind="stable")]
    return Kept(*(part[best] for part in kept))


def write_rows(kept: Kept) -> Array:
    """Return rows (label, score, box)."""
    parts = (kept.label[:, None], kept.score[:, None], kept.box)
    return np.concatenate(parts, 1).astype(kept.box.dtype, copy=False)


def infer_rows(op: str, boxes: Spec, *, sequences: bool) -> Spec:
    """Return the shape that Paddle declares for Out, with as many rows as an image has boxes."""
    if len(boxes.shape) != 3:
        raise ShapeError(f"{op}: BBoxes has shape {boxes.shape}; it needs (N, M, 4) or (rows, classes, 4)")
    size = boxes.shape[2]
    # The rest is checked when it runs, as in Paddle: scripts declare scores of other shapes.
    return Spec((-1 if sequences else boxes.shape[1], size + 2 if size > 0 else -1), boxes.dtype)


def check_operands(op: str, boxes: Array, scores: Array, *, ranks: tuple[int, ...]) -> None:
    """Raise ShapeError unless scores ``(N, classes, M)``, or (rows, classes) of sequences, fit the boxes."""
    shapes = f"BBoxes has shape {boxes.shape}, Scores {scores.shape}"
    if scores.ndim not in ranks:
        raise ShapeError(f"{op}: {shapes}; Scores needs {' or '.join(map(str, ranks))} dims")
    sizes = _SIZES if scores.ndim == 3 and op != "matrix_nms" else _SIZES[:1]
    if boxes.shape[2] not in sizes:
        raise ShapeError(
            f"{op}: {shapes}; the last dim of BBoxes must be one of {sizes}",
            hint="4 are xmin, ymin, xmax, ymax; more are the corners of a polygon",
        )
    dims = (len(scores), scores.shape[2]) if scores.ndim == 3 else scores.shape
    if boxes.shape[:2] != dims:
        raise ShapeError(
            f"{op}: {shapes}; expected (N, M, {boxes.shape[2]}) and (N, classes, M), or with sequences "
            "(rows, classes, 4) and (rows, classes)"
        )


def list_labels(classes: int, attrs: ChoiceAttrs) -> list[int]:
    return [label for label in range(classes) if label != attrs.background_label]


def no_boxes(boxes: Array) -> Kept:
    none = np.empty(0, boxes.dtype)
    return Kept(np.empty(0, np.intp), none, none.reshape(0, boxes.shape[-1]), np.empty(0, np.intp))


def write_or_mark_empty(ctx: Context, images: list[Kept]) -> Array:
    """Return the rows of all images, or ``[[-1]]`` where there are none, and set the LoD of Out."""
    out = np.concatenate([write_rows(kept) for kept in images])
    lengths = np.array([len(kept.label) for kept in images], np.int64)
    if not len(out):
        out, lengths = np.full((1, 1), -1, out.dtype), np.ones(1, np.int64)
    ctx.set_lod("Out", [make_lod(lengths)])
    return out


def write_with_index(ctx: Context, images: list[Kept], firsts: list[int]) -> tuple[Array, Array]:
    """Return the rows of all images and the indices of their boxes, and set the LoD of both."""
    out = np.concatenate([write_rows(kept) for kept in images])
    index = np.concatenate([kept.place + first for kept, first in zip(images, firsts, strict=True)])
    lod = [make_lod(np.array([len(kept.label) for kept in images], np.int64))]
    ctx.set_lod("Out", lod)
    ctx.set_lod("Index", lod)
    return out, index.astype(np.int32).reshape(-1, 1)
