"""Recurrent layers."""

from __future__ import annotations

from typing import Final

from paddlelike.formats.cntk.dictionary import SizeT
from paddlelike.interop.cntk.writing.graph import Ref, Step, writes
from paddlelike.interop.cntk.writing.linalg import times
from paddlelike.interop.cntk.writing.sequence import check_sequence

_ACTIVATIONS: Final = {"sigmoid": "StableSigmoid", "tanh": "Tanh", "relu": "ReLU"}


def _activate(step: Step, x: Ref, name: str) -> Ref:
    kind = step.attr(name)
    if kind == "identity":
        return x
    if kind not in _ACTIVATIONS:
        step.refuse(f"its {name} is {kind}")
    return step.unary(_ACTIVATIONS[kind], x)


def _before(step: Step, later: str, like: Ref) -> Ref:
    """Return the value that a function, which is added later, had in the previous step."""
    step.graph.add_placeholder(f"{later}_Output_0", like)
    shift = "FutureValue" if step.attr("is_reverse") else "PastValue"
    source = like._replace(uid=f"{later}_Output_0")
    return step.graph.add(shift, [source, step.number(0, like)], {"offset": SizeT(1)}, shape=like.shape)


@writes("lstm")
def _write_lstm(step: Step) -> None:
    """Write an LSTM; gates are in Fluid's order: candidate, input, forget, output."""
    x, weight, bias = step.ref("Input"), step.ref("Weight"), step.ref("Bias")
    check_sequence(step, x)
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
    """Write a GRU; gates are in Fluid's order: update, reset, candidate, which reads the reset state."""
    x, weight = step.ref("Input"), step.ref("Weight")
    check_sequence(step, x)
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
