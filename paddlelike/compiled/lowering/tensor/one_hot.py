"""Numbers as rows of zeros and a one, and shards of ids."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from paddlelike.compiled.lowerings import lowers
from paddlelike.compiled.refusals import LoweringError
from paddlelike.core.dtypes import numpy_dtype


@lowers("one_hot")
def one_hot(x: Any, depth_tensor: Any, *, depth: int, dtype: int, allow_out_of_range: bool, ctx: Any) -> Any:
    return one_hot_v2(
        x.reshape(x.shape[:-1]), depth_tensor, depth=depth, dtype=dtype,
        allow_out_of_range=allow_out_of_range, ctx=ctx,
    )  # fmt: skip


@lowers("one_hot_v2")
def one_hot_v2(
    x: Any, depth_tensor: Any, *, depth: int, dtype: int, allow_out_of_range: bool, ctx: Any
) -> Any:
    if depth_tensor is not None:
        raise LoweringError("the depth is a variable")
    if not allow_out_of_range:
        ctx.check((x >= 0) & (x < depth), f"X holds a value outside of 0 to {depth - 1}")
    return jax.nn.one_hot(x, depth, dtype=numpy_dtype(dtype))


@lowers("shard_index")
def shard_index(x: Any, *, index_num: int, nshards: int, shard_id: int, ignore_value: int, ctx: Any) -> Any:
    ctx.check((x >= 0) & (x < index_num), f"X holds a value outside of 0 to {index_num - 1}")
    size = -(-index_num // nshards)
    return jnp.where(x // size == shard_id, x % size, jnp.asarray(ignore_value, x.dtype))
