"""Parts of sequences."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
from jax import Array

from paddlelike.compiled.lowering.sequence.sequence import require_sequences, spread
from paddlelike.compiled.lowerings import lowers
from paddlelike.compiled.packing import LoweringError, find_bucket
from paddlelike.compiled.tracing.context import OpContext
from paddlelike.compiled.values import Packed, Value, get_rows


def keep_rows(x: Packed, kept: Array) -> tuple[Packed, Array]:
    """Return the kept rows of sequences, and how many rows each sequence keeps."""
    kept = kept & x.used
    before = jnp.concatenate([jnp.zeros(1, jnp.int32), jnp.cumsum(kept).astype(jnp.int32)])
    lengths = jnp.diff(before[x.offsets[-1]])
    size = x.rows.shape[0]
    (places,) = jnp.nonzero(kept, size=size)
    starts = jnp.cumsum(lengths) - lengths
    out = gather_sequences(x.rows, lambda which, step: places[starts[which] + step], lengths, size, x.longest)
    return out, lengths


@lowers("sequence_erase", sequences=True)
def sequence_erase(x: Packed, *, tokens: list[int]) -> Packed:
    require_sequences(x)
    if len(x.offsets) > 1 or x.live is not None:
        raise LoweringError("it reads sequences of sequences")
    flat = x.rows.reshape(-1)
    out, _ = keep_rows(x, ~jnp.isin(flat, jnp.asarray(tokens or [], flat.dtype)))
    return out


def _make_offsets(lengths: Array) -> Array:
    ends = jnp.cumsum(lengths)
    return jnp.concatenate([jnp.zeros(1, ends.dtype), ends]).astype(jnp.int32)


def gather_sequences(
    rows: Array,
    places: Callable[[Any, Any], Any],
    lengths: Array,
    size: int,
    longest: int,
    *,
    exact: bool = False,
) -> Packed:
    """Return sequences of these lengths whose row j of sequence i is ``rows[places(i, j)]``."""
    like = Packed(jnp.zeros((size, 1)), (_make_offsets(lengths),), longest, exact=exact)
    which = jnp.where(like.used, jnp.minimum(like.index_rows(), like.count - 1), 0)
    step = jnp.where(like.used, jnp.arange(size) - like.offsets[0][:-1][which], 0)
    return like.replace(jnp.take(rows, places(which, step), axis=0, mode="clip"))


@lowers("sequence_slice", sequences=True)
def sequence_slice(x: Packed, offset: Value, length: Value, *, ctx: OpContext) -> Packed:
    require_sequences(x)
    if len(x.offsets) > 1:
        raise LoweringError("it reads sequences of sequences")
    offset, length = (get_rows(one).reshape(-1)[: x.count] for one in (offset, length))
    ctx.check(
        (offset >= 0) & (length > 0) & (offset + length <= x.lengths), "a slice is not inside of its sequence"
    )
    start = x.offsets[0][:-1] + offset
    return gather_sequences(
        x.rows, lambda which, step: start[which] + step, length, x.rows.shape[0], x.longest
    )


@lowers("sequence_enumerate", sequences=True)
def sequence_enumerate(x: Packed, *, win_size: int, pad_value: int) -> Packed:
    require_sequences(x)
    ends = spread(x, x.offsets[-1][1:])[:, None]
    rows = jnp.arange(x.rows.shape[0])[:, None] + jnp.arange(win_size)
    ids = jnp.take(x.rows.reshape(-1), rows, mode="clip")
    out: Packed = x.replace(jnp.where(rows >= ends, pad_value, ids).astype(x.rows.dtype))
    return out


@lowers("sequence_reshape", sequences=True)
def sequence_reshape(x: Packed, *, new_dim: int, ctx: OpContext) -> Packed:
    require_sequences(x)
    if len(x.offsets) > 1:
        raise LoweringError("it reads sequences of sequences")
    width = x.rows.shape[1]
    ctx.check(x.lengths * width % new_dim == 0, f"the numbers of a sequence do not fill rows of {new_dim}")
    flat = x.rows.reshape(-1)
    is_full = x.full and flat.shape[0] % new_dim == 0
    size = flat.shape[0] // new_dim if is_full else find_bucket(-(-flat.shape[0] // new_dim))
    missing = size * new_dim - flat.shape[0]
    rows = jnp.pad(flat, (0, missing), mode="wrap" if missing <= flat.shape[0] else "edge")
    offsets = (x.offsets[0] * width // new_dim).astype(jnp.int32)
    ctx.note_count(offsets, x, lambda count: count * width // new_dim)
    longest = find_bucket(-(-x.longest * width // new_dim))
    return Packed(rows.reshape(size, new_dim), (offsets,), longest, full=is_full)


@lowers("sequence_reshape_grad", sequences=True)
def sequence_reshape_grad(d_out: Array | Packed, x: Packed) -> Packed:
    flat = get_rows(d_out).reshape(-1)
    missing = max(x.rows.size - flat.shape[0], 0)
    rows = jnp.pad(flat, (0, missing))[: x.rows.size].reshape(x.rows.shape)
    found: Packed = x.replace(x.mask(rows), shown=False)
    return found


@lowers("sequence_scatter", sequences=True)
def sequence_scatter(x: Array | Packed, ids: Packed, updates: Packed, *, ctx: OpContext) -> Value:
    require_sequences(ids, updates)
    if isinstance(x, Packed) or ids.count != x.shape[0] or ids.rows.shape[0] != updates.rows.shape[0]:
        raise LoweringError("X has no row for each sequence of Ids")
    flat, matrix = ids.rows.reshape(-1), x.reshape(x.shape[0], -1)
    width = matrix.shape[1]
    ctx.check_below(flat, width, "Ids hold a value", ~ids.used)
    columns = jnp.where(ids.used, flat, width)  # out of bounds: dropped
    rows = jnp.minimum(ids.index_rows(), ids.count - 1)
    return matrix.at[rows, columns].add(updates.rows.reshape(-1), mode="drop").reshape(x.shape)
