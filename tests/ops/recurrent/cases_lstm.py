"""Cases of recurrent operators, by a loop over sequences and steps."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from paddlelike.core import LoDTensor
from paddlelike.ops.recurrent.cudnn_lstm import count_parameters
from tests.ops.harness.contract import Case
from tests.ops.sequence.cases_sequence import ENDS, join, split

Array = np.ndarray[Any, Any]
Step = Callable[[Array, list[Array]], list[Array]]

_rng = np.random.default_rng(12)
H, P = 3, 2
FUNCTIONS: dict[str, Callable[[Array], Array]] = {
    "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "tanh": np.tanh,
    "relu": lambda x: np.maximum(x, 0),
    "identity": lambda x: x,
}


def _real(*shape: int) -> Array:
    return _rng.standard_normal(shape)


def _along(
    x: Array, firsts: list[Array], step: Step, *, reverse: bool, ends: list[int] | None = None
) -> Iterator[LoDTensor]:
    """The states after every row, sequence by sequence; ``firsts`` are the states before."""
    found: list[list[Array]] = [[] for _ in firsts]
    for i, rows in enumerate(split(x, ends)):
        states = [first[i] for first in firsts]
        outs = []
        for row in rows[::-1] if reverse else rows:
            states = step(row, states)
            outs.append(states)
        ordered = outs[::-1] if reverse else outs
        for k, many in enumerate(found):
            many.append(np.array([states[k] for states in ordered]).reshape(len(rows), firsts[k].shape[1]))
    return map(join, found)


def _lstm_step(
    weight: Array,
    bias: Array,
    *,
    use_peepholes: bool,
    gate: str,
    cell: str,
    candidate: str,
    project: Callable[[Array], Array] = lambda h: h,
    limit: float = np.inf,
) -> Step:
    """From (row, [fed back, cell, hidden]) to the next three."""
    b = bias[0]
    w = b[4 * H :].reshape(3, H) if use_peepholes else np.zeros((3, H))

    def step(row: Array, states: list[Array]) -> list[Array]:
        fed_back, c, _ = states
        g, i, f, o = (row + fed_back @ weight + b[: 4 * H]).reshape(4, H)
        i = FUNCTIONS[gate](i + w[0] * c)
        f = FUNCTIONS[gate](f + w[1] * c)
        c = np.clip(FUNCTIONS[candidate](g) * i + c * f, -limit, limit)
        hidden = FUNCTIONS[gate](o + w[2] * c) * FUNCTIONS[cell](c)
        return [project(hidden), c, hidden]

    return step


def _firsts(h0: Array | None, c0: Array | None, width: int, count: int = len(ENDS) - 1) -> list[Array]:
    zeros = np.zeros((count, H))
    return [np.zeros((count, width)) if h0 is None else h0, zeros if c0 is None else c0, zeros]


def _lstm_along(ends: list[int]) -> Callable[..., dict[str, Any]]:
    """The formula of lstm over sequences with these offsets."""

    def compute(
        Input: Array, H0: Any, C0: Any, Weight: Array, Bias: Array, use_peepholes: bool, is_reverse: bool,
        gate_activation: str, cell_activation: str, candidate_activation: str,
    ) -> dict[str, Any]:  # fmt: skip
        step = _lstm_step(Weight, Bias, use_peepholes=use_peepholes, gate=gate_activation,
                          cell=cell_activation, candidate=candidate_activation)  # fmt: skip
        firsts = _firsts(H0, C0, H, len(ends) - 1)
        _, cell, hidden = _along(Input, firsts, step, reverse=is_reverse, ends=ends)
        return {"Hidden": hidden, "Cell": cell}

    return compute


def _lstmp(
    Input: Array, H0: Any, C0: Any, Weight: Array, ProjWeight: Array, Bias: Array, use_peepholes: bool,
    is_reverse: bool, gate_activation: str, cell_activation: str, candidate_activation: str,
    proj_activation: str, cell_clip: float, proj_clip: float,
) -> dict[str, Any]:  # fmt: skip
    act = FUNCTIONS[cell_activation if proj_activation != "identity" else "identity"]
    limit = proj_clip or np.inf
    step = _lstm_step(
        Weight, Bias, use_peepholes=use_peepholes, gate=gate_activation, cell=cell_activation,
        candidate=candidate_activation, limit=cell_clip or np.inf,
        project=lambda h: np.clip(act(h @ ProjWeight), -limit, limit),
    )  # fmt: skip
    projection, cell, _ = _along(Input, _firsts(H0, C0, P), step, reverse=is_reverse)
    return {"Projection": projection, "Cell": cell}


def _gru_step(
    weight: Array, act: Callable[[Array], Array], gate: Callable[[Array], Array], origin: bool
) -> Step:
    flat = weight.reshape(-1)
    gates, candidate = flat[: 2 * H * H].reshape(H, 2 * H), flat[2 * H * H :].reshape(H, H)

    def step(row: Array, states: list[Array]) -> list[Array]:
        (h,) = states
        u, r = gate(row[: 2 * H] + h @ gates).reshape(2, H)
        c = act(row[2 * H :] + (r * h) @ candidate)
        return [u * h + (1 - u) * c if origin else (1 - u) * h + u * c]

    return step


def _gru_along(ends: list[int]) -> Callable[..., dict[str, Any]]:
    """The formula of gru over sequences with these offsets."""

    def compute(
        Input: Array, H0: Any, Weight: Array, Bias: Any, activation: str, gate_activation: str,
        is_reverse: bool, origin_mode: bool,
    ) -> dict[str, Any]:  # fmt: skip
        step = _gru_step(Weight, FUNCTIONS[activation], FUNCTIONS[gate_activation], origin_mode)
        first = np.zeros((len(ends) - 1, H)) if H0 is None else H0
        x = Input if Bias is None else Input + Bias
        (hidden,) = _along(x, [first], step, reverse=is_reverse, ends=ends)
        return {"Hidden": hidden}

    return compute


def _gru_unit(
    Input: Array, HiddenPrev: Array, Weight: Array, Bias: Any, activation: int, gate_activation: int,
    origin_mode: bool,
) -> dict[str, Any]:  # fmt: skip
    numbered = [FUNCTIONS[name] for name in ("identity", "sigmoid", "tanh", "relu")]
    step = _gru_step(Weight, numbered[activation], numbered[gate_activation], origin_mode)
    x = Input if Bias is None else Input + Bias
    return {"Hidden": np.array([step(row, [h])[0] for row, h in zip(x, HiddenPrev, strict=True)])}


def _lstm_unit(X: Array, C_prev: Array, forget_bias: float) -> dict[str, Any]:
    s = FUNCTIONS["sigmoid"]
    i, f, o, g = np.split(X, 4, axis=1)
    c = s(f + forget_bias) * C_prev + s(i) * np.tanh(g)
    return {"C": c, "H": s(o) * np.tanh(c)}


def _lstm_case(
    note: str, *, first: bool = False, projected: bool = False, ends: list[int] = ENDS, **attrs: Any
) -> Case:
    width = P if projected else H
    biases = 7 if attrs.get("use_peepholes", True) else 4
    inputs: dict[str, Any] = {
        "Input": LoDTensor(_real(7, 4 * H), [ends]),
        "Weight": _real(width, 4 * H),
        "Bias": _real(1, biases * H),
    }
    if projected:
        inputs["ProjWeight"] = _real(H, P)
    if first:
        inputs |= {"H0": _real(len(ends) - 1, width), "C0": _real(len(ends) - 1, H)}
    formula = _lstmp if projected else _lstm_along(ends)
    return Case("lstmp" if projected else "lstm", inputs, formula, attrs, note=note)


def _gru_case(
    note: str, *, first: bool = False, bias: bool = True, ends: list[int] = ENDS, **attrs: Any
) -> Case:
    inputs: dict[str, Any] = {"Input": LoDTensor(_real(7, 3 * H), [ends]), "Weight": _real(H, 3 * H)}
    if bias:
        inputs["Bias"] = _real(1, 3 * H)
    if first:
        inputs["H0"] = _real(len(ends) - 1, H)
    return Case("gru", inputs, _gru_along(ends), attrs, note=note)


def _cudnn_lstm(
    Input: Array, InitH: Array, InitC: Array, W: Array, hidden_size: int, num_layers: int, is_bidirec: bool
) -> dict[str, Array]:
    """Gate by gate, step by step, as cuDNN's manual has it."""
    directions = 2 if is_bidirec else 1
    numbers = iter(W)

    def take(*shape: int) -> Array:
        return np.array([next(numbers) for _ in range(int(np.prod(shape)))]).reshape(shape)

    s, matrices, x = FUNCTIONS["sigmoid"], [], Input
    for layer in range(num_layers):
        size = Input.shape[2] if layer == 0 else hidden_size * directions
        matrices += [
            [take(4, hidden_size, size), take(4, hidden_size, hidden_size)] for _ in range(directions)
        ]
    biases = [[take(4, hidden_size), take(4, hidden_size)] for _ in matrices]
    last_h, last_c = [], []
    for layer in range(num_layers):
        outs = []
        for k in range(layer * directions, (layer + 1) * directions):
            h, c, found = InitH[k], InitC[k], []
            for row in x[::-1] if k % directions else x:
                i, f, g, o = (
                    row @ matrices[k][0][gate].T
                    + h @ matrices[k][1][gate].T
                    + biases[k][0][gate]
                    + biases[k][1][gate]
                    for gate in range(4)
                )
                c = s(f) * c + s(i) * np.tanh(g)
                h = s(o) * np.tanh(c)
                found.append(h)
            outs.append(np.array(found[::-1] if k % directions else found))
            last_h.append(h)
            last_c.append(c)
        x = np.concatenate(outs, axis=2)
    return {"Out": x, "last_h": np.array(last_h), "last_c": np.array(last_c)}


def _cudnn_case(note: str, layers: int, *, is_bidirec: bool) -> Case:
    directions = 2 if is_bidirec else 1
    count = count_parameters(4, H, layers, is_bidirec=is_bidirec)
    initial = {slot: _real(layers * directions, 2, H) for slot in ("InitH", "InitC")}
    attrs = {"input_size": 4, "hidden_size": H, "num_layers": layers, "is_bidirec": is_bidirec}
    return Case(
        "cudnn_lstm", {"Input": _real(5, 2, 4), "W": _real(count), **initial}, _cudnn_lstm, attrs, note=note
    )


CASES = [
    _cudnn_case("one", 1, is_bidirec=False),
    _cudnn_case("two-both-ways", 2, is_bidirec=True),
    _lstm_case("peepholes"),
    _lstm_case("plain", use_peepholes=False),
    _lstm_case("first-reverse", first=True, is_reverse=True),
    _lstm_case("one", ends=[0, 7]),
    _lstm_case("two-first-reverse", first=True, is_reverse=True, use_peepholes=False, ends=[0, 2, 7]),
    _lstm_case(
        "activations", gate_activation="tanh", cell_activation="identity", candidate_activation="sigmoid"
    ),
    _lstm_case("peepholes", projected=True),
    _lstm_case("first-reverse", projected=True, first=True, is_reverse=True, use_peepholes=False),
    _lstm_case("clipped", projected=True, cell_clip=0.4, proj_clip=0.3),
    _lstm_case("identity", projected=True, proj_activation="identity"),
    _gru_case("bias"),
    _gru_case("first-reverse", first=True, bias=False, is_reverse=True),
    _gru_case("origin", first=True, origin_mode=True),
    _gru_case("one", ends=[0, 7]),
    _gru_case("two-first-reverse-origin", first=True, is_reverse=True, origin_mode=True, ends=[0, 2, 7]),
    _gru_case("activations", activation="sigmoid", gate_activation="tanh"),
    *(
        Case(
            "gru_unit",
            {"Input": _real(5, 3 * H), "HiddenPrev": _real(5, H), "Weight": _real(H, 3 * H), "Bias": bias},
            _gru_unit,
            {"origin_mode": bias is None},
            note="origin" if bias is None else "",
        )
        for bias in (_real(1, 3 * H), None)
    ),
    Case("lstm_unit", {"X": _real(4, 4 * H), "C_prev": _real(4, H)}, _lstm_unit, {"forget_bias": 0.5}),
]


IDS = np.array([[[2, 2], [6, 1]], [[3, 9], [6, 1]], [[0, 1], [9, 0]]])
PARENTS = np.array([[[0, 0], [1, 1]], [[1, 0], [1, 0]], [[0, 0], [0, 1]]])


def _walk(Ids: Any, Parents: Any) -> Any:
    out = np.zeros_like(Ids)
    for n in range(2):
        for end in range(2):
            beam = end
            for t in (2, 1, 0):
                out[t, n, end] = Ids[t, n, beam]
                beam = Parents[t, n, beam]
    return out


CASES += [Case("gather_tree", {"Ids": IDS, "Parents": PARENTS}, _walk)]


CASES += [Case("rnn_memory_helper", {"X": np.random.default_rng(0).random((2, 3))}, lambda X: X, wrt=["X"])]
