"""Fused operators on sequences."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from paddlelike.compiled.lowering.recurrent.lstm import ACTIVATIONS
from paddlelike.compiled.lowering.sequence.sequence import (
    require_sequences,
    sequence_conv,
    spread,
    sum_sequences,
)
from paddlelike.compiled.lowerings import lowers
from paddlelike.compiled.packing import LoweringError, find_bucket
from paddlelike.compiled.tracing.context import OpContext
from paddlelike.compiled.values import Packed, SparseRows, Value


def _pool(x: Packed, kind: str) -> jax.Array:
    """Return the sum of each sequence, by its length (AVERAGE) or the root of it (SQRT)."""
    require_sequences(x)
    total = sum_sequences(x, x.mask())
    lengths = jnp.maximum(x.lengths, 1).astype(x.rows.dtype)[:, None]
    return {"SUM": total, "AVERAGE": total / lengths, "SQRT": total / jnp.sqrt(lengths)}[kind]


def _join(pooled: list[jax.Array]) -> Packed:
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


def count_logarithms(x: jax.Array) -> jax.Array:
    """Return rows whose first two columns, the counts of shows and clicks, are logarithms."""
    show, click = (jnp.log(x[:, i] + jnp.asarray(1, x.dtype)) for i in (0, 1))
    return jnp.concatenate([jnp.stack([show, click - show], 1), x[:, 2:]], 1)


def _find_rows(w: jax.Array, ids: Packed, padding_idx: int) -> tuple[jax.Array, jax.Array]:
    """Return the row of each id, 0 for padding, and a mask of the ids that are not padding."""
    flat = ids.rows.reshape(ids.rows.shape[0], -1)
    counts = (flat != padding_idx) & ids.used[:, None]
    return jnp.where(counts, flat, 0), counts


@lowers("fused_embedding_seq_pool", sequences=True)
def fused_embedding_seq_pool(
    w: jax.Array | SparseRows, ids: Value, *, padding_idx: int, ctx: OpContext
) -> Value:
    require_sequences(ids)
    if isinstance(w, SparseRows):
        raise LoweringError("W holds some rows only")
    rows, counts = _find_rows(w, ids, padding_idx)
    ctx.check((rows >= 0) & (rows < w.shape[0]), f"Ids hold no row of {w.shape[0]}")
    found = jnp.where(counts[..., None], jnp.take(w, rows, axis=0, mode="clip"), 0)
    return sum_sequences(ids, found.reshape(found.shape[0], -1))


@lowers("fused_embedding_seq_pool_grad", sequences=True)
def fused_embedding_seq_pool_grad(
    w: jax.Array, ids: Value, d_out: Value, *, is_sparse: bool, padding_idx: int
) -> Value | SparseRows:
    rows, counts = _find_rows(w, ids, padding_idx)
    each = spread(ids, d_out).reshape(*rows.shape, w.shape[1])
    each = jnp.where(counts[..., None], each, 0).reshape(-1, w.shape[1])
    found = SparseRows(rows.reshape(-1), each.astype(w.dtype), w.shape[0])
    return found if is_sparse else found.to_dense()


@lowers("fusion_seqconv_eltadd_relu", sequences=True)
def fusion_seqconv_eltadd_relu(
    x: Value, w: Value, bias: jax.Array, *, contextLength: int, contextStart: int  # noqa: N803
) -> tuple[Packed, None]:  # fmt: skip
    out = sequence_conv(
        x, None, w, contextLength=contextLength, contextStart=contextStart, paddingTrainable=False
    )
    return out.replace(jnp.maximum(out.rows + bias.reshape(-1), 0)), None


@lowers("fusion_seqexpand_concat_fc", sequences=True)
def fusion_seqexpand_concat_fc(
    xs: list[Value], w: jax.Array, bias: jax.Array | None, *, fc_activation: str
) -> tuple[Packed, None]:
    first = xs[0]
    require_sequences(first)
    others = [x.rows[: first.count] if isinstance(x, Packed) else x for x in xs[1:]]
    joined = jnp.concatenate([first.rows, *(spread(first, x) for x in others)], 1)
    out = joined @ w
    out = out if bias is None else out + bias.reshape(-1)
    return first.replace(ACTIVATIONS[fc_activation](out)), None
