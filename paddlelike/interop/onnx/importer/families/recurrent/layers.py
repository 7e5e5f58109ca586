"""LSTM, GRU and simple recurrent layers over a batch of sequences.

LSTM and GRU become Fluid's ``lstm`` and ``gru``, which work on sequences with LoD: rows are cut out of the
batch by their lengths, and put back. For cells that Fluid lacks (a GRU whose reset gate acts after the
product, a simple cell), the operator ``rnn`` of Paddle 2 is used.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from paddlelike.core import VarType
from paddlelike.interop.onnx.importer.expressions import MOST, Expression
from paddlelike.interop.onnx.importer.families.recurrent.steps import (
    Activation,
    find_activations,
    run_by_steps,
)
from paddlelike.interop.onnx.importer.families.recurrent.weights import Weights, find_weights, join, store
from paddlelike.interop.onnx.importer.node import Node, reads

#: Fluid's activations of lstm and gru, by Paddle's operator.
_ACTIVATIONS: Final = {"sigmoid": "sigmoid", "tanh": "tanh", "relu": "relu", "scale": "identity"}
#: The activations of Paddle 2's rnn.
_MODES: Final = {("tanh",): "RNN_TANH", ("relu",): "RNN_RELU", ("sigmoid", "tanh"): "GRU"}


class _Layer(NamedTuple):
    """The values that directions share: the input ``(N, T, width)``, the lengths, the number of units."""

    x: Expression
    lengths: Expression
    hidden: int


@reads("LSTM", "GRU", "RNN")
def _read_recurrent(node: Node) -> None:
    """Read a recurrent layer: Y ``(T, directions, N, hidden)``, last states ``(directions, N, hidden)``."""
    w, r = find_weights(node, 1), find_weights(node, 2)
    direction, hidden, batch_first = (
        node.attr("direction", "forward"),
        r.shape[2],
        bool(node.attr("layout", 0)),
    )
    x = node.input() if batch_first else node.input().transpose([1, 0, 2])
    layer = _Layer(x, _find_lengths(node, x), hidden)
    outs, lasts = [], []
    for index in range(len(w)):
        backwards = direction == "reverse" or index == 1
        out, last = _run_direction(node, layer, index, backwards)
        outs.append(out if batch_first else out.transpose([1, 0, 2]))
        lasts.append(last)
    axis = 2 if batch_first else 1
    node.give(_stack(node, outs, axis))
    for place in range(len(lasts[0])):
        node.give(_stack(node, [last[place] for last in lasts], 1 if batch_first else 0), 1 + place)


def _stack(node: Node, parts: list[Expression], axis: int) -> Expression:
    return node.emit("stack", parts, slot="Y", axis=axis)


def _find_lengths(node: Node, x: Expression) -> Expression:
    """Return the lengths of the sequences, int64 ``(N,)``; by default all have the full length."""
    if node.has(4):
        return node.input(4).cast(VarType.INT64)
    row = x.reduce("max", 1, 2, keep=False)  # (N,)
    size = node.emit("shape", {"Input": x}).slice(0, 1, 2).cast(VarType.INT64)
    zeros = row.zeros().cast(VarType.INT64)
    return zeros + size


def _find_state(node: Node, layer: _Layer, place: int, index: int) -> Expression | None:
    """Return the initial state ``(N, hidden)`` of a direction, or None for zeros. Another N makes the run
    fail.
    """
    if not node.has(place):
        return None
    known = node.find_known(place)
    if known is not None and not known.any():
        return None
    axis = 1 if node.attr("layout", 0) else 0
    dims, (ways, _, hidden) = node.dims(place), node.dims(2)
    if len(dims) != 3 or dims[axis] not in (-1, ways) or dims[2] not in (-1, hidden):
        node.fail(f"its initial states of dims {dims} do not fit {ways} directions of {hidden} units")
    end = index + 1 if index + 1 < ways else MOST
    state = node.input(place).slice(axis, index, end).squeeze(axis)
    beside = layer.lengths.unsqueeze(1).cast(node.dtype(place))
    return node.emit("concat", [beside, state], axis=1).slice(1, 1, MOST)


def _run_direction(
    node: Node, layer: _Layer, index: int, backwards: bool
) -> tuple[Expression, list[Expression]]:
    """Return the outputs ``(N, T, hidden)`` of a direction, and its last states ``(N, hidden)``."""
    acts = find_activations(node, index)
    w, r = find_weights(node, 1)[index], find_weights(node, 2)[index]
    b = find_weights(node, 3)[index] if node.has(3) else np.zeros(2 * len(w), node.dtype(1))
    simple = node.type == "RNN" or (node.type == "GRU" and node.attr("linear_before_reset", 0))
    kinds = tuple(act.kind for act in acts)
    fits = kinds in _MODES if simple else set(kinds) <= _ACTIVATIONS.keys()
    changed = any(act.attrs not in ({}, {"scale": 1.0, "bias": 0.0}) for act in acts)
    if not fits or changed or node.attr("clip") or node.attr("input_forget", 0):
        return _run_by_steps(node, layer, (w, r, b), acts, index, backwards)
    if simple:
        mode = _MODES[kinds]
        return _run_rnn(node, layer, (w, r, b), mode, _find_state(node, layer, 5, index), backwards)
    options = [_ACTIVATIONS[kind] for kind in kinds]
    rows = node.emit("sequence_unpad", {"X": layer.x, "Length": layer.lengths})
    run = _run_lstm if node.type == "LSTM" else _run_gru
    flat = run(node, layer, (w, r, b), options, index, rows, backwards)
    out = node.emit(
        "sequence_pad", {"X": flat[0], "PadValue": node.constant([0], node.dtype(1))}, padded_length=-1
    )
    kind = "FIRST" if backwards else "LAST"
    return _fill_up(node, out, layer), [node.emit("sequence_pool", one, pooltype=kind) for one in flat]


def _run_by_steps(
    node: Node,
    layer: _Layer,
    weights: tuple[Weights, Weights, Weights],
    acts: list[Activation],
    index: int,
    backwards: bool,
) -> tuple[Expression, list[Expression]]:
    """Run a cell step by step, for cells that Paddle has no operator for."""
    x = _reverse(node, layer.x, layer) if backwards else layer.x
    places = (5, 6) if node.type == "LSTM" else (5,)
    found = [_find_state(node, layer, place, index) for place in places]
    states = [_zeros(node, layer) if state is None else state for state in found]
    inside = None
    if node.has(4):
        ones = x.zeros().reduce("sum", 2)
        steps = node.emit("cumsum", ones.scale(1.0, 1.0), axis=1)
        ends = layer.lengths.unsqueeze(1, 2).cast(VarType.FP32)
        inside = node.emit("less_equal", steps, ends, axis=-1).cast(VarType.FP32)
    peepholes = find_weights(node, 7)[index] if node.has(7) else None
    out, lasts = run_by_steps(node, x, weights, acts, states, inside, peepholes)
    return _reverse(node, out, layer) if backwards else out, lasts


def _fill_up(node: Node, out: Expression, layer: _Layer) -> Expression:
    """Pad the outputs to the number of steps of the batch."""
    if not node.has(4):
        return out
    zeros = layer.x.zeros().scale().reduce("sum", 2)
    wide = zeros + node.constant(np.zeros((1, 1, layer.hidden)), np.float32)
    return _lengthen(node, out, wide)


def _regroup(array: Weights, order: tuple[int, ...], hidden: int) -> Weights:
    """Return the gates along the first dim in another order."""
    return join([array[i * hidden : (i + 1) * hidden] for i in order])


def _project(node: Node, rows: Expression, w: Weights, prefix: str) -> Expression:
    """Return the product of the rows with weights ``(gates, width)``."""
    return node.emit("mul", rows, store(node, prefix, w.T))


def _run_lstm(
    node: Node,
    layer: _Layer,
    weights: tuple[Weights, Weights, Weights],
    acts: list[str],
    index: int,
    rows: Expression,
    backwards: bool,
) -> list[Expression]:
    """Run an LSTM; gates are input, output, forget, candidate in ONNX, ``cifo`` in Fluid."""
    (w, r, b), hidden, order = weights, layer.hidden, (3, 0, 2, 1)
    bias = _regroup(b[: 4 * hidden], order, hidden) + _regroup(b[4 * hidden :], order, hidden)
    peepholes = find_weights(node, 7)[index] if node.has(7) else None
    if peepholes is not None:  # input, output, forget; here input, forget, output
        bias = join([bias, _regroup(peepholes, (0, 2, 1), hidden)])
    name = node.proto.name or "lstm"
    given = {
        "Input": _project(node, rows, _regroup(w, order, hidden), f"{name}.w_{index}"),
        "Weight": store(node, f"{name}.r_{index}", _regroup(r, order, hidden).T),
        "Bias": store(node, f"{name}.b_{index}", bias.reshape(1, -1)),
    }
    states = [_find_state(node, layer, place, index) for place in (5, 6)]
    if any(state is not None for state in states):
        given |= {
            slot: _zeros(node, layer) if state is None else state
            for slot, state in zip(("H0", "C0"), states, strict=True)
        }
    options = dict(zip(("gate_activation", "candidate_activation", "cell_activation"), acts, strict=True))
    out = node.emit(
        "lstm", given, slot="Hidden", use_peepholes=peepholes is not None, is_reverse=backwards, **options
    )
    return [out, node.last_output("Cell")]


def _run_gru(
    node: Node,
    layer: _Layer,
    weights: tuple[Weights, Weights, Weights],
    acts: list[str],
    index: int,
    rows: Expression,
    backwards: bool,
) -> list[Expression]:
    """Run a GRU; gates are update, reset, candidate in both, and Fluid's weight is two matrices."""
    (w, r, b), hidden = weights, layer.hidden
    name = node.proto.name or "gru"
    gates, candidate = r[: 2 * hidden].T, r[2 * hidden :].T
    weight = join([gates.reshape(-1), candidate.reshape(-1)]).reshape(hidden, 3 * hidden)
    given = {
        "Input": _project(node, rows, w, f"{name}.w_{index}"),
        "Weight": store(node, f"{name}.r_{index}", weight),
        "Bias": store(node, f"{name}.b_{index}", (b[: 3 * hidden] + b[3 * hidden :]).reshape(1, -1)),
    }
    state = _find_state(node, layer, 5, index)
    if state is not None:
        given["H0"] = state
    options = {
        "gate_activation": acts[0],
        "activation": acts[1],
        "origin_mode": True,
        "is_reverse": backwards,
    }
    return [node.emit("gru", given, slot="Hidden", **options)]


def _zeros(node: Node, layer: _Layer) -> Expression:
    """Return a state of zeros ``(N, hidden)``."""
    column = layer.lengths.zeros().unsqueeze(1).cast(VarType.FP32)
    return column + node.constant(np.zeros((1, layer.hidden)), np.float32)


def _run_rnn(
    node: Node,
    layer: _Layer,
    weights: tuple[Weights, Weights, Weights],
    mode: str,
    state: Expression | None,
    backwards: bool,
) -> tuple[Expression, list[Expression]]:
    """Return the result of Paddle 2's rnn over the steps in order, or over the reversed sequences."""
    (w, r, b), hidden = weights, layer.hidden
    if node.type == "GRU":  # update, reset, candidate; there reset, update, candidate
        w, r = (_regroup(each, (1, 0, 2), hidden) for each in (w, r))
        b = join([_regroup(half, (1, 0, 2), hidden) for half in (b[: 3 * hidden], b[3 * hidden :])])
    parts = [w, r, b[: len(w)], b[len(w) :]]
    names = [store(node, f"{node.proto.name or 'rnn'}.{i}", each) for i, each in enumerate(parts)]
    x = _reverse(node, layer.x, layer) if backwards else layer.x
    given = {
        "Input": x.transpose([1, 0, 2]),
        "PreState": [(_zeros(node, layer) if state is None else state).unsqueeze(0)],
        "WeightList": names,
    }
    if node.has(4):
        given["SequenceLength"] = layer.lengths.cast(VarType.INT32)
    dims = [-1, -1, hidden]
    options = {"mode": mode, "hidden_size": hidden, "input_size": w.shape[1], "is_test": True}
    out = node.emit("rnn", given, slot="Out", shaped=dims, **options)
    last = node.last_output("State")
    last.variable.shape = (1, -1, hidden)
    last.variable.dtype = out.variable.dtype
    out = out.transpose([1, 0, 2])
    return _reverse(node, out, layer) if backwards else out, [last.squeeze(0)]


@reads("ReverseSequence")
def _read_reverse_sequence(node: Node) -> Expression:
    """Reverse each sequence; steps after its end stay in place."""
    axes = node.attr("batch_axis", 1), node.attr("time_axis", 0)
    if node.rank() < 2 or sorted(axes) != [0, 1] or node.dtype() != np.float32:
        node.refuse(f"X has {node.rank()} dims of {node.dtype()}, its axes are {axes}")
    turned = [axes[0], axes[1], *range(2, node.rank())]
    x, lengths = node.input().transpose(turned), node.input(1).cast(VarType.INT64)
    wide = x if node.rank() > 2 else x.unsqueeze(2)
    out = _reverse_rows(node, wide, lengths)
    blank = wide.zeros().scale(bias=1.0)
    inside = node.emit("sequence_unpad", {"X": blank, "Length": lengths})
    zero = node.constant([0], np.float32)
    mask = node.emit("sequence_pad", {"X": inside, "PadValue": zero}, padded_length=-1)
    rest = blank - _lengthen(node, mask, wide.zeros())
    out = out + wide * rest
    return (out if node.rank() > 2 else out.squeeze(2)).transpose(turned)


def _reverse(node: Node, x: Expression, layer: _Layer) -> Expression:
    """Return each sequence of a batch ``(N, T, width)`` from its end to its beginning."""
    return _reverse_rows(node, x, layer.lengths) if node.has(4) else node.emit("reverse", x, axis=[1])


def _reverse_rows(node: Node, x: Expression, lengths: Expression) -> Expression:
    rows = node.emit("sequence_unpad", {"X": x, "Length": lengths})
    rows = node.emit("sequence_reverse", rows, slot="Y")
    zero = node.constant([0], np.float32)
    padded = node.emit("sequence_pad", {"X": rows, "PadValue": zero}, padded_length=-1)
    return _lengthen(node, padded, x.zeros())


def _lengthen(node: Node, out: Expression, zeros: Expression) -> Expression:
    """Return outputs ``(N, fewer, width)``, extended by further steps from ``zeros`` to their length."""
    joined = node.emit("concat", [out, zeros], axis=1)
    end = node.emit("shape", {"Input": zeros}).slice(0, 1, 2)
    bounds = {"Input": joined, "StartsTensor": node.constant([0], np.int32), "EndsTensor": end}
    return node.emit("slice", bounds, axes=[1], starts=[-1], ends=[-1], infer_flags=[-1])
