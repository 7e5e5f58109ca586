"""rnn: layers of simple, LSTM or GRU cells, in one or both directions, over a batch (T, N, width)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

import numpy as np

from paddlelike.framework.opdef import Array, Attrs, Bool, Float, Int, String
from paddlelike.ops.kernels.special import sigmoid
from paddlelike.ops.later import register_kernel


class RnnAttrs(Attrs):
    """Attributes of rnn."""

    is_bidirec: bool = Bool(False)
    hidden_size: int = Int(100)
    num_layers: int = Int(1)
    mode: str = String("RNN_TANH")


class _Weights(NamedTuple):
    """The parameters of one layer and direction; the gates are along the first dim."""

    x: Array
    h: Array
    bias_x: Array
    bias_h: Array


State = list[Array]  # h, and c of an LSTM
Cell = Callable[[Array, State, _Weights], State]


def _run_simple(activation: Callable[[Array], Array]) -> Cell:
    def run(gates: Array, state: State, w: _Weights) -> State:
        return [activation(gates + state[0] @ w.h.T + w.bias_h)]

    return run


def _run_lstm(gates: Array, state: State, w: _Weights) -> State:
    i, f, g, o = np.split(gates + state[0] @ w.h.T + w.bias_h, 4, axis=1)
    c = sigmoid(f) * state[1] + sigmoid(i) * np.tanh(g)
    return [sigmoid(o) * np.tanh(c), c]


def _run_gru(gates: Array, state: State, w: _Weights) -> State:
    xr, xz, xc = np.split(gates, 3, axis=1)
    hr, hz, hc = np.split(state[0] @ w.h.T + w.bias_h, 3, axis=1)
    z = sigmoid(xz + hz)
    candidate = np.tanh(xc + sigmoid(xr + hr) * hc)
    return [z * state[0] + (1 - z) * candidate]


_CELLS: Final[dict[str, Cell]] = {
    "RNN_TANH": _run_simple(np.tanh),
    "RNN_RELU": _run_simple(lambda x: np.maximum(x, 0)),
    "LSTM": _run_lstm,
    "GRU": _run_gru,
}


@register_kernel(
    "rnn",
    "Input PreState* WeightList* SequenceLength? -> DropoutState? Reserve? Out State*",
    RnnAttrs.table(dropout_prob=Float(0.0), input_size=Int(10), is_test=Bool(False), seed=Int(0)),
)
def _rnn(
    x: Array, initial: list[Array], weights: list[Array], lengths: Array | None, *, attrs: RnnAttrs
) -> tuple[None, None, Array, list[Array]]:
    """The hidden states of the last layer, and the last states of all layers and directions.

    Steps after the end of a sequence give zeros and leave the state as it is.
    """
    directions = 2 if attrs.is_bidirec else 1
    matrices, biases = weights[: len(weights) // 2], weights[len(weights) // 2 :]
    last: list[State] = []
    for k in range(0, attrs.num_layers * directions, directions):
        outs = []
        for index in range(k, k + directions):
            w = _Weights(*matrices[2 * index : 2 * index + 2], *biases[2 * index : 2 * index + 2])
            state = [states[index] for states in initial]
            out, state = _run_direction(x, state, w, _CELLS[attrs.mode], lengths, backwards=index > k)
            outs.append(out)
            last.append(state)
        x = np.concatenate(outs, axis=2)
    return None, None, x, [np.stack(each) for each in zip(*last, strict=True)]


def _run_direction(
    x: Array, state: State, w: _Weights, cell: Cell, lengths: Array | None, *, backwards: bool
) -> tuple[Array, State]:
    gates = x @ w.x.T + w.bias_x
    out = np.zeros((*x.shape[:2], w.h.shape[1]), x.dtype)
    for t in range(len(x) - 1, -1, -1) if backwards else range(len(x)):
        now = cell(gates[t], state, w)
        if lengths is None:
            out[t], state = now[0], now
            continue
        runs = (t < lengths.reshape(-1))[:, None]
        out[t] = now[0] * runs
        state = [np.where(runs, new, old) for new, old in zip(now, state, strict=True)]
    return out, state
