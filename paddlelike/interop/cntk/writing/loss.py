"""Loss functions."""

from __future__ import annotations

from paddlelike.formats.cntk.dictionary import SizeT
from paddlelike.interop.cntk.writing.elementwise import choose
from paddlelike.interop.cntk.writing.graph import Ref, Step, static_axis, writes


def _spread(step: Step, label: Ref, depth: int) -> Ref:
    """Return class labels as one-hot rows."""
    if label.shape not in ((), (1,)):
        step.refuse(f"its labels have the static shape {list(label.shape)}")
    wide = step.reshape(label, [1])
    attributes = {"numClass": SizeT(depth), "oneHotOutputSparse": False, "onehotAxis": static_axis(1, 2)}
    return step.reshape(step.graph.add("OneHot", [wide], attributes, shape=[1, depth]), [depth])


def _read_labels(step: Step, x: Ref) -> Ref:
    label = step.ref("Label")
    if x.rank != 1:
        step.refuse(f"its input has the static shape {list(x.shape)}")
    return label if step.attr("soft_label") else _spread(step, label, x.shape[0])


@writes("softmax_with_cross_entropy")
def _write_softmax_with_cross_entropy(step: Step) -> None:
    x = step.ref("Logits")
    logs = step.binary("Minus", x, step.reduce(x, "LogSum", [0]))
    hit = step.binary("ElementTimes", _read_labels(step, x), logs)
    step.give("Softmax", step.unary("Softmax", x))
    step.give("Loss", step.unary("Negate", step.reduce(hit, "Sum", [0])))


@writes("cross_entropy")
def _write_cross_entropy(step: Step) -> Ref:
    x = step.ref()
    hit = step.binary("ElementTimes", _read_labels(step, x), step.unary("Log", x))
    return step.unary("Negate", step.reduce(hit, "Sum", [0]))


@writes("log_loss")
def _write_log_loss(step: Step) -> Ref:
    p, label, epsilon = step.ref("Predicted"), step.ref("Labels"), float(step.attr("epsilon"))
    hit = step.binary("ElementTimes", label, step.unary("Log", step.scale(p, 1, epsilon)))
    rest = step.unary("Log", step.scale(p, -1, 1 + epsilon))
    miss = step.binary("ElementTimes", step.scale(label, -1, 1), rest)
    return step.unary("Negate", step.binary("Plus", hit, miss))


@writes("label_smooth")
def _write_label_smooth(step: Step) -> Ref:
    x, epsilon = step.ref(), float(step.attr("epsilon"))
    prior = step.ref("PriorDist") if step.has("PriorDist") else step.number(1 / x.shape[-1], x)
    if prior.rank:
        prior = step.reshape(prior, [x.shape[-1]])
    return step.binary("Plus", step.scale(x, 1 - epsilon), step.scale(prior, epsilon))


@writes("huber_loss")
def _write_huber(step: Step) -> None:
    """Compute ``r r / 2`` up to delta, and a linear function beyond it."""
    delta = float(step.attr("delta"))
    residual = step.binary("Minus", step.ref("Y"), step.ref())
    size = step.unary("Abs", residual)
    near = step.scale(step.binary("ElementTimes", residual, residual), 0.5)
    far = step.scale(size, delta, -0.5 * delta * delta)
    beyond = step.binary("Greater", size, step.number(delta, size))
    step.give("Residual", residual)
    step.give("Out", choose(step, beyond, far, near))


@writes("sigmoid_cross_entropy_with_logits")
def _write_sigmoid_cross_entropy(step: Step) -> Ref:
    """Compute ``max(x, 0) - x y + log(1 + e^-|x|)``."""
    x, label = step.ref(), step.ref("Label")
    if step.attr("normalize"):
        step.refuse("it divides by the number of labels that are not ignored")
    above = step.binary("LogPlus", x, step.number(0, x))
    loss = step.binary("Minus", above, step.binary("ElementTimes", x, label))
    counted = step.binary("NotEqual", label, step.number(step.attr("ignore_index"), label))
    return step.binary("ElementTimes", loss, counted)
