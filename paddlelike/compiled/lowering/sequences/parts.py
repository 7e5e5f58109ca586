"""Parts of sequences, their padding and their masks; where shapes follow from attributes, not from values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np

from paddlelike.compiled.lowering.sequences.sequence import require_sequences, spread, to_steps
from paddlelike.compiled.packing import find_bucket
from paddlelike.compiled.refusals import LoweringError
from paddlelike.compiled.table import lowers
from paddlelike.compiled.tracing.context import OpContext
from paddlelike.compiled.values import Packed
from paddlelike.core.dtypes import VarType, numpy_dtype


def _make_offsets(lengths: Any) -> Any:
    ends = jnp.cumsum(lengths)
    return jnp.concatenate([jnp.zeros(1, ends.dtype), ends]).astype(jnp.int32)


def gather_sequences(
    rows: Any,
    places: Callable[[Any, Any], Any],
    lengths: Any,
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


@lowers("sequence_mask", sequences=True, constants=True)
def sequence_mask(x: Any, max_len: Any, *, maxlen: int, out_dtype: int, ctx: OpContext) -> Any:
    if max_len is not None and not isinstance(max_len, np.ndarray):
        raise LoweringError("the length of the mask is a variable")
    width = maxlen if max_len is None else int(max_len.reshape(-1)[0])
    if width < 0:
        known = ctx.find_greatest(0)
        width = -1 if known is None else known
    if width < 0:
        raise LoweringError("the greatest length, a value, says the shape")
    lengths = x.rows if isinstance(x, Packed) else jnp.asarray(x)
    mask = (jnp.arange(width) < lengths[..., None]).astype(numpy_dtype(VarType(out_dtype)))
    return x.replace(mask, shown=False) if isinstance(x, Packed) else mask


@lowers("sequence_pad", sequences=True)
def sequence_pad(x: Any, value: Any, *, padded_length: int, ctx: OpContext) -> tuple[Any, Any]:
    require_sequences(x)
    if padded_length < 0:
        if not x.exact:
            raise LoweringError("the longest sequence says the shape")
        padded_length = x.longest
        ctx.bound(padded_length, None, slot=1, is_reached=True)
    if len(x.offsets) > 1 or x.live is not None:
        raise LoweringError("sequences of sequences")
    ctx.check(x.lengths <= padded_length, f"a sequence of X has more than {padded_length} rows")
    steps, _ = to_steps(Packed(x.rows, x.offsets, padded_length))
    there = jnp.arange(padded_length) < x.lengths[:, None]
    rows = jnp.moveaxis(steps, 0, 1)
    fill = value.reshape(x.rows.shape[1:]) if value.size > 1 else value.reshape(())
    out = jnp.where(there.reshape(*there.shape, *[1] * (rows.ndim - 2)), rows, fill.astype(rows.dtype))
    return out, x.lengths.astype(jnp.int64)


@lowers("sequence_unpad")
def sequence_unpad(x: Any, length: Any, *, ctx: OpContext) -> Packed:
    lengths = length.reshape(-1)
    count, width = x.shape[:2]
    if lengths.shape[0] != count:
        raise LoweringError("Length has no number for each row of X")
    ctx.check((lengths >= 0) & (lengths <= width), f"Length holds a value outside of 0 to {width}")
    flat = x.reshape(count * width, *(x.shape[2:] or (1,)))
    size = find_bucket(count * width)
    return gather_sequences(flat, lambda which, step: which * width + step, lengths, size, find_bucket(width))


@lowers("sequence_slice", sequences=True)
def sequence_slice(x: Any, offset: Any, length: Any, *, ctx: OpContext) -> Packed:
    require_sequences(x)
    if len(x.offsets) > 1:
        raise LoweringError("sequences of sequences")
    offset, length = (
        (one.rows if isinstance(one, Packed) else one).reshape(-1)[: x.count] for one in (offset, length)
    )
    ctx.check(
        (offset >= 0) & (length > 0) & (offset + length <= x.lengths), "a slice is not inside of its sequence"
    )
    start = x.offsets[0][:-1] + offset
    return gather_sequences(
        x.rows, lambda which, step: start[which] + step, length, x.rows.shape[0], x.longest
    )


@lowers("sequence_concat", sequences=True)
def sequence_concat(xs: list[Any]) -> Packed:
    require_sequences(*xs)
    if any(len(x.offsets) > 1 or x.live is not None or x.count != xs[0].count for x in xs):
        raise LoweringError("sequences of sequences, or of different counts")
    lengths = jnp.stack([x.lengths for x in xs], 1)  # (sequences, inputs)
    ends = jnp.cumsum(lengths, 1)
    starts = jnp.stack([x.offsets[0][:-1] for x in xs], 1)
    sizes = [x.rows.shape[0] for x in xs]
    first = jnp.asarray(np.cumsum([0, *sizes[:-1]]))

    def find(which: Any, step: Any) -> Any:
        of = (step[:, None] >= ends[which]).sum(1)
        of = jnp.minimum(of, len(xs) - 1)
        begin = ends[which, of] - lengths[which, of]
        return first[of] + starts[which, of] + step - begin

    rows = jnp.concatenate([x.rows for x in xs])
    # The longest results are those of the longest sequences of one input, if all others have one length.
    exact = all(x.exact for x in xs) and sum(not x.full for x in xs) <= 1
    longest = sum(x.longest for x in xs)
    longest = longest if exact else find_bucket(longest)
    return gather_sequences(rows, find, lengths.sum(1), find_bucket(sum(sizes)), longest, exact=exact)


@lowers("sequence_enumerate", sequences=True)
def sequence_enumerate(x: Any, *, win_size: int, pad_value: int) -> Packed:
    require_sequences(x)
    ends = spread(x, x.offsets[-1][1:])[:, None]
    rows = jnp.arange(x.rows.shape[0])[:, None] + jnp.arange(win_size)
    ids = jnp.take(x.rows.reshape(-1), rows, mode="clip")
    out: Packed = x.replace(jnp.where(rows >= ends, pad_value, ids).astype(x.rows.dtype))
    return out


@lowers("sequence_reshape", sequences=True)
def sequence_reshape(x: Any, *, new_dim: int, ctx: OpContext) -> Packed:
    require_sequences(x)
    if len(x.offsets) > 1:
        raise LoweringError("sequences of sequences")
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
def sequence_reshape_grad(d_out: Any, x: Any) -> Packed:
    flat = (d_out.rows if isinstance(d_out, Packed) else d_out).reshape(-1)
    missing = max(x.rows.size - flat.shape[0], 0)
    rows = jnp.pad(flat, (0, missing))[: x.rows.size].reshape(x.rows.shape)
    found: Packed = x.replace(x.mask(rows), shown=False)
    return found


@lowers("sequence_scatter", sequences=True)
def sequence_scatter(x: Any, ids: Any, updates: Any, *, ctx: OpContext) -> Any:
    require_sequences(ids, updates)
    if isinstance(x, Packed) or ids.count != x.shape[0] or ids.rows.shape[0] != updates.rows.shape[0]:
        raise LoweringError("X has no row for each sequence of Ids")
    flat, matrix = ids.rows.reshape(-1), x.reshape(x.shape[0], -1)
    width = matrix.shape[1]
    ctx.check(((flat >= 0) & (flat < width)) | ~ids.used, f"Ids hold no column of {width}")
    columns = jnp.where(ids.used, flat, width)  # out of bounds: dropped
    rows = jnp.minimum(ids.index_rows(), ids.count - 1)
    return matrix.at[rows, columns].add(updates.rows.reshape(-1), mode="drop").reshape(x.shape)
