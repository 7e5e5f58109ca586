"""tdm_child: children of the nodes of a tree."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from paddlelike.compiled.lowerings import lowers
from paddlelike.compiled.tracing.context import OpContext
from paddlelike.compiled.values import Packed, Value
from paddlelike.core.dtypes import numpy_dtype


@lowers("tdm_child", sequences=True)
def tdm_child(x: jax.Array | Packed, tree: jax.Array, *, dtype: int, ctx: OpContext) -> tuple[Value, Value]:
    if isinstance(x, Packed):
        found = tdm_child(x.rows, tree, dtype=dtype, ctx=ctx)
        return x.replace(found[0]), x.replace(found[1])
    ctx.check((x >= 0) & (x < tree.shape[0]), f"a node is outside of 0 to {tree.shape[0] - 1}")
    children = jnp.take(tree[:, 3:], x, axis=0, mode="clip")
    nothing = (x == 0) | (jnp.take(tree[:, 3], x, mode="clip") == 0)
    children = jnp.where(nothing[..., None], 0, children)
    ctx.check((children >= 0) & (children < tree.shape[0]), "a child is not a node")
    leaf = (jnp.take(tree[:, 0], children, mode="clip") != 0) & (children != 0)
    return children.astype(numpy_dtype(dtype)), leaf.astype(numpy_dtype(dtype))
