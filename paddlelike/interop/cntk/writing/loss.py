"""Loss functions."""

from __future__ import annotations

from paddlelike.formats.cntk.dictionary import SizeT
from paddlelike.interop.cntk.writing.graph import Ref, Step, static_axis, writes


def _spread(step: Step, label: Ref, depth: int) -> Ref:
    """Return class labels as one-hot rows."""
    if label.shape not in ((), (1,)):
        step.refuse(f"its labels have the static shape {list(label.shape)}")
    wide = label.reshape([1])
    attributes = {"numClass": SizeT(depth), "oneHotOutputSparse": False, "onehotAxis": static_axis(1, 2)}
    return step.graph.add("OneHot", [wide], attributes, shape=[1, depth]).reshape([depth])


def _read_labels(step: Step, x: Ref) -> Ref:
    label = step.ref("Label")
    if x.rank != 1:
        step.refuse(f"its input has the static shape {list(x.shape)}")
    return label if step.attr("soft_label") else _spread(step, label, x.shape[0])


@writes("softmax_with_cross_entropy")
def _write_softmax_with_cross_entropy(step: Step) -> None:
    x = step.ref("Logits")
    logs = x - x.reduce("LogSum", [0])
    hit = _read_labels(step, x) * logs
    step.give("Softmax", x.unary("Softmax"))
    step.give("Loss", -hit.reduce("Sum", [0]))


@writes("cross_entropy")
def _write_cross_entropy(step: Step) -> Ref:
    x = step.ref()
    hit = _read_labels(step, x) * x.unary("Log")
    return -hit.reduce("Sum", [0])


@writes("log_loss")
def _write_log_loss(step: Step) -> Ref:
    p, label, epsilon = step.ref("Predicted"), step.ref("Labels"), float(step.attr("epsilon"))
    hit = label * p.scale(1, epsilon).unary("Log")
    rest = p.scale(-1, 1 + epsilon).unary("Log")
    miss = label.scale(-1, 1) * rest
    return -(hit + miss)


@writes("label_smooth")
def _write_label_smooth(step: Step) -> Ref:
    x, epsilon = step.ref(), float(step.attr("epsilon"))
    prior = step.ref("PriorDist") if step.has("PriorDist") else x.number(1 / x.shape[-1])
    if prior.rank:
        prior = prior.reshape([x.shape[-1]])
    return x.scale(1 - epsilon) + prior.scale(epsilon)


@writes("huber_loss")
def _write_huber(step: Step) -> None:
    """Compute ``r r / 2`` up to delta, and a linear function beyond it."""
    delta = float(step.attr("delta"))
    residual = step.ref("Y") - step.ref()
    size = abs(residual)
    near = (residual * residual).scale(0.5)
    far = size.scale(delta, -0.5 * delta * delta)
    beyond = size > delta
    step.give("Residual", residual)
    step.give("Out", beyond.choose(far, near))


@writes("sigmoid_cross_entropy_with_logits")
def _write_sigmoid_cross_entropy(step: Step) -> Ref:
    """Compute ``max(x, 0) - x y + log(1 + e^-|x|)``."""
    x, label = step.ref(), step.ref("Label")
    if step.attr("normalize"):
        step.refuse("it divides by the number of labels that are not ignored")
    above = x.binary("LogPlus", 0)
    loss = above - x * label
    counted = label.binary("NotEqual", step.attr("ignore_index"))
    return loss * counted
