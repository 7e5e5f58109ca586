"""Boxes and anchors: box_coder, box_clip, iou_similarity, yolo_box."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from paddlelike.compiled.lowering.detection.regions.owners import multiply, round_half_away
from paddlelike.compiled.lowering.sequence.sequence import require_sequences
from paddlelike.compiled.lowerings import lowers
from paddlelike.compiled.packing import LoweringError
from paddlelike.compiled.tracing.context import OpContext
from paddlelike.compiled.values import Packed, Value, get_rows
from paddlelike.framework.opdef import registry


@lowers("box_coder", sequences=True)
def box_coder(
    prior: Array | Packed,
    variances: Array | Packed | None,
    target: Array | Packed,
    *,
    code_type: str,
    box_normalized: bool,
    axis: int,
    variance: list[float],
) -> Value:
    boxes = get_rows(target)
    anchors = get_rows(prior)
    like = target
    if isinstance(prior, Packed):  # regions, each with codes of its own
        like = prior
        if axis == 0 or anchors.shape[0] != boxes.shape[0] or code_type == "encode_center_size":
            raise LoweringError("the anchors have a LoD")
    if isinstance(variances, Packed):
        raise LoweringError("the variances have a LoD")
    edge = 0 if box_normalized else 1
    by: Array | None = variances
    if by is None and variance:
        by = jnp.asarray(np.array(variance, np.float32).astype(anchors.dtype))
    if code_type == "encode_center_size":
        out = _encode(anchors, by, boxes, edge)
    else:
        if axis == 1:
            if isinstance(target, Packed) and like is target:
                raise LoweringError("the anchors are the rows of sequences")
            anchors = anchors[:, None]
            by = by if by is None or by.ndim == 1 else by[:, None]
        out = _decode(anchors, by, boxes, edge)
    return like.replace(out) if isinstance(like, Packed) else out


def _encode(prior: Array, variances: Array | None, target: Array, edge: int) -> Array:
    places, sizes = [], []
    for axis in (0, 1):
        side = prior[:, axis + 2] - prior[:, axis] + edge
        target_side = (target[:, axis + 2] - target[:, axis] + edge)[:, None]
        center = prior[:, axis] + side / 2
        target_center = ((target[:, axis + 2] + target[:, axis]) / 2)[:, None]
        places.append((target_center - center) / side)
        sizes.append(jnp.log(jnp.abs(target_side / side)))
    out = jnp.stack([*places, *sizes], -1).astype(target.dtype)
    return out if variances is None else out / variances


def _decode(prior: Array, variances: Array | None, target: Array, edge: int) -> Array:
    code = target if variances is None else target * variances
    low, high = [], []
    for axis in (0, 1):
        side = prior[..., axis + 2] - prior[..., axis] + edge
        center = code[..., axis] * side + (prior[..., axis] + side / 2)
        half = jnp.exp(code[..., axis + 2]) * side / 2
        low.append(center - half)
        high.append(center + half - edge)
    return jnp.stack([*low, *high], -1).astype(target.dtype)


@lowers("box_clip", sequences=True)
def box_clip(boxes: Packed, info: Array | Packed) -> Value:
    require_sequences(boxes)
    info = get_rows(info)
    if boxes.count > info.shape[0]:
        raise LoweringError("ImInfo does not have one row per sequence")
    rows = boxes.rows
    size = round_half_away(info[:, :2] / info[:, 2:])
    bound = (size - 1)[jnp.minimum(boxes.index_rows(), boxes.count - 1)].astype(rows.dtype)
    most = bound[:, np.array([1, 0, 1, 0])].reshape(-1, *[1] * (rows.ndim - 2), 4)
    return boxes.replace(jnp.maximum(jnp.minimum(rows, most), 0))


@lowers("iou_similarity", sequences=True)
def iou_similarity(x: Array | Packed, y: Array | Packed, *, box_normalized: bool) -> Value:
    """Return the overlaps, bit for bit as numpy, since the first of equal overlaps is matched later."""
    if isinstance(y, Packed):
        raise LoweringError("the boxes of Y have a LoD")
    rows = get_rows(x)
    edge = 0 if box_normalized else 1
    a, b = rows.T[:, :, None], y.T[:, None]
    height = jnp.minimum(a[3], b[3]) - jnp.maximum(a[1], b[1]) + edge
    width = jnp.minimum(a[2], b[2]) - jnp.maximum(a[0], b[0]) + edge
    common = multiply(jnp.maximum(width, 0), jnp.maximum(height, 0))
    areas = [multiply(one[3] - one[1] + edge, one[2] - one[0] + edge) for one in (a, b)]
    out = common / (areas[0] + areas[1] - common + jnp.asarray(1e-10, rows.dtype))
    return x.replace(out) if isinstance(x, Packed) else out


@lowers("box_decoder_and_assign")
def box_decoder_and_assign(
    prior: Array, variances: Array, target: Array, score: Array, *, box_clip: float
) -> tuple[Array, Array]:
    rows, classes = score.shape
    code = target.reshape(rows, classes, 4) * variances
    size = (prior[:, 2:] - prior[:, :2] + 1)[:, None]
    center = code[..., :2] * size + (prior[:, None, :2] + size / 2)
    half = jnp.exp(jnp.minimum(code[..., 2:], np.float32(box_clip))) * size / 2
    boxes = jnp.concatenate([center - half, center + half - 1], -1)
    if classes == 1:
        return boxes.reshape(target.shape), prior
    best = score[:, 1:].argmax(1) + 1
    found = jnp.take_along_axis(score, best[:, None], 1) > -1  # the lowest score that counts
    return boxes.reshape(target.shape), jnp.where(found, boxes[jnp.arange(rows), best], prior)


@lowers("yolo_box", "yolo_box@2")
def yolo_box(
    x: Array, image_size: Array,
    *, anchors: list[int], class_num: int, conf_thresh: float, downsample_ratio: int, clip_bbox: bool,
    scale_x_y: float, ctx: OpContext,
) -> tuple[Array, Array]:  # fmt: skip
    cls = registry.find_for_version(ctx.op.type, ctx.plan.program.paddle_version)
    count, dtype = len(anchors) // 2, x.dtype
    images, _, height, width = x.shape
    across = height if cls is None or cls.since == "1" else width  # Fluid divides by the height of the grid
    head = x.reshape(images, count, 5 + class_num, height, width)
    factor = np.float32(scale_x_y).astype(dtype)
    bias = np.float32(-0.5 * (float(np.float32(scale_x_y)) - 1)).astype(dtype)
    sides = np.array(anchors, np.int64).reshape(-1, 2).astype(dtype)[None, :, :, None, None]
    size = image_size.astype(dtype)[:, :, None, None, None]  # (N, 2): height, width
    tall, wide = size[:, 0], size[:, 1]
    center_x = (jax.nn.sigmoid(head[:, :, 0]) * factor + np.arange(width) + bias) * wide / across
    center_y = (jax.nn.sigmoid(head[:, :, 1]) * factor + np.arange(height)[:, None] + bias) * tall / height
    half_x = jnp.exp(head[:, :, 2]) * sides[:, :, 0] * wide / (downsample_ratio * across) / 2
    half_y = jnp.exp(head[:, :, 3]) * sides[:, :, 1] * tall / (downsample_ratio * height) / 2
    corners = [center_x - half_x, center_y - half_y, center_x + half_x, center_y + half_y]
    if clip_bbox:
        corners = [
            jnp.maximum(corners[0], 0), jnp.maximum(corners[1], 0),
            jnp.minimum(corners[2], wide - 1), jnp.minimum(corners[3], tall - 1),
        ]  # fmt: skip
    confidence = jax.nn.sigmoid(head[:, :, 4])
    hidden = (confidence < jnp.asarray(np.float32(conf_thresh), dtype))[..., None]
    boxes = jnp.where(hidden, 0, jnp.stack(corners, -1)).astype(dtype)
    scores = jnp.moveaxis(confidence[:, :, None] * jax.nn.sigmoid(head[:, :, 5:]), 2, -1)
    scores = jnp.where(hidden, 0, scores).astype(dtype)
    return boxes.reshape(images, -1, 4), scores.reshape(images, -1, class_num)
