"""Conversions of sequences to batches and images, and repetition by other sequences."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
from jax import Array

from paddlelike.compiled.lowering.nn.conv.unfold import collect_windows
from paddlelike.compiled.lowering.sequence.part import gather_sequences
from paddlelike.compiled.lowering.sequence.sequence import require_sequences, to_steps
from paddlelike.compiled.lowerings import lowers
from paddlelike.compiled.packing import LoweringError, find_bucket
from paddlelike.compiled.tracing.context import OpContext
from paddlelike.compiled.tracing.rows import find_packed, to_rows
from paddlelike.compiled.values import Packed, Value
from paddlelike.core import VarType, numpy_dtype


@lowers("sequence_mask", sequences=True, constants=True)
def sequence_mask(
    x: Array | Packed, max_len: Value | None, *, maxlen: int, out_dtype: int, ctx: OpContext
) -> Value:
    if max_len is not None and not isinstance(max_len, np.ndarray):
        raise LoweringError("the length of the mask is a variable")
    width = maxlen if max_len is None else int(max_len.reshape(-1)[0])
    if width < 0:
        known = ctx.find_greatest(0)
        width = -1 if known is None else known
    if width < 0:
        raise LoweringError("the shape depends on the greatest length, which is only known at run time")
    lengths = x.rows if isinstance(x, Packed) else jnp.asarray(x)
    mask = (jnp.arange(width) < lengths[..., None]).astype(numpy_dtype(VarType(out_dtype)))
    return x.replace(mask, shown=False) if isinstance(x, Packed) else mask


@lowers("sequence_pad", sequences=True)
def sequence_pad(x: Packed, value: Array, *, padded_length: int, ctx: OpContext) -> tuple[Value, Value]:
    require_sequences(x)
    if padded_length < 0:
        if not x.exact:
            raise LoweringError("the shape depends on the longest sequence")
        padded_length = x.longest
        ctx.bound(padded_length, None, slot=1, is_reached=True)
    if len(x.offsets) > 1 or x.live is not None:
        raise LoweringError("it reads sequences of sequences")
    ctx.check(x.lengths <= padded_length, f"a sequence of X has more than {padded_length} rows")
    steps, _ = to_steps(Packed(x.rows, x.offsets, padded_length))
    there = jnp.arange(padded_length) < x.lengths[:, None]
    rows = jnp.moveaxis(steps, 0, 1)
    fill = value.reshape(x.rows.shape[1:]) if value.size > 1 else value.reshape(())
    out = jnp.where(there.reshape(*there.shape, *[1] * (rows.ndim - 2)), rows, fill.astype(rows.dtype))
    return out, x.lengths.astype(jnp.int64)


@lowers("sequence_unpad", sequences=True)
def sequence_unpad(x: Value, length: Value, *, ctx: OpContext) -> Packed:
    if not all(one.full for one in find_packed([x, length])):
        raise LoweringError("its lowering takes no sequences")
    x, length = to_rows([x, length])
    lengths = length.reshape(-1)
    count, width = x.shape[:2]
    if lengths.shape[0] != count:
        raise LoweringError("Length has no number for each row of X")
    ctx.check((lengths >= 0) & (lengths <= width), f"Length holds a value outside of 0 to {width}")
    flat = x.reshape(count * width, *(x.shape[2:] or (1,)))
    size = find_bucket(count * width)
    return gather_sequences(flat, lambda which, step: which * width + step, lengths, size, find_bucket(width))


@lowers("im2sequence")
def im2sequence(
    x: Array, y: Array | None, *, kernels: list[int], strides: list[int], paddings: list[int]
) -> Packed:
    if y is not None:
        raise LoweringError("the sizes of the images are only known at run time")
    windows = collect_windows(x, kernels, strides, paddings)
    count, width, high, wide = windows.shape
    rows = jnp.moveaxis(windows, 1, -1).reshape(-1, width)
    size = find_bucket(rows.shape[0])
    unused = jnp.broadcast_to(rows[:1], (size - rows.shape[0], width))
    offsets = jnp.arange(count + 1, dtype=jnp.int32) * (high * wide)
    return Packed(jnp.concatenate([rows, unused]), (offsets,), find_bucket(high * wide))


@lowers("sequence_concat", sequences=True)
def sequence_concat(xs: list[Value]) -> Packed:
    require_sequences(*xs)
    if any(len(x.offsets) > 1 or x.live is not None or x.count != xs[0].count for x in xs):
        raise LoweringError("its sequences are nested, or their numbers differ")
    lengths = jnp.stack([x.lengths for x in xs], 1)  # (sequences, inputs)
    ends = jnp.cumsum(lengths, 1)
    starts = jnp.stack([x.offsets[0][:-1] for x in xs], 1)
    sizes = [x.rows.shape[0] for x in xs]
    first = jnp.asarray(np.cumsum([0, *sizes[:-1]]))

    def find(which: Array, step: Array) -> Array:
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
