"""Recurrent layers."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from paddlelike.formats.cntk.dictionary import SizeT
from paddlelike.interop.cntk.writing.graph import Ref, Step, writes
from paddlelike.interop.cntk.writing.sequence import check_sequence

_ACTIVATIONS: Final = {"sigmoid": "StableSigmoid", "tanh": "Tanh", "relu": "ReLU"}


def _activate(step: Step, x: Ref, name: str) -> Ref:
    kind = step.attr(name)
    if kind == "identity":
        return x
    if kind not in _ACTIVATIONS:
        step.refuse(f"its {name} is {kind}")
    return x.unary(_ACTIVATIONS[kind])


def _before(step: Step, later: str, like: Ref) -> Ref:
    """Return the value that a function, which is added later, had in the previous step."""
    step.graph.add_placeholder(f"{later}_Output_0", like)
    shift = "FutureValue" if step.attr("is_reverse") else "PastValue"
    source = replace(like, uid=f"{later}_Output_0")
    return step.graph.add(shift, [source, like.number(0)], {"offset": SizeT(1)}, shape=like.shape)


@writes("lstm")
def _write_lstm(step: Step) -> None:
    """Write an LSTM; gates are in Fluid's order: candidate, input, forget, output."""
    x, weight, bias = step.ref("Input"), step.ref("Weight"), step.ref("Bias")
    check_sequence(step, x)
    step.refuse_inputs("H0", "C0")
    size = weight.shape[0]
    like = replace(x, shape=(size,))
    hidden, cell = step.graph.take_uid("ElementTimes"), step.graph.take_uid("Plus")
    hidden_before, cell_before = _before(step, hidden, like), _before(step, cell, like)
    flat = bias.reshape([bias.shape[-1]])
    gates = x + hidden_before @ weight
    gates = gates + flat.slice(0, 0, 4 * size)
    candidate, enter, forget, leave = (gates.slice(0, k * size, (k + 1) * size) for k in range(4))

    def peep(gate: Ref, state: Ref, index: int) -> Ref:
        if not step.attr("use_peepholes"):
            return gate
        look = flat.slice(0, (4 + index) * size, (5 + index) * size)
        return gate + state * look

    enter = _activate(step, peep(enter, cell_before, 0), "gate_activation")
    forget = _activate(step, peep(forget, cell_before, 1), "gate_activation")
    candidate = _activate(step, candidate, "candidate_activation")
    kept = forget * cell_before
    added = enter * candidate
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
    before = _before(step, state, replace(x, shape=(size,)))
    # the weight is two matrices after each other, not one beside the other
    rows = weight.reshape([3 * size * size])
    gates_weight = rows.slice(0, 0, 2 * size * size).reshape([size, 2 * size])
    candidate_weight = rows.slice(0, 2 * size * size, 3 * size * size).reshape([size, size])
    if step.has("Bias"):
        x = x + step.ref("Bias").reshape([3 * size])
    gates = x.slice(0, 0, 2 * size) + before @ gates_weight
    gates = _activate(step, gates, "gate_activation")
    update, reset = gates.slice(0, 0, size), gates.slice(0, size, 2 * size)
    seen = reset * before @ candidate_weight
    candidate = x.slice(0, 2 * size, 3 * size) + seen
    candidate = _activate(step, candidate, "activation")
    kept, new = (before, candidate) if step.attr("origin_mode") else (candidate, before)
    first = update * kept
    second = update.scale(-1, 1) * new
    step.give("Hidden", step.graph.add("Plus", [first, second], shape=[size], uid=state))
