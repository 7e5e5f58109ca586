"""The loss of one head of YOLOv3 (Redmon & Farhadi, 2018)."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from paddlelike.compiled.formulas import translate
from paddlelike.compiled.lowerings import lowers
from paddlelike.ops.kernels.detection import yolo as kernels

find_iou = translate(kernels.find_iou)


class _Truth(NamedTuple):
    """The true boxes (N, B): the anchor matched to each (-1: none), its cell and its target."""

    anchor: Array
    row: Array
    column: Array
    target: Array  # (N, B, 4)
    weight: Array
    score: Array
    kept: Array  # whether no later true box has the same cell and anchor
    valid: Array


@lowers("yolov3_loss")
def yolov3_loss(
    x: Array, box: Array, label: Array, score: Array,
    *, anchors: list[int], anchor_mask: list[int], class_num: int, ignore_thresh: float,
    downsample_ratio: int,
    use_label_smooth: bool, scale_x_y: float,
) -> tuple[Array, Array, Array]:  # fmt: skip
    count, grid = len(anchor_mask), x.shape[2]
    sides = np.array(anchors, np.int64).reshape(-1, 2)
    head = x.reshape(x.shape[0], count, 5 + class_num, grid, grid)
    pixels = jnp.asarray(downsample_ratio * grid, x.dtype)
    truth = _match(box, score, sides, list(anchor_mask), grid, pixels, x.dtype)
    mask = jax.lax.stop_gradient(
        _find_ignored(head, box, truth.valid, sides[list(anchor_mask)], pixels, ignore_thresh, scale_x_y)
    )
    matched = truth.anchor >= 0
    at = (jnp.arange(x.shape[0])[:, None], jnp.maximum(truth.anchor, 0), truth.row, truth.column)
    written = (*at[:1], jnp.where(truth.kept, truth.anchor, count), *at[2:])  # out of bounds: dropped
    mask = mask.at[written].set(truth.score, mode="drop")
    found = head[at[0], at[1], :, at[2], at[3]]  # (N, B, 5 + classes)
    given = jnp.where(truth.kept[..., None], found, jax.lax.stop_gradient(found))  # the last one decides
    difference = truth.target[..., 2:] - given[..., 2:4]
    sizes = jnp.where(difference < 0, -difference, difference)  # its slope at 0 is Paddle's
    box_loss = jnp.concatenate([_cross_entropy(given[..., :2], truth.target[..., :2]), sizes], -1)
    smooth = min(1.0 / class_num, 1.0 / 40) if use_label_smooth else 0.0
    right = jax.nn.one_hot(label, class_num, dtype=x.dtype) > 0
    targets = jnp.where(right, 1 - smooth, smooth).astype(x.dtype)
    class_loss = _cross_entropy(given[..., 5:], targets)
    own = (box_loss.sum(-1) * truth.weight + class_loss.sum(-1) * truth.score) * matched
    objectness = head[:, :, 4]
    positive = _cross_entropy(objectness, jnp.ones((), x.dtype)) * mask
    negative = _cross_entropy(objectness, jnp.zeros((), x.dtype)) * (mask > -0.5)
    loss = own.sum(1) + jnp.where(mask > 1e-5, positive, negative).sum((1, 2, 3))
    return loss.astype(x.dtype), mask, truth.anchor.astype(jnp.int32)


def _cross_entropy(x: Array, target: Array) -> Array:
    """Return the cross entropy of sigmoid(x)."""
    return jnp.maximum(x, 0) - x * target + jnp.log1p(jnp.exp(-jnp.abs(x)))


def _match(
    box: Array,
    score: Array | None,
    sides: Array | np.ndarray[Any, Any],
    in_mask: list[int],
    grid: int,
    pixels: Array,
    dtype: np.dtype[Any],
) -> _Truth:
    valid = (box[..., 2] >= 1e-6) & (box[..., 3] >= 1e-6)
    zero = jnp.zeros((), dtype)
    shape = (1, 1, len(sides))
    anchors = (zero, zero, *((side.astype(dtype) / pixels).reshape(shape) for side in sides.T))
    iou = find_iou(anchors, (zero, zero, box[..., 2, None], box[..., 3, None]))
    best = jnp.where(valid[..., None], iou, 0).argmax(-1)
    in_head = np.full(len(sides), -1)
    for index in reversed(range(len(in_mask))):
        in_head[in_mask[index]] = index
    anchor = jnp.where(valid, jnp.asarray(in_head)[best], -1)
    cell = jnp.clip((box[..., :2] * grid).astype(jnp.int32), 0, grid - 1)
    known = jnp.asarray(sides.astype(dtype))[best]
    safe = jnp.where(valid[..., None], box[..., 2:], 1)
    target = jnp.concatenate([box[..., :2] * grid - cell.astype(dtype), jnp.log(safe * pixels / known)], -1)
    scores = jnp.ones(box.shape[:2], dtype) if score is None else score
    weight = ((2.0 - (box[..., 2] * box[..., 3])) * scores).astype(dtype)
    place = jnp.where(anchor >= 0, (anchor * grid + cell[..., 1]) * grid + cell[..., 0], -1)
    later = jnp.triu(jnp.ones((box.shape[1],) * 2, bool), 1)
    repeated = ((place[:, :, None] == place[:, None]) & later & (place[:, None] >= 0)).any(-1)
    kept = (anchor >= 0) & ~repeated
    return _Truth(anchor, cell[..., 1], cell[..., 0], target, weight, scores, kept, valid)


def _find_ignored(
    head: Array,
    box: Array,
    valid: Array,
    sides: Array | np.ndarray[Any, Any],
    pixels: Array,
    threshold: float,
    scale: float,
) -> Array:
    """Return -1 where a prediction overlaps some true box enough, else 0: (N, A, H, H)."""
    dtype, grid = head.dtype, head.shape[3]
    factor, bias = np.float32(scale), np.float32(-0.5 * (float(np.float32(scale)) - 1))
    x = (
        jax.nn.sigmoid(head[:, :, 0]) * factor.astype(dtype)
        + np.arange(grid).astype(dtype)
        + bias.astype(dtype)
    )
    y = jax.nn.sigmoid(head[:, :, 1]) * factor.astype(dtype) + bias.astype(dtype)
    y = y + np.arange(grid).astype(dtype)[:, None]
    known = sides.astype(dtype)[:, :, None, None]
    wide, tall = jnp.exp(head[:, :, 2]) * known[:, 0], jnp.exp(head[:, :, 3]) * known[:, 1]
    found = (x / grid, y / grid, wide / pixels, tall / pixels)

    def overlap(best: Array, given: tuple[Array, ...]) -> tuple[Array, None]:
        true, there = given
        iou = find_iou(found, tuple(true[:, i, None, None, None] for i in range(4)))
        return jnp.fmax(best, jnp.where(there[:, None, None, None], iou, 0)), None

    start = jnp.zeros(x.shape, dtype)
    best, _ = jax.lax.scan(overlap, start, (jnp.moveaxis(box, 1, 0), jnp.moveaxis(valid, 1, 0)))
    return jnp.where(best > np.float32(threshold).astype(dtype), -1, 0).astype(dtype)
