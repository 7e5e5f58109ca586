"""Numbers as rows of zeros and a one, and shards of ids."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from paddlelike.compiled.lowerings import lowers
from paddlelike.compiled.packing import LoweringError
from paddlelike.compiled.tracing.context import OpContext
from paddlelike.core.dtypes import numpy_dtype


@lowers("one_hot")
def one_hot(
    x: jax.Array, depth_tensor: jax.Array, *, depth: int, dtype: int, allow_out_of_range: bool, ctx: OpContext
) -> jax.Array:
    return one_hot_v2(
        x.reshape(x.shape[:-1]), depth_tensor, depth=depth, dtype=dtype,
        allow_out_of_range=allow_out_of_range, ctx=ctx,
    )  # fmt: skip


@lowers("one_hot_v2")
def one_hot_v2(
    x: jax.Array,
    depth_tensor: jax.Array | None,
    *,
    depth: int,
    dtype: int,
    allow_out_of_range: bool,
    ctx: OpContext,
) -> jax.Array:
    if depth_tensor is not None:
        raise LoweringError("the depth is a variable")
    if not allow_out_of_range:
        ctx.check((x >= 0) & (x < depth), f"X holds a value outside of 0 to {depth - 1}")
    return jax.nn.one_hot(x, depth, dtype=numpy_dtype(dtype))


@lowers("shard_index")
def shard_index(
    x: jax.Array, *, index_num: int, nshards: int, shard_id: int, ignore_value: int, ctx: OpContext
) -> jax.Array:
    ctx.check((x >= 0) & (x < index_num), f"X holds a value outside of 0 to {index_num - 1}")
    size = -(-index_num // nshards)
    return jnp.where(x // size == shard_id, x % size, jnp.asarray(ignore_value, x.dtype))
