"""Sequences: what Fluid has as a LoD of one level is CNTK's sequence axis."""

from __future__ import annotations

from typing import Final

from paddlelike.formats.cntk.dictionary import Axis, SizeT
from paddlelike.interop.cntk.writing.elementwise import divide
from paddlelike.interop.cntk.writing.graph import BATCH, Ref, Step
from paddlelike.interop.cntk.writing.linalg import times
from paddlelike.interop.cntk.writing.tensor.reshape import concat
from paddlelike.interop.cntk.writing.writers import writes

_CHOSEN: Final = {"FIRST": "PastValue", "LAST": "FutureValue"}
_REDUCED: Final = {"MAX": ("Max", float("-inf")), "SUM": ("Sum", 0.0)}
_ACTIVATIONS: Final = {"sigmoid": "StableSigmoid", "tanh": "Tanh", "relu": "ReLU"}


def _check(step: Step, x: Ref) -> None:
    if not x.sequence:
        step.refuse("its input is no sequences")


def _choose(step: Step, x: Ref, shift: str) -> Ref:
    """Return the step of each sequence beyond which there is none."""
    zero, one = step.number(0, x), step.number(1, x)
    spread = step.graph.add("ReconcileDynamicAxis", [zero, x], shape=[], like=x)
    end = step.graph.add(shift, [spread, one], {"offset": SizeT(1)}, shape=[])
    attributes = {
        "newDynamicAxes": [BATCH],
        "newSequenceAxisLengthScalingFactor": SizeT(0),
        "newSequenceAxisLengthAdditiveFactor": 1,
    }
    where = step.graph.add("Where", [end], attributes, shape=[])
    index = step.graph.add("PackedIndex", [x, where], shape=[])
    out = step.graph.add("GatherPacked", [x, index], shape=x.shape)
    return out._replace(sequence=False)


@writes("sequence_pool")
def _write_pool(step: Step) -> None:
    x, kind = step.ref(), step.attr("pooltype")
    _check(step, x)
    if kind in _CHOSEN:
        step.give("Out", _choose(step, x, _CHOSEN[kind]))
        return
    if kind in ("AVERAGE", "SQRT"):
        total = _reduce(step, x, "SUM")
        count = _reduce(step, step.unary("ConstantOp", x, fillValue=1.0), "SUM")
        step.give("Out", divide(step, total, step.unary("Sqrt", count) if kind == "SQRT" else count))
    elif kind in _REDUCED:
        step.give("Out", _reduce(step, x, kind))
    else:
        step.refuse(f"it pools by {kind}")


def _reduce(step: Step, x: Ref, kind: str) -> Ref:
    """Return a reduction over the steps of each sequence, which CNTK pads for that."""
    how, padding = _REDUCED[kind]
    options = {"sequenceUnpackPaddingValue": padding, "sequenceUnpackSuppressMaskOutput": True}
    unpacked = step.graph.add("UnpackSequence", [x], options, shape=[0, *x.shape])
    attributes = {
        "axis": Axis(x.rank, f"staticAxisIdx={x.rank}", ordered=True),
        "reductionOpName": how,
        "reductionKeepDimensions": False,
    }
    out = step.graph.add("ReduceElements", [unpacked], attributes, shape=x.shape)
    return out._replace(sequence=False)


def _spread(step: Step, value: Ref, x: Ref) -> Ref:
    """Return a value of each sequence at all of its steps."""
    return step.graph.add("ReconcileDynamicAxis", [value, x], shape=value.shape, like=x)


@writes("sequence_softmax")
def _write_softmax(step: Step) -> None:
    x = step.ref()
    _check(step, x)
    moved = step.unary("Exp", step.binary("Minus", x, _spread(step, _reduce(step, x, "MAX"), x)))
    step.give("Out", divide(step, moved, _spread(step, _reduce(step, moved, "SUM"), x)))


@writes("sequence_conv")
def _write_conv(step: Step) -> None:
    """The steps around each one, side by side, times the filter; there are zeros beyond the ends."""
    x, start = step.ref(), int(step.attr("contextStart"))
    _check(step, x)
    step.refuse_inputs("PaddingData")
    if step.attr("contextStride") != 1 or x.rank != 1:
        step.refuse("its contextStride is not 1, or its steps are no rows")
    parts = []
    for offset in range(start, start + int(step.attr("contextLength"))):
        shift = "PastValue" if offset < 0 else "FutureValue"
        options = {"offset": SizeT(abs(offset))}
        moved = step.graph.add(shift, [x, step.number(0, x)], options, shape=x.shape) if offset else x
        parts.append(moved)
    joined = concat(step, parts, 0) if len(parts) > 1 else parts[0]
    step.give("Out", times(step, joined, step.ref("Filter")))


@writes("sequence_expand_as", "sequence_expand")
def _write_expand(step: Step) -> None:
    x, y = step.ref(), step.ref("Y")
    if x.sequence or not x.dynamic or not y.sequence:
        step.refuse("X is sequences itself, or Y is none")
    step.give("Out", step.graph.add("ReconcileDynamicAxis", [x, y], shape=x.shape, like=y))


def _activate(step: Step, x: Ref, name: str) -> Ref:
    kind = step.attr(name)
    if kind == "identity":
        return x
    if kind not in _ACTIVATIONS:
        step.refuse(f"its {name} is {kind}")
    return step.unary(_ACTIVATIONS[kind], x)


def _before(step: Step, later: str, like: Ref) -> Ref:
    """Return the value of the step before of a function that comes later."""
    step.graph.add_placeholder(f"{later}_Output_0", like)
    shift = "FutureValue" if step.attr("is_reverse") else "PastValue"
    source = like._replace(uid=f"{later}_Output_0")
    return step.graph.add(shift, [source, step.number(0, like)], {"offset": SizeT(1)}, shape=like.shape)


@writes("lstm")
def _write_lstm(step: Step) -> None:
    """Gates in Fluid's order: candidate, input, forget, output."""
    x, weight, bias = step.ref("Input"), step.ref("Weight"), step.ref("Bias")
    _check(step, x)
    step.refuse_inputs("H0", "C0")
    size = weight.shape[0]
    like = x._replace(shape=(size,))
    hidden, cell = step.graph.take_uid("ElementTimes"), step.graph.take_uid("Plus")
    hidden_before, cell_before = _before(step, hidden, like), _before(step, cell, like)
    flat = step.reshape(bias, [bias.shape[-1]])
    gates = step.binary("Plus", x, times(step, hidden_before, weight))
    gates = step.binary("Plus", gates, step.slice(flat, 0, 0, 4 * size))
    candidate, enter, forget, leave = (step.slice(gates, 0, k * size, (k + 1) * size) for k in range(4))

    def peep(gate: Ref, state: Ref, index: int) -> Ref:
        if not step.attr("use_peepholes"):
            return gate
        look = step.slice(flat, 0, (4 + index) * size, (5 + index) * size)
        return step.binary("Plus", gate, step.binary("ElementTimes", state, look))

    enter = _activate(step, peep(enter, cell_before, 0), "gate_activation")
    forget = _activate(step, peep(forget, cell_before, 1), "gate_activation")
    candidate = _activate(step, candidate, "candidate_activation")
    kept = step.binary("ElementTimes", forget, cell_before)
    added = step.binary("ElementTimes", enter, candidate)
    now = step.graph.add("Plus", [kept, added], shape=[size], uid=cell)
    step.give("Cell", now)
    leave = _activate(step, peep(leave, now, 2), "gate_activation")
    seen = _activate(step, now, "cell_activation")
    step.give("Hidden", step.graph.add("ElementTimes", [leave, seen], shape=[size], uid=hidden))


@writes("gru")
def _write_gru(step: Step) -> None:
    """Gates in Fluid's order: update, reset, candidate. The candidate reads the reset state."""
    x, weight = step.ref("Input"), step.ref("Weight")
    _check(step, x)
    step.refuse_inputs("H0")
    size = weight.shape[0]
    state = step.graph.take_uid("Plus")
    before = _before(step, state, x._replace(shape=(size,)))
    # the weight is two matrices after each other, not one beside the other
    rows = step.reshape(weight, [3 * size * size])
    gates_weight = step.reshape(step.slice(rows, 0, 0, 2 * size * size), [size, 2 * size])
    candidate_weight = step.reshape(step.slice(rows, 0, 2 * size * size, 3 * size * size), [size, size])
    if step.has("Bias"):
        x = step.binary("Plus", x, step.reshape(step.ref("Bias"), [3 * size]))
    gates = step.binary("Plus", step.slice(x, 0, 0, 2 * size), times(step, before, gates_weight))
    gates = _activate(step, gates, "gate_activation")
    update, reset = step.slice(gates, 0, 0, size), step.slice(gates, 0, size, 2 * size)
    seen = times(step, step.binary("ElementTimes", reset, before), candidate_weight)
    candidate = step.binary("Plus", step.slice(x, 0, 2 * size, 3 * size), seen)
    candidate = _activate(step, candidate, "activation")
    kept, new = (before, candidate) if step.attr("origin_mode") else (candidate, before)
    first = step.binary("ElementTimes", update, kept)
    second = step.binary("ElementTimes", step.scale(update, -1, 1), new)
    step.give("Hidden", step.graph.add("Plus", [first, second], shape=[size], uid=state))
