"""Losses on class labels besides cross entropy: bpr_loss, nll_loss, center_loss."""

from __future__ import annotations

import numpy as np

from paddlelike.core.rows import sum_rows
from paddlelike.errors import ShapeError
from paddlelike.framework.opdef import (
    OWN,
    REQUIRED,
    Array,
    Bool,
    Gradient,
    Int,
    Long,
    OpDef,
    Spec,
    String,
    register,
)
from paddlelike.ops.kernels.special import sigmoid, softplus
from paddlelike.ops.loss.cross_entropy import check_label, flatten_labels
from paddlelike.ops.operands import can_be_equal


@register
class BprLoss(OpDef):
    """``Y = mean over j != Label of log(1 + exp(X[j] - X[Label]))``.

    Source: Hidasi et al., "Session-based recommendations with recurrent neural networks", 2016.
    """

    type = "bpr_loss"
    pairs_rows = True
    by_row = True
    inputs = ("X", "Label")
    outputs = ("Y",)
    lod = "X"
    gradient = Gradient("Y@GRAD", "X", "Label", outputs=("X@GRAD",), lod=OWN)

    @staticmethod
    def infer(x: Spec, label: Spec) -> Spec:
        check_label("bpr_loss", x, label, soft=False, may_drop=False)
        return Spec((*x.shape[:-1], 1), x.dtype)

    @staticmethod
    def forward(x: Array, label: Array) -> Array:
        flat, _ = flatten_labels("bpr_loss", label, x.shape[-1])
        rows = x.reshape(-1, x.shape[-1])
        at = (np.arange(len(flat)), flat)
        order = rows - rows[at][:, None]
        losses = softplus(order)
        with np.errstate(over="ignore"):
            losses[np.isinf(np.exp(order))] = np.log(1e20)  # Fluid's number for infinity
        losses[at] = 0
        return (losses.sum(-1) / (x.shape[-1] - 1)).reshape(*x.shape[:-1], 1)

    @staticmethod
    def backward(d_y: Array, x: Array, label: Array) -> Array:
        flat, _ = flatten_labels("bpr_loss", label, x.shape[-1])
        rows = x.reshape(-1, x.shape[-1])
        at = (np.arange(len(flat)), flat)
        slope = sigmoid(rows - rows[at][:, None])
        slope[at] = 0
        slope *= d_y.reshape(-1, 1) / (x.shape[-1] - 1)
        slope[at] = -slope.sum(-1)
        return slope.reshape(x.shape)


@register
class NllLoss(OpDef):
    """``Out = -Weight[Label] X[Label]``: X has logarithms (N, C), or (N, C, H, W) with Label (N, H, W).

    ``reduction``: none, sum, or mean (the sum divided by the weights of the labels, Total_weight).
    """

    type = "nll_loss"
    inputs = ("X", "Label", "Weight?")
    outputs = ("Out", "Total_weight")
    attrs = {"ignore_index": Long(-100), "reduction": String("mean")}
    gradient = Gradient("Out@GRAD", "X", "Label", "Weight", "Total_weight", outputs=("X@GRAD",))

    @staticmethod
    def infer(x: Spec, label: Spec, weight: Spec | None, *, reduction: str) -> tuple[Spec, Spec]:
        want = (x.shape[0], *x.shape[2:])
        fits = len(label.shape) == len(want) and all(map(can_be_equal, label.shape, want))
        if len(x.shape) not in (2, 4) or not fits:
            raise ShapeError(
                f"nll_loss: X has shape {x.shape} and Label {label.shape}; "
                "expected (N, C) and (N,), or (N, C, H, W) and (N, H, W)"
            )
        if weight is not None and not (len(weight.shape) == 1 and can_be_equal(weight.shape[0], x.shape[1])):
            raise ShapeError(
                f"nll_loss: Weight has shape {weight.shape}, expected one per class of X {x.shape}"
            )
        one = Spec((1,), x.dtype)
        return Spec(label.shape, x.dtype) if reduction == "none" else one, one

    @staticmethod
    def forward(
        x: Array, label: Array, weight: Array | None, *, ignore_index: int, reduction: str
    ) -> tuple[Array, Array]:
        flat, weights = _find_label_weights(x, label, weight, ignore_index)
        rows = np.moveaxis(x, 1, -1).reshape(-1, x.shape[1])
        loss = -weights * rows[np.arange(len(flat)), flat]
        if reduction == "none":
            return loss.reshape(label.shape), np.zeros(1, x.dtype)
        total = weights.sum()
        out = loss.sum()
        if reduction == "mean" and total:
            out /= total
        return out.reshape(1), total.reshape(1)

    @staticmethod
    def backward(
        d_out: Array,
        x: Array,
        label: Array,
        weight: Array | None,
        total_weight: Array,
        *,
        ignore_index: int,
        reduction: str,
    ) -> Array:
        flat, weights = _find_label_weights(x, label, weight, ignore_index)
        if reduction == "mean" and total_weight.item():
            weights = weights / total_weight
        rows = np.zeros((len(flat), x.shape[1]), x.dtype)
        rows[np.arange(len(flat)), flat] = -weights * d_out.reshape(-1)
        return np.moveaxis(rows.reshape(x.shape[0], *x.shape[2:], x.shape[1]), -1, 1)


def _find_label_weights(
    x: Array, label: Array, weight: Array | None, ignore_index: int
) -> tuple[Array, Array]:
    """Return the labels as one row, and the weight of each label, 0 for ignored ones."""
    flat, ignored = flatten_labels("nll_loss", label, x.shape[1], ignore_index)
    weights = np.ones(len(flat), x.dtype) if weight is None else weight[flat]
    return flat, weights if ignored is None else weights * ~ignored


@register
class CenterLoss(OpDef):
    """``Loss = |D|^2 / 2`` per row, D = X - Centers[Label] (SampleCenterDiff).

    With ``need_update`` a center with n rows moves by CenterUpdateRate times the sum of their D, divided by
    (1 + n). Source: Wen et al., "A discriminative feature learning approach for deep face recognition", 2016.
    """

    type = "center_loss"
    until = "1"
    inputs = ("X", "Label", "Centers", "CenterUpdateRate")
    outputs = ("CentersOut", "SampleCenterDiff", "Loss")
    attrs = {"cluster_num": Int(REQUIRED), "need_update": Bool(REQUIRED)}
    lod = {"Loss": "X"}
    gradient = Gradient("Loss@GRAD", "X", "SampleCenterDiff", outputs=("X@GRAD",))

    @staticmethod
    def infer(x: Spec, label: Spec, centers: Spec, rate: Spec) -> tuple[Spec, Spec, Spec]:
        if len(x.shape) != 2 or len(centers.shape) != 2:
            raise ShapeError(
                f"center_loss: X has shape {x.shape} and Centers {centers.shape}; "
                "expected (N, width) and (clusters, width)"
            )
        loss = Spec((x.shape[0], 1), x.dtype)
        return Spec(centers.shape, x.dtype), Spec((x.shape[0], centers.shape[1]), x.dtype), loss

    @staticmethod
    def forward(
        x: Array, label: Array, centers: Array, rate: Array, *, cluster_num: int, need_update: bool
    ) -> tuple[Array, Array, Array]:
        flat, _ = flatten_labels("center_loss", label, len(centers))
        flat = flat[: len(x)]
        diff = x - centers[flat]
        loss = np.square(diff).sum(1, keepdims=True) / 2
        if not need_update:
            return centers.copy(), diff, loss
        count = 1 + np.bincount(flat, minlength=len(centers))
        step = sum_rows(flat, diff, len(centers)) * (rate[0] / count[:, None]).astype(x.dtype)
        step[max(cluster_num, 0) :] = 0
        return centers + step, diff, loss

    @staticmethod
    def backward(d_loss: Array, x: Array, diff: Array) -> Array:
        return d_loss * diff
