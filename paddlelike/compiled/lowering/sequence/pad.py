"""Sequences padded to one length, and back."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from paddlelike.compiled.lowering.sequence.part import gather_sequences
from paddlelike.compiled.lowering.sequence.sequence import require_sequences, to_steps
from paddlelike.compiled.lowerings import lowers
from paddlelike.compiled.packing import LoweringError, find_bucket
from paddlelike.compiled.tracing.context import OpContext
from paddlelike.compiled.values import Packed, Value
from paddlelike.core.dtypes import VarType, numpy_dtype


@lowers("sequence_mask", sequences=True, constants=True)
def sequence_mask(
    x: jax.Array | Packed, max_len: Value | None, *, maxlen: int, out_dtype: int, ctx: OpContext
) -> Value:
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
def sequence_pad(x: Packed, value: jax.Array, *, padded_length: int, ctx: OpContext) -> tuple[Value, Value]:
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
def sequence_unpad(x: jax.Array, length: jax.Array, *, ctx: OpContext) -> Packed:
    lengths = length.reshape(-1)
    count, width = x.shape[:2]
    if lengths.shape[0] != count:
        raise LoweringError("Length has no number for each row of X")
    ctx.check((lengths >= 0) & (lengths <= width), f"Length holds a value outside of 0 to {width}")
    flat = x.reshape(count * width, *(x.shape[2:] or (1,)))
    size = find_bucket(count * width)
    return gather_sequences(flat, lambda which, step: which * width + step, lengths, size, find_bucket(width))
