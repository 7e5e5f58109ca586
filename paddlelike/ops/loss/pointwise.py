"""Elementwise losses, and label_smooth: log_loss, hinge_loss, kldiv_loss, bce_loss, ..."""

from __future__ import annotations

import numpy as np

from paddlelike.errors import ShapeError
from paddlelike.framework.opdef import (
    OWN,
    REQUIRED,
    Array,
    Bool,
    Float,
    Gradient,
    Int,
    OpDef,
    Spec,
    String,
    register,
)
from paddlelike.ops.kernels.special import sigmoid, softplus
from paddlelike.ops.later import register_kernel
from paddlelike.ops.operands import can_be_equal, check_same_shape, count_elements, same_shape


@register
class SigmoidCrossEntropyWithLogits(OpDef):
    """``Out = max(X, 0) - X Label + log(1 + e^-|X|)``, the cross entropy of sigmoid(X) and Label in [0, 1].

    Elements whose label, truncated to an integer, is ``ignore_index`` give 0; ``normalize`` divides the
    others by their number.
    """

    type = "sigmoid_cross_entropy_with_logits"
    pairs_rows = True
    by_row = staticmethod(lambda attrs: not attrs["normalize"])
    inputs = ("X", "Label")
    attrs = {"normalize": Bool(False), "ignore_index": Int(-100)}
    lod = "X"
    gradient = Gradient("Out@GRAD", "X", "Label", outputs=("X@GRAD",))

    infer = same_shape("X", "Label")

    @staticmethod
    def forward(x: Array, label: Array, *, normalize: bool, ignore_index: int) -> Array:
        return _drop_ignored(softplus(x) - x * label, label, normalize, ignore_index)

    @staticmethod
    def backward(d_out: Array, x: Array, label: Array, *, normalize: bool, ignore_index: int) -> Array:
        return _drop_ignored(d_out * (sigmoid(x) - label), label, normalize, ignore_index)


def _drop_ignored(values: Array, label: Array, normalize: bool, ignore_index: int) -> Array:
    """Return ``values`` with 0 at ignored labels, on request divided by the number of labels that are not
    ignored.
    """
    ignored = label.astype(np.int64) == ignore_index
    values[ignored] = 0
    if normalize:
        values /= max(int((label != ignore_index).sum()), 1)  # not cut to integers here, as in Fluid
    return values


@register
class BceLoss(OpDef):
    """``Out = -Label log X - (1 - Label) log(1 - X)``; each logarithm is -100 at least."""

    type = "bce_loss"
    by_row = True
    inputs = ("X", "Label")
    lod = "X"
    gradient = Gradient("Out@GRAD", "X", "Label", outputs=("X@GRAD",), copies_attrs=False, lod_in_run=OWN)

    infer = same_shape("X", "Label")

    @staticmethod
    def forward(x: Array, label: Array) -> Array:
        with np.errstate(divide="ignore"):
            yes, no = np.maximum(np.log(x), -100), np.maximum(np.log1p(-x), -100)
        return (label - 1) * no - label * yes

    @staticmethod
    def backward(d_out: Array, x: Array, label: Array) -> Array:
        return d_out * (x - label) / np.maximum((1 - x) * x, 1e-12)


@register
class LogLoss(OpDef):
    """``Loss = -Labels log(P + epsilon) - (1 - Labels) log(1 - P + epsilon)``, P being Predicted."""

    type = "log_loss"
    pairs_rows = True
    by_row = True
    inputs = ("Predicted", "Labels")
    outputs = ("Loss",)
    attrs = {"epsilon": Float(REQUIRED)}
    lod = "Predicted"
    gradient = Gradient("Loss@GRAD", "Predicted", "Labels", outputs=("Predicted@GRAD",))

    infer = same_shape("Predicted", "Labels")

    @staticmethod
    def forward(predicted: Array, labels: Array, *, epsilon: float) -> Array:
        yes, no = np.log(predicted + epsilon), np.log(1 - predicted + epsilon)
        return (labels - 1) * no - labels * yes

    @staticmethod
    def backward(d_loss: Array, predicted: Array, labels: Array, *, epsilon: float) -> Array:
        return d_loss * ((1 - labels) / (1 - predicted + epsilon) - labels / (predicted + epsilon))


@register
class HingeLoss(OpDef):
    """``Loss = max(0, 1 - (2 Labels - 1) Logits)``; Labels are 0 or 1."""

    type = "hinge_loss"
    pairs_rows = True
    by_row = True
    inputs = ("Logits", "Labels")
    outputs = ("Loss",)
    lod = "Logits"
    gradient = Gradient("Loss@GRAD", "Logits", "Labels", outputs=("Logits@GRAD",))

    infer = same_shape("Logits", "Labels")

    @staticmethod
    def forward(logits: Array, labels: Array) -> Array:
        return np.maximum(1 - (2 * labels - 1) * logits, 0)

    @staticmethod
    def backward(d_loss: Array, logits: Array, labels: Array) -> Array:
        side = 2 * labels - 1
        return -d_loss * side * (side * logits < 1)


@register
class ModifiedHuberLoss(OpDef):
    """``Out = max(0, 1 - M)^2`` where M = (2Y - 1) X is -1 or more, else ``-4 M``; Y is 0 or 1.

    IntermediateVal is M.
    """

    type = "modified_huber_loss"
    pairs_rows = True
    by_row = True
    inputs = ("X", "Y")
    outputs = ("IntermediateVal", "Out")
    gradient = Gradient("Out@GRAD", "IntermediateVal", "Y", outputs=("X@GRAD",))

    infer = same_shape("X", "Y")

    @staticmethod
    def forward(x: Array, y: Array) -> tuple[Array, Array]:
        margin = (2 * y - 1) * x
        return margin, np.where(margin < -1, -4 * margin, np.square(np.maximum(1 - margin, 0)))

    @staticmethod
    def backward(d_out: Array, margin: Array, y: Array) -> Array:
        slope = np.where(margin < -1, -4, -2 * np.maximum(1 - margin, 0))
        return d_out * slope * (2 * y - 1)


@register
class TeacherStudentSigmoidLoss(OpDef):
    """Losses of ``sigmoid(X)`` for clicks and for a teacher's scores, both encoded in one label.

    With h(z) = log(1 + e^X) - X z the loss is h(0) for Label < -1 (no click, no teacher), h(1) for Label < 0
    (click, no teacher), h(0) + h(Label) for Label < 1, else h(1) + h(Label - 1). The gradient is 0 where X is
    beyond the bounds.
    """

    type = "teacher_student_sigmoid_loss"
    by_row = True
    inputs = ("X", "Label")
    outputs = ("Y",)
    attrs = {"soft_max_up_bound": Float(15.0), "soft_max_lower_bound": Float(-15.0)}
    lod = "X"
    gradient = Gradient("Y@GRAD", "X", "Label", outputs=("X@GRAD",), lod_in_run=OWN)

    infer = same_shape("X", "Label")

    @staticmethod
    def forward(x: Array, label: Array) -> Array:
        terms, total = _find_clicks(label)
        return terms * softplus(x) - x * total

    @staticmethod
    def backward(
        d_y: Array, x: Array, label: Array, *, soft_max_up_bound: float, soft_max_lower_bound: float
    ) -> Array:
        terms, total = _find_clicks(label)
        inside = (x > soft_max_lower_bound) & (x < soft_max_up_bound)
        return d_y * (terms * sigmoid(x) - total) * inside


def _find_clicks(label: Array) -> tuple[Array, Array]:
    """Return how often h(z) occurs in the loss for each label, and the sum of the z."""
    one, two, zero = (label.dtype.type(n) for n in (1, 2, 0))
    terms = np.where(label < 0, one, two)
    return terms, np.where(label < -1, zero, np.where(label < 0, one, label))


@register
class KldivLoss(OpDef):
    """``Loss = Target (log Target - X)``, 0 where Target is not positive; X are logarithms.

    ``reduction``: none, mean, sum, or batchmean (the sum divided by the first dim).
    """

    type = "kldiv_loss"
    inputs = ("X", "Target")
    outputs = ("Loss",)
    attrs = {"reduction": String("mean")}
    gradient = Gradient("Loss@GRAD", "X", "Target", outputs=("X@GRAD",))

    @staticmethod
    def infer(x: Spec, target: Spec, *, reduction: str) -> Spec:
        if reduction not in ("none", "mean", "sum", "batchmean"):
            raise ShapeError(f"kldiv_loss: reduction is {reduction!r}, expected none, mean, sum or batchmean")
        same = check_same_shape("kldiv_loss", X=x, Target=target)
        return same if reduction == "none" else Spec((1,), x.dtype)

    @staticmethod
    def forward(x: Array, target: Array, *, reduction: str) -> Array:
        empty = target <= 0  # not so of NaN
        loss = target * (np.log(np.where(empty, 1, target)) - x)
        loss = np.where(empty, np.zeros_like(loss), loss)
        if reduction == "none":
            return loss
        return (loss.sum() / _find_divisor(x, reduction)).reshape(1)

    @staticmethod
    def backward(d_loss: Array, x: Array, target: Array, *, reduction: str) -> Array:
        return np.minimum(-target, 0) * (d_loss / _find_divisor(x, reduction))


@register_kernel(
    "kldiv_loss", "X Target -> Loss", {"reduction": String("mean"), "log_target": Bool(False)}, changed=True
)
def _kldiv_loss(x: Array, target: Array, *, reduction: str, log_target: bool) -> Array:
    """The loss ``kldiv_loss`` of Fluid 1.8; Target may hold logarithms."""
    if not log_target:
        loss = KldivLoss.forward(x, target, reduction=reduction)
    else:
        each = np.exp(target) * (target - x)
        loss = each if reduction == "none" else (each.sum() / _find_divisor(x, reduction)).reshape(1)
    return loss


def _find_divisor(x: Array, reduction: str) -> int:
    """Return the number by which a reduction divides the sum."""
    return {"mean": x.size, "batchmean": len(x)}.get(reduction, 1)


@register
class LabelSmooth(OpDef):
    """``Out = (1 - epsilon) X + epsilon PriorDist``; without PriorDist, 1 / (number of classes)."""

    type = "label_smooth"
    by_row = True
    inputs = ("X", "PriorDist?")
    attrs = {"epsilon": Float(0.0)}
    lod = "X"
    gradient = Gradient("Out@GRAD", outputs=("X@GRAD",))

    @staticmethod
    def infer(x: Spec, prior: Spec | None) -> Spec:
        if prior is not None and not can_be_equal(count_elements(prior.shape), x.shape[-1]):
            raise ShapeError(
                f"label_smooth: PriorDist has shape {prior.shape}, "
                f"expected one number per class of X {x.shape}"
            )
        return Spec(x.shape, x.dtype)

    @staticmethod
    def forward(x: Array, prior: Array | None, *, epsilon: float) -> Array:
        if prior is None:
            return _keep_share(epsilon) * x + float(np.float32(epsilon) / np.float32(x.shape[-1]))
        return _keep_share(epsilon) * x + epsilon * prior.reshape(-1)

    @staticmethod
    def backward(d_out: Array, *, epsilon: float) -> Array:
        return _keep_share(epsilon) * d_out


def _keep_share(epsilon: float) -> float:
    return float(np.float32(1) - np.float32(epsilon))
