"""top_k, argsort."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from paddlelike.compiled.lowerings import Results, lowers
from paddlelike.compiled.packing import LoweringError
from paddlelike.compiled.tracing.context import OpContext
from paddlelike.framework.quirks import follows_fluid


@lowers("top_k")
def top_k(x: jax.Array, k_tensor: jax.Array | None, *, k: int, ctx: OpContext) -> Results:
    if k_tensor is not None:
        raise LoweringError("K is a variable")
    if not follows_fluid("order_of_equals"):
        values, indices = jax.lax.top_k(x, k)
        return values, indices.astype(jnp.int64)
    if k == 1:  # NaN is never found, but where it is first
        unknown = jnp.isnan(x)
        indices = jnp.argmax(jnp.where(unknown, -jnp.inf, x), -1, keepdims=True)
        indices = jnp.where(unknown[..., :1], 0, indices)
        return jnp.take_along_axis(x, indices, -1), indices.astype(jnp.int64)
    values, indices = jax.lax.top_k(x, min(k + 1, x.shape[-1]))
    is_odd = (values[..., 1:] == values[..., :-1]).any() | jnp.isnan(x).any()
    ctx.require(~is_odd, "it has equal or unknown numbers, which an unstable sort puts in order")
    return values[..., :k], indices[..., :k].astype(jnp.int64)


@lowers("argsort")
def argsort(x: jax.Array, *, axis: int, descending: bool, ctx: OpContext) -> Results:
    order = jnp.argsort(-x if descending else x, axis, stable=True)
    out = jnp.take_along_axis(x, order, axis)
    if follows_fluid("order_of_equals"):
        is_odd = jnp.isnan(x).any()
        if x.shape[axis] > 16:
            is_odd |= (jnp.diff(out, axis=axis) == 0).any()
        ctx.require(~is_odd, "it has equal or unknown numbers, which an unstable sort puts in order")
    return out, order.astype(jnp.int64)
