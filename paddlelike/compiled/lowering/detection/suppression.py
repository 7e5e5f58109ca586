"""Non-maximum suppression: multiclass_nms, multiclass_nms2."""

from __future__ import annotations

from typing import Any, Final

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from paddlelike.compiled.lowering.detection.regions.owners import multiply
from paddlelike.compiled.lowerings import lowers
from paddlelike.compiled.packing import LoweringError, find_bucket
from paddlelike.compiled.tracing.context import OpContext
from paddlelike.compiled.values import Packed

_MOST: Final = 1024  # boxes of a class that are compared with each other in a matrix


@lowers("multiclass_nms")
def multiclass_nms(
    boxes: Array, scores: Array,
    *, background_label: int, score_threshold: float, nms_top_k: int, keep_top_k: int, normalized: bool,
    nms_threshold: float, nms_eta: float, ctx: OpContext,
) -> Packed:  # fmt: skip
    out, _ = multiclass_nms2(
        boxes, scores, background_label=background_label, score_threshold=score_threshold,
        nms_top_k=nms_top_k, keep_top_k=keep_top_k, normalized=normalized, nms_threshold=nms_threshold,
        nms_eta=nms_eta,
    )  # fmt: skip
    ctx.require(out.total > 0, "its result has another shape if no box is kept")
    return out


@lowers("multiclass_nms2")
def multiclass_nms2(
    boxes: Array, scores: Array,
    *, background_label: int, score_threshold: float, nms_top_k: int, keep_top_k: int, normalized: bool,
    nms_threshold: float, nms_eta: float,
) -> tuple[Packed, Packed]:  # fmt: skip
    if scores.ndim != 3 or boxes.shape[-1] != 4:
        raise LoweringError("its boxes are polygons, or separate for every class")
    images, classes, count = scores.shape
    if boxes.shape[:2] != (images, count):
        raise LoweringError("Scores do not fit BBoxes")
    if nms_eta < 1 and nms_threshold > 0.5:
        raise LoweringError("its threshold changes from box to box")
    size = min(nms_top_k, count) if nms_top_k > -1 else count
    labels = np.array([label for label in range(classes) if label != background_label])
    if not 0 < size <= _MOST or not len(labels):
        raise LoweringError(f"{size} boxes of {len(labels)} classes are compared with each other")
    least = jnp.asarray(np.float32(score_threshold), scores.dtype)
    wanted = scores[:, labels]
    ranked = jnp.where(wanted > least, wanted.astype(jnp.float32), -jnp.inf)  # as Paddle compares them
    best, index = jax.lax.top_k(ranked, size)  # (images, labels, size)
    limit = jnp.asarray(np.float32(nms_threshold), boxes.dtype)

    def keep(image: Array, index: Array, valid: Array) -> Array:
        return _suppress(boxes[image][index], valid, limit, edge=0 if normalized else 1)

    which = jnp.repeat(jnp.arange(images), len(labels))
    flat = (which, index.reshape(-1, size), (best > -jnp.inf).reshape(-1, size))
    kept = jax.lax.map(lambda given: keep(*given), flat).reshape(images, -1)
    if keep_top_k > -1:
        # The best boxes of an image, by label and then by score: they are in that order.
        order = jnp.argsort(jnp.where(kept, -best.reshape(images, -1), jnp.inf), 1, stable=True)
        rank = jnp.argsort(order, 1, stable=True)
        kept &= rank < keep_top_k
    return _list_kept(boxes, scores, kept, labels, index)


def _suppress(boxes: Array, valid: Array, limit: Array, *, edge: int) -> Array:
    """Return a mask of the sorted boxes ``(K, 4)`` that are kept."""
    above = ~(_find_overlaps(boxes, edge) <= limit)
    count = boxes.shape[0]

    def decide(i: Array, kept: Array) -> Array:
        return kept.at[i].set(valid[i] & ~(kept & above[i]).any())

    return jax.lax.fori_loop(0, count, decide, jnp.zeros(count, bool))


def _find_overlaps(boxes: Array, edge: int) -> Array:
    """Return the areas of the intersections divided by the areas of the unions."""
    x0, y0, x1, y1 = (boxes[:, i] for i in range(4))
    wide, high = x1 - x0, y1 - y0
    areas = jnp.where((wide < 0) | (high < 0), 0, multiply(wide + edge, high + edge))
    width = jnp.minimum(x1[:, None], x1) - jnp.maximum(x0[:, None], x0) + edge
    height = jnp.minimum(y1[:, None], y1) - jnp.maximum(y0[:, None], y0) + edge
    apart = (x0[:, None] > x1) | (x1[:, None] < x0) | (y0[:, None] > y1) | (y1[:, None] < y0)
    apart |= apart.T
    shared = multiply(width, height)
    overlaps = shared / (areas[:, None] + areas - shared)
    return jnp.where(apart, 0, overlaps)


def _list_kept(
    boxes: Array,
    scores: Array,
    kept: Array,
    labels: Array | np.ndarray[Any, Any],
    index: Array,
) -> tuple[Packed, Packed]:
    """Return rows of label, score and box, one sequence for each image, and the index of each box."""
    each = kept.shape[1]
    counts = kept.sum(1)
    offsets = jnp.concatenate([jnp.zeros(1, counts.dtype), jnp.cumsum(counts)]).astype(jnp.int32)
    size = find_bucket(kept.size)
    (places,) = jnp.nonzero(kept.reshape(-1), size=size)
    places = jnp.where(jnp.arange(size) < counts.sum(), places, places[0])
    image, which = places // each, (places % each) // index.shape[2]
    box = index.reshape(-1)[places]
    label = jnp.asarray(labels)[which]
    score = scores[image, label, box]
    rows = [label[:, None].astype(boxes.dtype), score[:, None].astype(boxes.dtype), boxes[image, box]]
    out = Packed(jnp.concatenate(rows, 1), (offsets,), find_bucket(each))
    number = (image * boxes.shape[1] + box).astype(jnp.int32)[:, None]
    return out, out.replace(number)
