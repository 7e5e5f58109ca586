"""Recurrent layers: over sequences with a LoD (lstm, gru), and over batches (Paddle 2's rnn)."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from paddlelike.core import dtype_row
from paddlelike.interop.onnx.exporter.families.control.blocks import (
    find_sub_block,
    make_graph,
    translate_block,
)
from paddlelike.interop.onnx.exporter.families.sequence import pad
from paddlelike.interop.onnx.exporter.graph import Step, Value, converts
from paddlelike.interop.onnx.exporter.sequences import unpad_rows

_ACTIVATIONS: Final = {"identity": "Affine", "relu": "Relu", "sigmoid": "Sigmoid", "tanh": "Tanh"}


def _find_activations(step: Step, *names: str) -> dict[str, object]:
    acts = [step.attr(name) for name in names]
    if any(act not in _ACTIVATIONS for act in acts):
        step.refuse(f"activations {acts}")
    options: dict[str, object] = {"activations": [_ACTIVATIONS[act] for act in acts]}
    if "identity" in acts:  # the only activation with parameters
        options["activation_alpha"] = [1.0] * acts.count("identity")
        options["activation_beta"] = [0.0] * acts.count("identity")
    return options


def _time_major(step: Step) -> Value:
    """Return the projected inputs as ``(T, N, gates)``."""
    return pad(step, "Input").transpose([1, 0, 2])


def _give_rows(step: Step, batch: Value) -> None:
    """Set the output to a layer's result, ``(T, 1, N, hidden)``, as rows."""
    out = batch.squeeze(1).transpose([1, 0, 2])
    step.give("Hidden", unpad_rows(out, step.lengths("Input")))


def _order(step: Step, value: Value, order: tuple[int, ...], hidden: int, axis: int) -> Value:
    """Return the gates along a dim in another order."""
    parts = step.add_several("Split", value, step.ints(*[hidden] * len(order)), count=len(order), axis=axis)
    return step.concat(*(parts[i] for i in order), axis=axis)


def _take_gates(step: Step, order: tuple[int, ...], hidden: int, signs: tuple[int, ...]) -> Value:
    """Return weights ``(1, gates, gates)`` that reorder the gates of the projected inputs."""
    size = len(order) * hidden
    matrix = np.zeros((size, size), step.dtype("Input"))
    for row, (source, sign) in enumerate(zip(order, signs, strict=True)):
        places = np.arange(hidden)
        matrix[row * hidden + places, source * hidden + places] = sign
    return step.constant(matrix[None], step.dtype("Input"))


def _find_state(step: Step, slot: str) -> Value | str:
    return step.input(slot).unsqueeze(0) if step.has(slot) else ""


@converts("lstm")
def _convert_lstm(step: Step) -> None:
    """Convert an LSTM; gates are candidate, input, forget, output in Fluid, ``iofc`` in ONNX."""
    hidden, order = step.shape("Weight")[0], (1, 3, 2, 0)
    if step.is_read("Cell"):
        step.refuse("the cells of every step are read, which ONNX's LSTM does not give")
    acts = _find_activations(step, "gate_activation", "candidate_activation", "cell_activation")
    w = _take_gates(step, order, hidden, (1,) * 4)
    r = _order(step, step.input("Weight"), order, hidden, 1)
    bias = step.input("Bias").reshape(-1)
    b = _order(step, bias[: 4 * hidden], order, hidden, 0)
    nothing = step.constant(np.zeros(4 * hidden), step.dtype("Input"))
    b = step.concat(b, nothing).unsqueeze(0)
    parts: list[Value | str] = [_time_major(step), w, r.transpose([1, 0]).unsqueeze(0), b]
    parts += [step.lengths("Input").cast("int32"), _find_state(step, "H0"), _find_state(step, "C0")]
    if step.attr("use_peepholes"):
        peepholes = bias[4 * hidden : 7 * hidden]
        parts.append(_order(step, peepholes, (0, 2, 1), hidden, 0).unsqueeze(0))
    direction = "reverse" if step.attr("is_reverse") else "forward"
    _give_rows(step, step.add("LSTM", *parts, hidden_size=hidden, direction=direction, **acts))


@converts("gru")
def _convert_gru(step: Step) -> None:
    """Convert a GRU; gates are update, reset, candidate in both. Unless ``origin_mode`` is set, Fluid's
    update gate is 1 minus ONNX's, which is the sigmoid of the negative.
    """
    hidden, own = step.shape("Weight")[0], bool(step.attr("origin_mode"))
    if not own and step.attr("gate_activation") != "sigmoid":
        step.refuse(f"gate_activation is {step.attr('gate_activation')}")
    acts = _find_activations(step, "gate_activation", "activation")
    signs = (1, 1, 1) if own else (-1, 1, 1)
    dtype = step.dtype("Input")
    column = np.repeat(np.array(signs, dtype), hidden)
    w = _take_gates(step, (0, 1, 2), hidden, signs)
    flat = step.input("Weight").reshape(-1)
    cut = 2 * hidden * hidden
    gates = flat[:cut].reshape(hidden, 2 * hidden)
    rest = flat[cut : 3 * hidden * hidden]
    rest = rest.reshape(hidden, hidden)
    r = step.concat(gates, rest, axis=1).transpose([1, 0])
    r = (r * step.constant(column[:, None], dtype)).unsqueeze(0)
    nothing = step.constant(np.zeros(3 * hidden), dtype)
    bias = step.input("Bias").reshape(-1) if step.has("Bias") else nothing
    b = step.concat(bias * step.constant(column, dtype), nothing)
    parts: list[Value | str] = [_time_major(step), w, r, b.unsqueeze(0)]
    parts += [step.lengths("Input").cast("int32"), _find_state(step, "H0")]
    direction = "reverse" if step.attr("is_reverse") else "forward"
    _give_rows(step, step.add("GRU", *parts, hidden_size=hidden, direction=direction, **acts))


#: ONNX's operator, its options, and Paddle's gates in ONNX's order.
_MODES: Final[dict[str, tuple[str, dict[str, object], tuple[int, ...]]]] = {
    "GRU": ("GRU", {"linear_before_reset": 1}, (1, 0, 2)),
    "LSTM": ("LSTM", {}, (0, 3, 1, 2)),
    "RNN_RELU": ("RNN", {}, (0,)),
    "RNN_TANH": ("RNN", {}, (0,)),
}


@converts("rnn")
def _convert_rnn(step: Step) -> None:
    """Convert stacked layers, each in one direction or in both; ``Input`` is ``(T, N, width)``."""
    kind, options, order = _MODES[step.attr("mode")]
    hidden, layers = step.attr("hidden_size"), step.attr("num_layers")
    directions = 2 if step.attr("is_bidirec") else 1
    weights = step.inputs("WeightList")
    matrices, biases = weights[: len(weights) // 2], weights[len(weights) // 2 :]
    states = step.inputs("PreState")
    lengths = step.input("SequenceLength").cast("int32") if step.has("SequenceLength") else ""
    x = step.input("Input")
    lasts: list[list[Value]] = [[] for _ in states]
    if kind == "RNN":
        options = {"activations": [_ACTIVATIONS[step.attr("mode")[4:].lower()]] * directions}
    for layer in range(layers):
        first = layer * directions
        rows = range(first, first + directions)
        w, r = (_join(step, [matrices[2 * i + k] for i in rows], order, hidden, 0) for k in (0, 1))
        b = _join_biases(step, [biases[2 * i : 2 * i + 2] for i in rows], order, hidden)
        initial = [one[first : first + directions] for one in states]
        direction = "bidirectional" if directions == 2 else "forward"
        outs = step.add_several(
            kind,
            *(x, w, r, b, lengths, *initial),
            count=1 + len(states),
            hidden_size=hidden,
            direction=direction,
            **options,
        )
        x = outs[0].transpose([0, 2, 1, 3]).reshape(0, 0, directions * hidden)
        for place, last in enumerate(outs[1:]):
            lasts[place].append(last)
    step.give("Out", x)
    for place, parts in enumerate(lasts):
        joined = step.concat(*parts) if len(parts) > 1 else parts[0]
        step.give("State", joined, place)


def _join(step: Step, parts: list[Value], order: tuple[int, ...], hidden: int, axis: int) -> Value:
    """Return the parameters of all directions, with their gates in order."""
    ordered = [_order(step, one, order, hidden, axis).unsqueeze(0) for one in parts]
    return step.concat(*ordered) if len(ordered) > 1 else ordered[0]


def _join_biases(step: Step, parts: list[list[Value]], order: tuple[int, ...], hidden: int) -> Value:
    ordered = [step.concat(*(_order(step, b, order, hidden, 0) for b in pair)).unsqueeze(0) for pair in parts]
    return step.concat(*ordered) if len(ordered) > 1 else ordered[0]


@converts("rnn_memory_helper")
def _convert_memory_helper(step: Step) -> Value:
    return step.input()


@converts("recurrent")
def _convert_recurrent(step: Step) -> None:
    """Convert to a scan along the first dim of the inputs, which carries the states."""
    from onnx import helper

    graph, block = step.graph, find_sub_block(step)
    rows, before, after = step.op.input("inputs"), list(step.attr("ex_states")), list(step.attr("states"))
    outputs = step.op.output("outputs")
    if any(name in graph.lengths for name in rows):
        step.refuse("its inputs are sequences with a LoD")
    names = [*before, *rows]
    inside = [graph.take_name(f"{name}.step") for name in names]
    ports = [
        helper.make_tensor_value_info(port, dtype_row(block._var_recursive(name).dtype).onnx, None)
        for port, name in zip(inside, names, strict=True)
    ]

    def run() -> list[str]:
        graph.values.update(zip(names, inside, strict=True))
        translate_block(step, block)
        return [graph.values[name] for name in (*after, *outputs)]

    body, _ = make_graph(step, "step", run, ports)
    options: dict[str, Any] = {"body": body, "num_scan_inputs": len(rows)}
    if step.attr("reverse"):
        options |= {"scan_input_directions": [1] * len(rows), "scan_output_directions": [1] * len(outputs)}
    given = [*step.inputs("initial_states"), *step.inputs("inputs")] if before else step.inputs("inputs")
    outs = graph.add_several("Scan", *given, count=len(after) + len(outputs), **options)
    for index, out in enumerate(outs[len(after) :]):
        step.give("outputs", out, index)
