"""Recurrent layers without an operator of Paddle, computed step by step: any activations, and clipped
gates.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from paddlelike.interop.onnx.importer.expressions import MOST, Expression
from paddlelike.interop.onnx.importer.families.recurrent.weights import Weights, place, store
from paddlelike.interop.onnx.importer.node import Node

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
    x: Expression,
    weights: tuple[Weights, Weights, Weights],
    activations: Sequence[Activation],
    states: list[Expression],
    inside: Expression | None,
    peepholes: Weights | None,
) -> tuple[Expression, list[Expression]]:
    """Return the outputs ``(N, T, hidden)`` of rows ``x``, and the last states ``(N, hidden)``.

    ``states`` are the initial states. ``inside``, ``(N, T, 1)``, is 1 for each row of a sequence and 0 after
    it.
    """
    from paddlelike.layers.recurrent.static_rnn import StaticRNN

    graph, (w, r, b) = node.graph, weights
    first, second = b[: len(b) // 2], b[len(b) // 2 :]
    late = first if _resets_late(node) else first + second
    turned = x.transpose([1, 0, 2])
    rows = node.emit("mul", turned, store(node, "weights", w.T), x_num_col_dims=2)
    rows = rows + place(node, late)
    mask = None if inside is None else inside.transpose([1, 0, 2]).variable
    cell = _Cell(node, activations, r, second, peepholes)
    rnn = StaticRNN()
    with rnn.step():
        row, known = rnn.step_input(rows.variable), None if mask is None else rnn.step_input(mask)
        before = [rnn.memory(init=state.variable) for state in states]
        olds = [Expression(graph, memory.name) for memory in before]
        after = _CELLS[node.type](cell, Expression(graph, row.name), olds)
        if known is not None:
            live = Expression(graph, known.name)
            after = [old + (new - old) * live for new, old in zip(after, olds, strict=True)]
        for memory, new in zip(before, after, strict=True):
            rnn.update_memory(memory, new.variable)
            rnn.output(new.variable)
    found = rnn()
    outs = [
        Expression(graph, one.name).transpose([1, 0, 2])
        for one in (found if isinstance(found, list) else [found])
    ]
    lasts = [out.slice(1, -1, MOST).squeeze(1) for out in outs]
    return outs[0] if inside is None else outs[0] * inside, lasts


def _resets_late(node: Node) -> bool:
    return node.type == "GRU" and bool(node.attr("linear_before_reset", 0))


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

    def cut(self, gates: Expression, index: int) -> Expression:
        """Return one of several gates."""
        return gates.slice(1, index * self.hidden, (index + 1) * self.hidden)

    def activate(self, index: int, *parts: Expression) -> Expression:
        """Return an activation of a sum, which is first limited by ``clip``."""
        total, limit = self.node.emit("sum", {"X": list(parts)}), self.node.attr("clip")
        if limit:
            total = self.node.emit("clip", total, min=-limit, max=float(limit))
        kind, attrs = self.activations[index]
        return self.node.emit(kind, total, **attrs)

    def add_products(self, x: Expression, y: Expression, z: Expression) -> Expression:
        """Return ``x + y * z``."""
        return x + y * z


def _step_rnn(cell: _Cell, row: Expression, states: list[Expression]) -> list[Expression]:
    return [cell.activate(0, row, cell.node.emit("mul", states[0], cell.weights))]


def _step_gru(cell: _Cell, row: Expression, states: list[Expression]) -> list[Expression]:
    """Compute a GRU step; gates are update, reset, candidate."""
    node, (h,) = cell.node, states
    late = _resets_late(node)
    own = node.emit("mul", h, cell.weights)
    if late:
        own = own + place(node, cell.bias)
    update, reset = (cell.activate(0, cell.cut(row, i), cell.cut(own, i)) for i in (0, 1))
    product = reset * cell.cut(own, 2) if late else node.emit("mul", reset * h, cell.candidate)
    candidate = cell.activate(1, cell.cut(row, 2), product)
    return [cell.add_products(candidate, update, h - candidate)]


def _step_lstm(cell: _Cell, row: Expression, states: list[Expression]) -> list[Expression]:
    """Compute an LSTM step; gates are input, output, forget, candidate, the first three with peepholes."""
    node, (h, c) = cell.node, states
    own = node.emit("mul", h, cell.weights)

    def gate(index: int, seen: Expression) -> Expression:
        parts = [cell.cut(row, index), cell.cut(own, index)]
        if cell.peepholes is not None:
            weights = place(node, cell.peepholes[index])
            parts.append(seen * weights)
        return cell.activate(0, *parts)

    into = gate(0, c)
    forget = into.scale(-1.0, 1.0) if node.attr("input_forget", 0) else gate(2, c)
    candidate = cell.activate(1, cell.cut(row, 3), cell.cut(own, 3))
    c = cell.add_products(forget * c, into, candidate)
    kind, attrs = cell.activations[2]  # without limits, as in onnxruntime
    return [gate(1, c) * node.emit(kind, c, **attrs), c]


_CELLS: Final[dict[str, Callable[[_Cell, Expression, list[Expression]], list[Expression]]]] = {
    "RNN": _step_rnn,
    "GRU": _step_gru,
    "LSTM": _step_lstm,
}
