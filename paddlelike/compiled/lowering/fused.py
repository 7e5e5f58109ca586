"""Lowerings of fused operators."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array

from paddlelike.compiled.lowering.recurrent.cells import ACTIVATIONS, Cell, gru, run_lstm
from paddlelike.compiled.lowering.sequence.sequence import (
    from_steps,
    require_sequences,
    sequence_conv,
    spread,
    sum_sequences,
    to_steps,
)
from paddlelike.compiled.lowerings import Results, lowers
from paddlelike.compiled.packing import LoweringError, find_bucket
from paddlelike.compiled.tracing.context import OpContext
from paddlelike.compiled.values import Packed, SparseRows, Value


@lowers("fusion_repeated_fc_relu")
def fusion_repeated_fc_relu(x: Array, weights: list[Array], biases: list[Array]) -> tuple[list[Array], Array]:
    outs = []
    for weight, bias in zip(weights, biases, strict=True):
        x = jnp.maximum(x @ weight + bias.reshape(-1), 0)
        outs.append(x)
    return outs[:-1], outs[-1]


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
    projected: Value, wh: Array, bias: Array, h0: Value, c0: Value, activations: Sequence[str],
    *, use_peepholes: bool, is_reverse: bool,
) -> tuple[Value, Value]:  # fmt: skip
    """Return Hidden and Cell, computed from the projected input with the bias added."""
    gate, act, candidate = (ACTIVATIONS[name] for name in activations)
    flat = bias.reshape(-1)
    rest = flat.at[: wh.shape[1]].set(0)
    cell = Cell(wh, rest, use_peepholes, gate, act, candidate)
    return run_lstm(projected, h0, c0, cell, reverse=is_reverse)


@lowers("fusion_lstm", sequences=True)
def fusion_lstm(
    x: Packed, wx: Array, wh: Value, bias: Array, h0: Value, c0: Value,
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
    ids: Packed, table: Array, wh: Value, bias: Value, h0: Value, c0: Value,
    *, use_peepholes: bool, is_reverse: bool, gate_activation: str, cell_activation: str,
    candidate_activation: str, ctx: OpContext,
) -> Results:  # fmt: skip
    require_sequences(ids)
    rows = ids.rows.reshape(-1)
    ctx.check_below(rows, table.shape[0], "Ids hold a value", ~ids.used)
    projected = ids.replace(jnp.take(table, rows, axis=0, mode="clip"))
    activations = (gate_activation, cell_activation, candidate_activation)
    hidden, cell = _run(
        projected, wh, bias, h0, c0, activations, use_peepholes=use_peepholes, is_reverse=is_reverse
    )
    return hidden, cell, projected, *(None,) * 5


@lowers("attention_lstm", sequences=True)
def attention_lstm(
    x: Packed, c0: Value, h0: Value | None, attention: Array, bias: Array | None,
    scalar: Array | None, scalar_bias: Array | None, weight: Array,
    lstm_bias: Array, *, gate_activation: str, cell_activation: str, candidate_activation: str,
) -> Results:  # fmt: skip
    require_sequences(x)
    gate, act, candidate = (
        ACTIVATIONS[name] for name in (gate_activation, cell_activation, candidate_activation)
    )
    width, columns = weight.shape[1] // 4, x.rows.shape[1]
    rows, there = to_steps(x)
    rows = jnp.where(there[..., None], rows, 0)
    seen = rows @ attention[:columns, 0]
    seen = seen if bias is None else seen + bias.reshape(-1)[0]

    def step(carry: Array, here: Array) -> tuple[tuple[Array, ...], tuple[Any, Any]]:
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


def _pool(x: Packed, kind: str) -> Array:
    """Return the sum of each sequence, divided by its length (AVERAGE) or by the root of its length
    (SQRT).
    """
    require_sequences(x)
    total = sum_sequences(x, x.mask())
    lengths = jnp.maximum(x.lengths, 1).astype(x.rows.dtype)[:, None]
    return {"SUM": total, "AVERAGE": total / lengths, "SQRT": total / jnp.sqrt(lengths)}[kind]


def _join(pooled: list[Array]) -> Packed:
    """Concatenate the columns; every row is a sequence of its own, as in Paddle."""
    out = jnp.concatenate(pooled, 1)
    count = out.shape[0]
    size = find_bucket(count)
    unused = jnp.broadcast_to(out[:1], (size - count, out.shape[1]))
    offsets = jnp.arange(count + 1, dtype=jnp.int32)
    return Packed(jnp.concatenate([out, unused]), (offsets,), find_bucket(1, steps=2))


@lowers("fusion_seqpool_concat", sequences=True)
def fusion_seqpool_concat(xs: list[Value], *, pooltype: str) -> Packed:
    return _join([_pool(x, pooltype) for x in xs])


@lowers("fusion_seqpool_cvm_concat", sequences=True)
def fusion_seqpool_cvm_concat(xs: list[Value], cvm: Value, *, pooltype: str) -> Packed:
    return _join([count_logarithms(_pool(x, pooltype)) for x in xs])


def count_logarithms(x: Array) -> Array:
    """Return rows with the logarithms of the first two columns, the counts of shows and clicks."""
    show, click = (jnp.log(x[:, i] + jnp.asarray(1, x.dtype)) for i in (0, 1))
    return jnp.concatenate([jnp.stack([show, click - show], 1), x[:, 2:]], 1)


def _find_rows(w: Array, ids: Packed, padding_idx: int) -> tuple[Array, Array]:
    """Return the row of each id, 0 for padding, and a mask of the ids that are not padding."""
    flat = ids.rows.reshape(ids.rows.shape[0], -1)
    counts = (flat != padding_idx) & ids.used[:, None]
    return jnp.where(counts, flat, 0), counts


@lowers("fused_embedding_seq_pool", sequences=True)
def fused_embedding_seq_pool(w: Array | SparseRows, ids: Value, *, padding_idx: int, ctx: OpContext) -> Value:
    require_sequences(ids)
    if isinstance(w, SparseRows):
        raise LoweringError("W holds only some rows")
    rows, counts = _find_rows(w, ids, padding_idx)
    ctx.check_below(rows, w.shape[0], "Ids hold a value")
    found = jnp.where(counts[..., None], jnp.take(w, rows, axis=0, mode="clip"), 0)
    return sum_sequences(ids, found.reshape(found.shape[0], -1))


@lowers("fused_embedding_seq_pool_grad", sequences=True)
def fused_embedding_seq_pool_grad(
    w: Array, ids: Value, d_out: Value, *, is_sparse: bool, padding_idx: int
) -> Value | SparseRows:
    rows, counts = _find_rows(w, ids, padding_idx)
    each = spread(ids, d_out).reshape(*rows.shape, w.shape[1])
    each = jnp.where(counts[..., None], each, 0).reshape(-1, w.shape[1])
    found = SparseRows(rows.reshape(-1), each.astype(w.dtype), w.shape[0])
    return found if is_sparse else found.to_dense()


@lowers("fusion_seqconv_eltadd_relu", sequences=True)
def fusion_seqconv_eltadd_relu(
    x: Value, w: Value, bias: Array, *, contextLength: int, contextStart: int  # noqa: N803
) -> tuple[Packed, None]:  # fmt: skip
    out = sequence_conv(
        x, None, w, contextLength=contextLength, contextStart=contextStart, paddingTrainable=False
    )
    return out.replace(jnp.maximum(out.rows + bias.reshape(-1), 0)), None


@lowers("fusion_seqexpand_concat_fc", sequences=True)
def fusion_seqexpand_concat_fc(
    xs: list[Value], w: Array, bias: Array | None, *, fc_activation: str
) -> tuple[Packed, None]:
    first = xs[0]
    require_sequences(first)
    others = [x.rows[: first.count] if isinstance(x, Packed) else x for x in xs[1:]]
    joined = jnp.concatenate([first.rows, *(spread(first, x) for x in others)], 1)
    out = joined @ w
    out = out if bias is None else out + bias.reshape(-1)
    return first.replace(ACTIVATIONS[fc_activation](out)), None
