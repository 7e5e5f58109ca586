"""Operators on boxes (xmin, ymin, xmax, ymax): encoding relative to anchors, clipping, overlaps.

The code of a box against an anchor has two parts, both divided by variances: the shift of its center in sides
of the anchor, and the logarithm of the ratio of the sides (Girshick et al., Rich feature hierarchies, 2014).
"""

from __future__ import annotations

import math

import numpy as np

from paddlelike.errors import EnforceNotMet, ShapeError
from paddlelike.framework.opdef import (
    NO_LOD,
    Array,
    Attrs,
    Bool,
    Context,
    Float,
    Floats,
    Int,
    OpDef,
    Spec,
    String,
    register,
)
from paddlelike.ops.kernels.fast import boxes as fast
from paddlelike.ops.kernels.lod import read_last_level
from paddlelike.ops.kernels.rounding import exp, log
from paddlelike.ops.operands import can_be_equal


class BoxCoderAttrs(Attrs):
    """Attributes of box_coder. ``axis``: the dim of TargetBox that the anchors belong to when decoding."""

    code_type: str = String("encode_center_size")
    box_normalized: bool = Bool(True)
    axis: int = Int(0)
    variance: list[float] = Floats([])


@register
class BoxCoder(OpDef):
    """Encode boxes relative to anchors PriorBox ``(M, 4)``, or decode them.

    Encoding takes TargetBox ``(N, 4)`` and codes every box against every anchor; decoding takes codes ``(N,
    M, 4)``, or ``(M, N, 4)`` with ``axis`` 1. OutputBox is ``(N, M, 4)`` or like TargetBox. PriorBoxVar ``(M,
    4)`` or ``variance`` (4 numbers), if given, divides the code.
    """

    type = "box_coder"
    inputs = ("PriorBox", "PriorBoxVar?", "TargetBox")
    outputs = ("OutputBox",)
    attrs = BoxCoderAttrs.table()
    lod = "TargetBox"

    @staticmethod
    def infer(prior: Spec, variances: Spec | None, target: Spec, *, attrs: BoxCoderAttrs) -> Spec:
        # As in Paddle, shapes are compared when it runs: scripts declare targets of other shapes.
        if attrs.code_type not in ("encode_center_size", "decode_center_size"):
            raise ShapeError(
                f"box_coder: code_type is {attrs.code_type!r}",
                hint="take 'encode_center_size' or 'decode_center_size'",
            )
        if attrs.axis not in (0, 1):
            raise ShapeError(f"box_coder: axis is {attrs.axis}, expected 0 or 1")
        if attrs.variance and len(attrs.variance) != 4:
            raise ShapeError(f"box_coder: variance is {attrs.variance}; it needs 4 numbers")
        if attrs.code_type == "encode_center_size":
            return Spec((target.shape[0], prior.shape[0], 4), target.dtype)
        return Spec(target.shape, target.dtype)

    @staticmethod
    def forward(
        ctx: Context, prior: Array, variances: Array | None, target: Array, *, attrs: BoxCoderAttrs
    ) -> Array:
        _check_coded(prior, variances, target, attrs)
        if attrs.axis == 1:  # the anchors are the rows
            ctx.set_lod("OutputBox", ctx.lod("PriorBox"))
        edge = prior.dtype.type(not attrs.box_normalized)
        if variances is None and attrs.variance:
            variances = np.array(attrs.variance, np.float32).astype(prior.dtype)
        if attrs.code_type == "encode_center_size":
            return _encode(prior, variances, target, edge)
        if attrs.axis == 1:
            prior = prior[:, None]
            variances = variances if variances is None or variances.ndim == 1 else variances[:, None]
        return _decode(prior, variances, target, edge)


def _check_coded(prior: Array, variances: Array | None, target: Array, attrs: BoxCoderAttrs) -> None:
    """Raise ShapeError unless the boxes, or encoded boxes, fit the anchors."""
    shapes = f"PriorBox has shape {prior.shape}, TargetBox {target.shape}"
    if prior.ndim != 2 or prior.shape[1] != 4:
        raise ShapeError(f"box_coder: {shapes}; PriorBox needs (anchors, 4)")
    if variances is not None and variances.shape != prior.shape:
        raise ShapeError(f"box_coder: {shapes}, PriorBoxVar {variances.shape}; expected equal shapes")
    if attrs.code_type == "encode_center_size":
        if target.ndim != 2 or target.shape[1] != 4:
            raise ShapeError(f"box_coder: {shapes}; to encode, TargetBox needs (boxes, 4)")
    elif target.ndim != 3 or target.shape[2] != 4 or target.shape[1 - attrs.axis] != len(prior):
        raise ShapeError(
            f"box_coder: {shapes}; to decode, TargetBox needs (N, M, 4), the anchors in dim {1 - attrs.axis}",
            hint="axis=0 has the anchors in dim 1, axis=1 in dim 0",
        )


def _encode(prior: Array, variances: Array | None, target: Array, edge: np.generic) -> Array:
    out = np.empty((len(target), len(prior), 4), target.dtype)
    for axis in (0, 1):
        side = prior[:, axis + 2] - prior[:, axis] + edge
        target_side = (target[:, axis + 2] - target[:, axis] + edge)[:, None]
        center = prior[:, axis] + side / 2
        target_center = ((target[:, axis + 2] + target[:, axis]) / 2)[:, None]
        out[..., axis] = (target_center - center) / side
        out[..., axis + 2] = log(np.abs(target_side / side))
    if variances is not None:
        out /= variances
    return out


def _decode(prior: Array, variances: Array | None, target: Array, edge: np.generic) -> Array:
    code = target if variances is None else target * variances
    out = np.empty(target.shape, target.dtype)
    for axis in (0, 1):
        side = prior[..., axis + 2] - prior[..., axis] + edge
        center = code[..., axis] * side + (prior[..., axis] + side / 2)
        half = exp(code[..., axis + 2]) * side / 2
        out[..., axis], out[..., axis + 2] = center - half, center + half - edge
    return out


@register
class BoxClip(OpDef):
    """``Output``: the boxes of every image, clipped to its borders.

    Input ``(rows, ..., 4)`` has one sequence of boxes per image. Row i of ImInfo ``(N, 3)`` is (height,
    width, scale) of image i. The borders are those of the original image: height and width divided by scale.
    """

    type = "box_clip"
    inputs = ("Input", "ImInfo")
    outputs = ("Output",)
    lod = "Input"

    @staticmethod
    def infer(boxes: Spec, info: Spec) -> Spec:
        if boxes.shape[-1] != 4:
            raise ShapeError(f"box_clip: Input has shape {boxes.shape}; its last dim must be 4")
        if len(info.shape) != 2 or info.shape[1] not in (3, -1):
            raise ShapeError(f"box_clip: ImInfo has shape {info.shape}; it needs (N, 3)")
        return Spec(boxes.shape, boxes.dtype)

    @staticmethod
    def forward(ctx: Context, boxes: Array, info: Array) -> Array:
        counts = np.diff(read_last_level(ctx, "Input", len(boxes)))
        if len(counts) > len(info):
            raise EnforceNotMet(f"box_clip: Input has {len(counts)} images, but ImInfo {len(info)} rows")
        size = info[: len(counts), :2] / info[: len(counts), 2:]
        high = np.where(size > 0, np.floor(size + 0.5), np.ceil(size - 0.5)) - 1
        each = np.repeat(high[:, [1, 0, 1, 0]].astype(boxes.dtype), counts, 0)
        bound = each.reshape(len(boxes), *[1] * (boxes.ndim - 2), 4)
        held = np.where(bound < boxes, bound, boxes)  # a bound of NaN limits nothing
        return np.where(held < 0, np.zeros((), boxes.dtype), held)


@register
class BoxDecoderAndAssign(OpDef):
    """Decode a box per class and anchor, and choose the box of the best class except the first.

    PriorBox ``(N, 4)`` is in pixels, PriorBoxVar ``(4,)``, TargetBox and DecodeBox ``(N, 4 * classes)``,
    BoxScore ``(N, classes)``. OutputAssignBox ``(N, 4)`` is the anchor itself where the background is the
    only class. ``box_clip`` is an upper bound for the logarithms of the sides.
    """

    type = "box_decoder_and_assign"
    by_row = True
    inputs = ("PriorBox", "PriorBoxVar?", "TargetBox", "BoxScore")
    outputs = ("DecodeBox", "OutputAssignBox")
    attrs = {"box_clip": Float(4.135)}
    lod = {"DecodeBox": "TargetBox", "OutputAssignBox": "PriorBox"}

    @staticmethod
    def infer(
        prior: Spec, variances: Spec | None, target: Spec, score: Spec, *, box_clip: float
    ) -> tuple[Spec, Spec]:
        _check_boxes("box_decoder_and_assign", "PriorBox", prior)
        if variances is None or len(variances.shape) != 1 or variances.shape[0] not in (4, -1):
            shape = None if variances is None else variances.shape
            raise ShapeError(f"box_decoder_and_assign: PriorBoxVar has shape {shape}; it needs (4,)")
        if len(target.shape) != 2 or len(score.shape) != 2:
            raise ShapeError(
                f"box_decoder_and_assign: TargetBox has shape {target.shape}, BoxScore {score.shape}; "
                "they need (N, 4 * classes) and (N, classes)"
            )
        wide, classes = target.shape[1], score.shape[1]
        same_rows = all(can_be_equal(one.shape[0], prior.shape[0]) for one in (target, score))
        if not same_rows or (min(wide, classes) > 0 and wide != 4 * classes):
            raise ShapeError(
                f"box_decoder_and_assign: PriorBox has shape {prior.shape}, TargetBox {target.shape}, "
                f"BoxScore {score.shape}; expected (N, 4), (N, 4 * classes), (N, classes)"
            )
        return Spec(target.shape, target.dtype), Spec((prior.shape[0], 4), prior.dtype)

    @staticmethod
    def forward(
        prior: Array, variances: Array, target: Array, score: Array, *, box_clip: float
    ) -> tuple[Array, Array]:
        rows, classes = score.shape
        code = target.reshape(rows, classes, 4) * variances
        np.minimum(code[..., 2:], np.float32(box_clip), out=code[..., 2:])
        out = _decode(prior[:, None], None, code, prior.dtype.type(1))
        assigned = prior.copy()
        if classes > 1:
            best = score[:, 1:].argmax(1) + 1
            found = np.take_along_axis(score, best[:, None], 1)[:, 0] > -1  # the lowest score that counts
            assigned[found] = out[found, best[found]]
        return out.reshape(target.shape), assigned


@register
class IouSimilarity(OpDef):
    """``Out[i, j]``: intersection over union of box i of X ``(N, 4)`` and box j of Y ``(M, 4)``."""

    type = "iou_similarity"
    inputs = ("X", "Y")
    attrs = {"box_normalized": Bool(True)}
    lod = "X"

    @staticmethod
    def infer(x: Spec, y: Spec) -> Spec:
        _check_boxes("iou_similarity", "X", x)
        _check_boxes("iou_similarity", "Y", y)
        return Spec((x.shape[0], y.shape[0]), x.dtype)

    @staticmethod
    def forward(x: Array, y: Array, *, box_normalized: bool) -> Array:
        edge = x.dtype.type(not box_normalized)
        if (kernel := fast.measure_similarity.choose(len(x) * len(y), x, y)) is not None:
            similarity = np.empty((len(x), len(y)), x.dtype)
            kernel(x, np.ascontiguousarray(y.T), edge, x.dtype.type(1e-10), similarity)
            return similarity
        a, b = x.T[:, :, None], y.T[:, None]
        height = np.minimum(a[3], b[3]) - np.maximum(a[1], b[1]) + edge
        width = np.minimum(a[2], b[2]) - np.maximum(a[0], b[0]) + edge
        common = np.maximum(width, 0) * np.maximum(height, 0)
        # Unlike the overlaps of a suppression, an area is negative where a box is upside down.
        areas = [(one[3] - one[1] + edge) * (one[2] - one[0] + edge) for one in (a, b)]
        out: Array = common / (areas[0] + areas[1] - common + x.dtype.type(1e-10))
        return out


@register
class PolygonBoxTransform(OpDef):
    """Convert distances to coordinates: ``4 * w - Input`` in even channels, ``4 * h - Input`` in odd ones.

    Input and Output are ``(N, 2 * corners, H, W)``; a pixel of the map covers 4 of the image
    (Zhou et al., EAST, 2017).
    """

    type = "polygon_box_transform"
    inputs = ("Input",)
    outputs = ("Output",)

    @staticmethod
    def infer(x: Spec) -> Spec:
        if len(x.shape) != 4 or (x.shape[1] > 0 and x.shape[1] % 2):
            raise ShapeError(
                f"polygon_box_transform: Input has shape {x.shape}; it needs (N, channels, H, W) with an "
                "even number of channels"
            )
        return Spec(x.shape, x.dtype, NO_LOD)

    @staticmethod
    def forward(x: Array) -> Array:
        flat = x.reshape(
            math.prod(x.shape[:2]), *x.shape[2:]
        )  # Paddle counts channels through the whole batch
        across = np.arange(x.shape[3], dtype=x.dtype) * 4
        down = np.arange(x.shape[2], dtype=x.dtype)[:, None] * 4
        is_down = (np.arange(flat.shape[0]) % 2 == 1)[:, None, None]
        corners: Array = (np.where(is_down, down, across) - flat).reshape(x.shape)
        return corners


def _check_boxes(op: str, slot: str, spec: Spec) -> None:
    if len(spec.shape) != 2 or spec.shape[1] not in (4, -1):
        raise ShapeError(f"{op}: {slot} has shape {spec.shape}; it needs (boxes, 4)")
