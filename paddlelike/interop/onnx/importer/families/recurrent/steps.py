"""Recurrent layers without an operator of Paddle, computed step by step: any activations, and clipped
gates.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from paddlelike.interop.onnx.importer.families.recurrent.weights import Weights, place, store
from paddlelike.interop.onnx.importer.node import MOST, Node

_DEFAULTS: Final = {"LSTM": ("Sigmoid", "Tanh", "Tanh"), "GRU": ("Sigmoid", "Tanh"), "RNN": ("Tanh",)}
#: Paddle's operator, and its attributes for alpha and beta with their defaults.
_OPERATORS: Final[dict[str, tuple[str, tuple[tuple[str, float], ...]]]] = {
    "affine": ("scale", (("scale", 1.0), ("bias", 0.0))),
    "elu": ("elu", (("alpha", 1.0),)),
    "hardsigmoid": ("hard_sigmoid", (("slope", 0.2), ("offset", 0.5))),
    "leakyrelu": ("leaky_relu", (("alpha", 0.01),)),
    "relu": ("relu", ()),
    "scaledtanh": ("stanh", (("scale_b", 1.0), ("scale_a", 1.0))),
    "sigmoid": ("sigmoid", ()),
    "softplus": ("softplus", ()),
    "softsign": ("softsign", ()),
    "tanh": ("tanh", ()),
    "thresholdedrelu": ("thresholded_relu", (("threshold", 1.0),)),
}


class Activation(NamedTuple):
    """An activation of a recurrent layer: Paddle's operator, and its attributes."""

    kind: str
    attrs: dict[str, float]


def find_activations(node: Node, index: int) -> list[Activation]:
    """Return the activations of a direction. Activations with parameters take them from the lists in turn."""
    names, count = node.attr("activations") or list(_DEFAULTS[node.type]) * 2, len(_DEFAULTS[node.type])
    given = [iter(node.attr(f"activation_{which}") or []) for which in ("alpha", "beta")]
    found = []
    for name in names:
        if name.lower() not in _OPERATORS:
            node.refuse(f"activation {name}")
        kind, attrs = _OPERATORS[name.lower()]
        values = [next(numbers, attr[1]) for attr, numbers in zip(attrs, given, strict=False)]
        found.append(Activation(kind, {attr: value for (attr, _), value in zip(attrs, values, strict=True)}))
    return found[index * count : (index + 1) * count]


def run_by_steps(
    node: Node,
    x: str,
    weights: tuple[Weights, Weights, Weights],
    activations: Sequence[Activation],
    states: list[str],
    inside: str | None,
    peepholes: Weights | None,
) -> tuple[str, list[str]]:
    """Return the outputs ``(N, T, hidden)`` of rows ``x``, and the last states ``(N, hidden)``.

    ``states`` are the initial states. ``inside``, ``(N, T, 1)``, is 1 for each row of a sequence and 0 behind
    it.
    """
    from paddlelike.layers.recurrent.static_rnn import StaticRNN

    graph, (w, r, b) = node.graph, weights
    first, second = b[: len(b) // 2], b[len(b) // 2 :]
    late = first if _resets_late(node) else first + second
    turned = node.transpose(x, [1, 0, 2])
    rows = node.emit("mul", turned, store(node, "weights", w.T), x_num_col_dims=2)
    rows = node.emit("elementwise_add", rows, place(node, late), axis=-1)
    mask = None if inside is None else graph.variable(node.transpose(inside, [1, 0, 2]))
    cell = _Cell(node, activations, r, second, peepholes)
    rnn = StaticRNN()
    with rnn.step():
        row, known = rnn.step_input(graph.variable(rows)), None if mask is None else rnn.step_input(mask)
        before = [rnn.memory(init=graph.variable(state)) for state in states]
        names = [memory.name for memory in before]
        after = _CELLS[node.type](cell, row.name, names)
        if known is not None:
            after = [_choose(node, known.name, new, old) for new, old in zip(after, names, strict=True)]
        for memory, new in zip(before, after, strict=True):
            rnn.update_memory(memory, graph.variable(new))
            rnn.output(graph.variable(new))
    found = rnn()
    outs = [node.transpose(one.name, [1, 0, 2]) for one in (found if isinstance(found, list) else [found])]
    lasts = [node.squeeze(node.slice(out, 1, -1, MOST), 1) for out in outs]
    return outs[0] if inside is None else node.emit("elementwise_mul", outs[0], inside), lasts


def _resets_late(node: Node) -> bool:
    return node.type == "GRU" and bool(node.attr("linear_before_reset", 0))


def _choose(node: Node, inside: str, new: str, old: str) -> str:
    """Return ``new`` where ``inside`` is 1, and ``old`` where it is 0."""
    moved = node.emit("elementwise_mul", node.emit("elementwise_sub", new, old), inside)
    return node.emit("elementwise_add", old, moved)


class _Cell:
    """The common parts of cells: gates, products with the recurrent weights, activations."""

    def __init__(
        self,
        node: Node,
        activations: Sequence[Activation],
        r: Weights,
        bias: Weights,
        peepholes: Weights | None,
    ) -> None:
        self.node, self.activations, self.bias, self.hidden = node, activations, bias, r.shape[1]
        self.weights = store(node, "recurrent", r.T)
        self.candidate = store(node, "candidate", r[-self.hidden :].T)
        self.peepholes = None if peepholes is None else peepholes.reshape(3, -1)

    def cut(self, gates: str, index: int) -> str:
        """Return one of several gates."""
        return self.node.slice(gates, 1, index * self.hidden, (index + 1) * self.hidden)

    def activate(self, index: int, *parts: str) -> str:
        """Return an activation of a sum, which is first limited by ``clip``."""
        total, limit = self.node.emit("sum", {"X": list(parts)}), self.node.attr("clip")
        if limit:
            total = self.node.emit("clip", total, min=-limit, max=float(limit))
        kind, attrs = self.activations[index]
        return self.node.emit(kind, total, **attrs)

    def add_products(self, x: str, y: str, z: str) -> str:
        """Return ``x + y * z``."""
        return self.node.emit("elementwise_add", x, self.node.emit("elementwise_mul", y, z))


def _step_rnn(cell: _Cell, row: str, states: list[str]) -> list[str]:
    return [cell.activate(0, row, cell.node.emit("mul", states[0], cell.weights))]


def _step_gru(cell: _Cell, row: str, states: list[str]) -> list[str]:
    """Compute a GRU step; gates are update, reset, candidate."""
    node, (h,) = cell.node, states
    late = _resets_late(node)
    own = node.emit("mul", h, cell.weights)
    if late:
        own = node.emit("elementwise_add", own, place(node, cell.bias), axis=-1)
    update, reset = (cell.activate(0, cell.cut(row, i), cell.cut(own, i)) for i in (0, 1))
    if late:
        product = node.emit("elementwise_mul", reset, cell.cut(own, 2))
    else:
        product = node.emit("mul", node.emit("elementwise_mul", reset, h), cell.candidate)
    candidate = cell.activate(1, cell.cut(row, 2), product)
    return [cell.add_products(candidate, update, node.emit("elementwise_sub", h, candidate))]


def _step_lstm(cell: _Cell, row: str, states: list[str]) -> list[str]:
    """Compute an LSTM step; gates are input, output, forget, candidate, the first three with peepholes."""
    node, (h, c) = cell.node, states
    own = node.emit("mul", h, cell.weights)

    def gate(index: int, seen: str) -> str:
        parts = [cell.cut(row, index), cell.cut(own, index)]
        if cell.peepholes is not None:
            weights = place(node, cell.peepholes[index])
            parts.append(node.emit("elementwise_mul", seen, weights, axis=-1))
        return cell.activate(0, *parts)

    into = gate(0, c)
    forget = node.scale(into, -1.0, 1.0) if node.attr("input_forget", 0) else gate(2, c)
    candidate = cell.activate(1, cell.cut(row, 3), cell.cut(own, 3))
    c = cell.add_products(node.emit("elementwise_mul", forget, c), into, candidate)
    kind, attrs = cell.activations[2]  # without limits, as in onnxruntime
    return [node.emit("elementwise_mul", gate(1, c), node.emit(kind, c, **attrs)), c]


_CELLS: Final[dict[str, Callable[[_Cell, str, list[str]], list[str]]]] = {
    "RNN": _step_rnn,
    "GRU": _step_gru,
    "LSTM": _step_lstm,
}
