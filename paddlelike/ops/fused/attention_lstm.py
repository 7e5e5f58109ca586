"""attention_lstm: a recurrent unit that reads a weighted mean of its sequence at every step."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from paddlelike.errors import ShapeError
from paddlelike.framework.opdef import Array, Attrs, Context, OpDef, Spec, String, register
from paddlelike.ops.kernels.lod import read_last_level
from paddlelike.ops.kernels.recurrent.lstm import find_activations


class _Attrs(Attrs):
    gate_activation: str = String("sigmoid")
    cell_activation: str = String("tanh")
    candidate_activation: str = String("tanh")


@register
class AttentionLstm(OpDef):
    """Hidden and Cell ``(T, D)``: an lstm that reads ``sum of softmax(a)[t] X[t]`` at every step.

    X ``(T, M)`` has one level of LoD; C0 and H0 are ``(N, D)``. The attention is ``a = relu([X[t], cell] w +
    b)`` with ``w`` AttentionWeight ``(M + D, 1)`` and ``b`` AttentionBias; with AttentionScalar ``s`` and
    AttentionScalarBias ``b'``, both ``(1, 1)``, it is ``relu(s a + b')``. LSTMWeight ``(D + M, 4 D)`` and
    LSTMBias ``(1, 4 D)`` have the columns forget, input, output gate, candidate. The other outputs are
    buffers of Paddle's kernel and get no value.
    """

    type = "attention_lstm"
    inputs = (
        "X", "C0", "H0?", "AttentionWeight", "AttentionBias?", "AttentionScalar?", "AttentionScalarBias?",
        "LSTMWeight", "LSTMBias",
    )  # fmt: skip
    outputs = ("Hidden", "Cell", "AttentionedX", "AttentionFCOut", "LSTMX", "LSTMOUT")
    attrs = _Attrs.table()
    lod = {"Hidden": "X", "Cell": "X"}

    @classmethod
    def infer(cls, x: Spec, c0: Spec, h0: Spec | None, *weights: Spec | None) -> tuple[Any, ...]:
        attention, *_, lstm, _bias = weights
        assert attention is not None
        assert lstm is not None
        width = lstm.shape[1] // 4
        if lstm.shape[0] != width + x.shape[1] or tuple(attention.shape) != (width + x.shape[1], 1):
            raise ShapeError(
                f"{cls.type}: X has shape {x.shape}, AttentionWeight {attention.shape}, LSTMWeight "
                f"{lstm.shape}; expected (T, M), (M + D, 1) and (D + M, 4 D)"
            )
        out = Spec((x.shape[0], width), x.dtype)
        return out, out, *(None,) * 4

    @classmethod
    def forward(
        cls,
        ctx: Context,
        x: Array,
        c0: Array,
        h0: Array | None,
        attention: Array,
        bias: Array | None,
        scalar: Array | None,
        scalar_bias: Array | None,
        weight: Array,
        lstm_bias: Array,
        *,
        attrs: _Attrs,
    ) -> tuple[Any, ...]:
        gate, act, candidate = (found.apply for found in find_activations(cls.type, attrs))
        width = weight.shape[1] // 4
        offsets = read_last_level(ctx, "X", len(x))
        hiddens, cells = (np.empty((len(x), width), x.dtype) for _ in range(2))
        seen = x @ attention[: x.shape[1], 0]
        if bias is not None:
            seen += bias.reshape(-1)[0]
        for i, (start, end) in enumerate(itertools.pairwise(offsets)):
            cell = c0[i]
            hidden = np.zeros(width, x.dtype) if h0 is None else h0[i]
            for t in range(start, end):
                scores = np.maximum(seen[start:end] + cell @ attention[x.shape[1] :, 0], 0)
                if scalar is not None:
                    scores *= scalar.reshape(-1)[0]
                    scores = np.maximum(
                        scores + (0 if scalar_bias is None else scalar_bias.reshape(-1)[0]), 0
                    )
                scores = np.exp(scores - scores.max())
                read = (scores / scores.sum()) @ x[start:end]
                gates = read @ weight[width:] + hidden @ weight[:width] + lstm_bias.reshape(-1)
                gates[: 3 * width] = gate(gates[: 3 * width])
                new = candidate(gates[3 * width :])
                cell = gates[:width] * cell + gates[width : 2 * width] * new
                hidden = act(cell.copy()) * gates[2 * width : 3 * width]
                hiddens[t], cells[t] = hidden, cell
        return hiddens, cells, *(None,) * 4
