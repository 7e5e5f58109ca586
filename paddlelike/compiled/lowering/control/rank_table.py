"""Rank tables: sequences step by step, the longest first.

An element of the arrays has a row for every sequence; only the first rows, of the sequences that are long
enough, are used.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import Array

from paddlelike.compiled.arrays import Ranks, TensorArray
from paddlelike.compiled.lowering.sequence.sequence import require_sequences
from paddlelike.compiled.lowerings import lowers
from paddlelike.compiled.packing import LoweringError
from paddlelike.compiled.tracing.context import OpContext
from paddlelike.compiled.values import Packed, Value, get_rows
from paddlelike.framework.opdef import GRAD


def _is_gradient(ctx: OpContext) -> bool:
    return GRAD in ctx.op.input("X")[0]


@lowers("lod_rank_table", sequences=True)
def lod_rank_table(x: Packed, *, level: int, ctx: OpContext) -> Ranks:
    require_sequences(x)
    if level != len(x.offsets) - 1:
        raise LoweringError("it sorts sequences of sequences")
    lengths = x.lengths
    order = jnp.argsort(-lengths, stable=True)
    return Ranks(order, lengths[order], x.offsets, x.longest, x.rows.shape[0], _find_source(x, ctx))


def _find_source(x: Packed, ctx: OpContext) -> int | None:
    """Return the position of a piece's input that has the LoD of the given sequences."""
    for position, value in ctx.trace.root.given.items():
        if isinstance(value, Packed) and value.offsets and value.offsets[-1] is x.offsets[-1]:
            return position
    return None


@lowers("max_sequence_len")
def max_sequence_len(table: Ranks, *, ctx: OpContext) -> Array:
    ctx.bound(table.longest, None if table.source is None else _make_reader(table.source))
    return table.lengths[:1].astype(jnp.int64)


def _make_reader(source: int) -> Callable[[Mapping[int, Any]], int]:
    """Return a function from a piece's inputs to the length of the longest sequence."""
    return lambda given: int(np.diff(np.asarray(given[source].offsets[-1])).max(initial=0))


@lowers("lod_tensor_to_array", sequences=True)
def lod_tensor_to_array(x: Array | Packed, table: Ranks, *, ctx: OpContext) -> TensorArray:
    rows = get_rows(x)
    step = jnp.arange(table.longest)[:, None]
    there = step < table.lengths
    places = table.offsets[-1][:-1][table.order] + step
    found = jnp.take(rows, jnp.where(there, places, 0), axis=0, mode="clip")
    if _is_gradient(ctx):  # unused rows have no gradient
        found = jnp.where(there.reshape(*there.shape, *[1] * (rows.ndim - 1)), found, 0).astype(rows.dtype)
    live = there.sum(1).astype(jnp.int32)
    stacked = Packed(found, (), rows.shape[0], shown=False, live=live, source=table.source)
    return TensorArray(stacked, table.lengths[0].astype(jnp.int64))


@lowers("array_to_lod_tensor", sequences=True)
def array_to_lod_tensor(x: Array | TensorArray, table: Ranks, *, ctx: OpContext) -> Packed:
    if not isinstance(x, TensorArray):
        raise LoweringError("the array has no elements")
    steps = x.stacked.rows if isinstance(x.stacked, Packed) else x.stacked
    if isinstance(x.stacked, Packed) and x.stacked.offsets:
        raise LoweringError("the elements are sequences")
    like = Packed(jnp.zeros((table.rows, 1)), table.offsets, table.longest, shown=not _is_gradient(ctx))
    rank = jnp.argsort(table.order)  # of each sequence
    used = like.used
    which = jnp.where(used, jnp.minimum(like.index_rows(), like.count - 1), 0)
    step = jnp.where(used, jnp.arange(table.rows) - table.offsets[-1][:-1][which], 0)
    found = steps[jnp.clip(step, 0, steps.shape[0] - 1), rank[which]]
    out = like.replace(found)
    return out.replace(out.mask()) if _is_gradient(ctx) else out


@lowers("shrink_rnn_memory", sequences=True)
def shrink_rnn_memory(x: Array | Packed, table: Ranks, i: Array) -> Packed:
    count = table.count(i.reshape(()))
    if not isinstance(x, Packed):
        return Packed(x, (), x.shape[0], shown=False, live=count, source=table.source)
    live = count if x.live is None else jnp.minimum(count, x.live).astype(jnp.int32)
    if len(x.offsets) > 1:
        raise LoweringError("it shortens sequences of sequences")
    offsets = tuple(jnp.minimum(level, level[count]) for level in x.offsets)
    return Packed(x.rows, offsets, x.longest, shown=False, live=live, source=table.source)


@lowers("shrink_rnn_memory_grad", sequences=True)
def shrink_rnn_memory_grad(x: Array | Packed, d_out: Array | Packed | None) -> Value:
    rows = get_rows(x)
    d_x = jnp.zeros_like(rows) if d_out is None else d_out.mask() if isinstance(d_out, Packed) else d_out
    return x.replace(d_x) if isinstance(x, Packed) else d_x


@lowers("reorder_lod_tensor_by_rank", sequences=True)
def reorder_lod_tensor_by_rank(x: Value, table: Ranks) -> Value:
    return _reorder(x, table.order)


@lowers("reorder_lod_tensor_by_rank_grad", sequences=True)
def reorder_lod_tensor_by_rank_grad(x: Value, table: Ranks) -> Value:
    return _reorder(x, jnp.argsort(table.order))


def _reorder(x: Array | Packed, order: Array) -> Value:
    if not isinstance(x, Packed):
        return jnp.take(x, order, axis=0)
    if len(x.offsets) != 1 or x.live is not None:
        raise LoweringError("it sorts sequences of sequences, or some of the sequences")
    (offsets,) = x.offsets
    lengths = x.lengths[order]
    ends = jnp.cumsum(lengths)
    new = Packed(x.rows, (jnp.concatenate([jnp.zeros(1, ends.dtype), ends]).astype(offsets.dtype),),
                 x.longest, shown=x.shown)  # fmt: skip
    which = jnp.minimum(new.index_rows(), new.count - 1)
    row = jnp.arange(x.rows.shape[0])
    places = offsets[:-1][order][which] + row - new.offsets[0][:-1][which]
    rows = jnp.take(x.rows, jnp.where(new.used, places, row), axis=0, mode="clip")
    return new.replace(rows)
