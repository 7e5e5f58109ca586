"""Fused projection and recurrent unit, and the LSTM that attends to its whole sequence."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp

from paddlelike.compiled.lowering.recurrent.gru import gru
from paddlelike.compiled.lowering.recurrent.lstm import ACTIVATIONS, Cell, run_lstm
from paddlelike.compiled.lowering.sequence.sequence import from_steps, require_sequences, to_steps
from paddlelike.compiled.lowerings import Results, lowers
from paddlelike.compiled.tracing.context import OpContext
from paddlelike.compiled.values import Packed, Value


@lowers("fusion_gru", sequences=True)
def fusion_gru(
    x: Packed,
    h0: Value,
    wx: Value,
    wh: Value,
    bias: Value | None,
    *,
    activation: str,
    gate_activation: str,
    is_reverse: bool,
) -> Results:
    require_sequences(x)
    projected = x.rows.reshape(x.rows.shape[0], -1) @ wx
    projected = x.replace(projected if bias is None else projected + bias)
    *_, hidden = gru(
        projected, h0, wh, None,
        activation=activation, gate_activation=gate_activation, is_reverse=is_reverse, origin_mode=False,
    )  # fmt: skip
    return None, projected, None, None, hidden


def _run(
    projected: Value, wh: jax.Array, bias: jax.Array, h0: Value, c0: Value, activations: Sequence[str],
    *, use_peepholes: bool, is_reverse: bool,
) -> tuple[Value, Value]:  # fmt: skip
    """Return Hidden and Cell for the projected input, to which the bias has been added."""
    gate, act, candidate = (ACTIVATIONS[name] for name in activations)
    flat = bias.reshape(-1)
    rest = flat.at[: wh.shape[1]].set(0)
    cell = Cell(wh, rest, use_peepholes, gate, act, candidate)
    return run_lstm(projected, h0, c0, cell, reverse=is_reverse)


@lowers("fusion_lstm", sequences=True)
def fusion_lstm(
    x: Packed, wx: jax.Array, wh: Value, bias: jax.Array, h0: Value, c0: Value,
    *, use_peepholes: bool, is_reverse: bool, gate_activation: str, cell_activation: str,
    candidate_activation: str,
) -> Results:  # fmt: skip
    require_sequences(x)
    rows = x.rows.reshape(x.rows.shape[0], -1) @ wx + bias.reshape(-1)[: wx.shape[1]]
    projected = x.replace(rows)
    activations = (gate_activation, cell_activation, candidate_activation)
    hidden, cell = _run(
        projected, wh, bias, h0, c0, activations, use_peepholes=use_peepholes, is_reverse=is_reverse
    )
    return hidden, cell, projected, *(None,) * 6


@lowers("fused_embedding_fc_lstm", sequences=True)
def fused_embedding_fc_lstm(
    ids: Packed, table: jax.Array, wh: Value, bias: Value, h0: Value, c0: Value,
    *, use_peepholes: bool, is_reverse: bool, gate_activation: str, cell_activation: str,
    candidate_activation: str, ctx: OpContext,
) -> Results:  # fmt: skip
    require_sequences(ids)
    rows = ids.rows.reshape(-1)
    ctx.check((rows >= 0) & (rows < table.shape[0]) | ~ids.used, f"Ids hold no row of {table.shape[0]}")
    projected = ids.replace(jnp.take(table, rows, axis=0, mode="clip"))
    activations = (gate_activation, cell_activation, candidate_activation)
    hidden, cell = _run(
        projected, wh, bias, h0, c0, activations, use_peepholes=use_peepholes, is_reverse=is_reverse
    )
    return hidden, cell, projected, *(None,) * 5


@lowers("attention_lstm", sequences=True)
def attention_lstm(
    x: Packed, c0: Value, h0: Value | None, attention: jax.Array, bias: jax.Array | None,
    scalar: jax.Array | None, scalar_bias: jax.Array | None, weight: jax.Array,
    lstm_bias: jax.Array, *, gate_activation: str, cell_activation: str, candidate_activation: str,
) -> Results:  # fmt: skip
    require_sequences(x)
    gate, act, candidate = (
        ACTIVATIONS[name] for name in (gate_activation, cell_activation, candidate_activation)
    )
    width, columns = weight.shape[1] // 4, x.rows.shape[1]
    rows, there = to_steps(x)
    seen = rows @ attention[:columns, 0]
    seen = seen if bias is None else seen + bias.reshape(-1)[0]

    def step(carry: jax.Array, here: jax.Array) -> tuple[tuple[jax.Array, ...], tuple[Any, Any]]:
        hidden, cell = carry
        scores = jnp.maximum(seen + cell @ attention[columns:, 0], 0)
        if scalar is not None:
            scores = scores * scalar.reshape(-1)[0]
            scores = jnp.maximum(scores + (0 if scalar_bias is None else scalar_bias.reshape(-1)[0]), 0)
        scores = jnp.where(there, jnp.exp(scores - jnp.where(there, scores, -jnp.inf).max(0)), 0)
        shares = scores / jnp.where(there.any(0), scores.sum(0), 1)
        read = jnp.einsum("tn,tnm->nm", shares, rows)
        gates = read @ weight[width:] + hidden @ weight[:width] + lstm_bias.reshape(-1)
        forget, into, out = jnp.split(gate(gates[:, : 3 * width]), 3, 1)
        new_cell = forget * cell + into * candidate(gates[:, 3 * width :])
        new_hidden = act(new_cell) * out
        new = tuple(
            jnp.where(here[:, None], one, old) for one, old in ((new_hidden, hidden), (new_cell, cell))
        )
        return new, (new_hidden, new_cell)

    first = jnp.zeros((x.count, width), x.rows.dtype) if h0 is None else h0
    _, results = jax.lax.scan(step, (first, c0), there)
    hidden, cell = (x.replace(from_steps(x, result)) for result in results)
    return hidden, cell, *(None,) * 4
