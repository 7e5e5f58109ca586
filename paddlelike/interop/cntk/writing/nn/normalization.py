"""Normalization, dropout and softmax."""

from __future__ import annotations

import math
from collections.abc import Sequence

from paddlelike.formats.cntk.dictionary import SizeT
from paddlelike.interop.cntk.writing.elementwise import divide
from paddlelike.interop.cntk.writing.graph import Ref, Step
from paddlelike.interop.cntk.writing.writers import writes


@writes("softmax", "log_softmax")
def _write_softmax(step: Step) -> None:
    x = step.ref()
    dim = step.static_dim(step.attr("axis", -1), x)
    if x.rank == 1 and step.op.type == "softmax":
        step.give("Out", step.unary("Softmax", x))
        return
    moved = step.binary("Minus", x, step.reduce(x, "LogSum", [dim]))
    step.give("Out", step.unary("Exp", moved) if step.op.type == "softmax" else moved)


@writes("dropout")
def _write_dropout(step: Step) -> None:
    """CNTK divides what is kept by its share in training; Fluid's older way multiplies in prediction."""
    x, rate = step.ref(), float(step.attr("dropout_prob"))
    out = x
    if rate < 1:
        out = step.unary("Dropout", x, dropoutRate=rate, rngSeed=SizeT(0), rngOffset=SizeT(0))
    if step.attr("dropout_implementation") != "upscale_in_train":
        out = step.scale(out, 1 - rate)
    step.give("Out", step.unary("NoOp", x) if out is x else out)


@writes("batch_norm")
def _write_batch_norm(step: Step) -> None:
    test = step.attr("is_test") and not step.attr("trainable_statistics")
    if not (test or step.attr("use_global_stats")):
        step.refuse("it is in training mode; export program.clone(for_test=True)")
    x = step.ref()
    if step.attr("data_layout", "NCHW") != "NCHW" or x.rank not in (1, 3) or not x.dynamic:
        step.refuse(f"its input has {x.rank} dims, or its channels last")
    parts = [step.ref(slot) for slot in ("Scale", "Bias", "Mean", "Variance")]
    count = step.number(1, x)
    attributes = {
        "blendTimeConstant": 0.0,
        "disableRegularization": False,
        "epsilon": float(step.attr("epsilon")),
        "normalizationTimeConstant": _find_constant(step),
        "spatial": x.rank > 1,
        "useCuDNNEngine": False,
    }
    step.give("Y", step.graph.add("BatchNormalization", [x, *parts, count], attributes, shape=x.shape))


def _find_constant(step: Step) -> float:
    """Return the samples after which running averages have forgotten, by the minibatch, as much as here."""
    momentum, batch = float(step.attr("momentum")), step.graph.batch
    if batch is None or not 0 < momentum < 1:
        return 5000.0  # CNTK's own default: it is not used in prediction
    return -batch / math.log(momentum)


def standardize(step: Step, x: Ref, dims: Sequence[int], epsilon: float) -> Ref:
    """Return ``(x - mean) / sqrt(var + epsilon)`` over some static dims."""
    moved = step.binary("Minus", x, step.reduce(x, "Mean", dims))
    variance = step.reduce(step.binary("ElementTimes", moved, moved), "Mean", dims)
    return divide(step, moved, step.unary("Sqrt", step.scale(variance, 1, epsilon)))


@writes("layer_norm")
def _write_layer_norm(step: Step) -> None:
    x = step.ref()
    start = step.static_dim(step.attr("begin_norm_axis"), x)
    out = standardize(step, x, range(start, x.rank), float(step.attr("epsilon")))
    for kind, slot in (("ElementTimes", "Scale"), ("Plus", "Bias")):
        if step.has(slot):
            out = step.binary(kind, out, step.reshape(step.ref(slot), x.shape[start:]))
    step.give("Y", out)


def _scale_channels(step: Step, x: Ref) -> Ref:
    """Return an image times the scale of each channel, plus its bias."""
    for kind, slot in (("ElementTimes", "Scale"), ("Plus", "Bias")):
        if step.has(slot):
            x = step.binary(kind, x, step.reshape(step.ref(slot), [x.shape[0]] + [1] * (x.rank - 1)))
    return x


def _check_channels(step: Step, x: Ref) -> None:
    layout = step.attr("data_layout", "NCHW")
    if layout not in ("NCHW", "AnyLayout") or not x.dynamic or x.rank < 2:
        step.refuse(f"its input has {x.rank} dims, or its channels last")


@writes("affine_channel")
def _write_affine(step: Step) -> None:
    x = step.ref()
    _check_channels(step, x)
    step.give("Out", _scale_channels(step, x))


@writes("instance_norm", "group_norm")
def _write_group_norm(step: Step) -> None:
    x = step.ref()
    _check_channels(step, x)
    groups = int(step.attr("groups", 0) or x.shape[0])
    if x.shape[0] % groups:
        step.refuse(f"{x.shape[0]} channels are not {groups} groups of one size")
    flat = step.reshape(x, [groups, math.prod(x.shape) // groups])
    out = step.reshape(standardize(step, flat, [1], float(step.attr("epsilon"))), x.shape)
    step.give("Y", _scale_channels(step, out))
