"""tree_conv: convolutions over the nodes of trees."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from paddlelike.compiled.lowerings import lowers
from paddlelike.compiled.tracing.context import OpContext
from paddlelike.framework.quirks import follows_fluid


@lowers("tree_conv")
def tree_conv(
    nodes: jax.Array, edges: jax.Array, w: jax.Array, *, max_depth: int, ctx: OpContext
) -> jax.Array:
    weights = _weigh_places(edges, nodes.shape[1], max_depth, nodes.dtype, ctx)
    patches = jnp.einsum("bknm,bmd->bndk", weights, nodes)
    return jnp.einsum("bndk,dkof->bnof", patches, w)


@lowers("tree_conv_grad")
def tree_conv_grad(
    nodes: jax.Array, edges: jax.Array, w: jax.Array, d_out: jax.Array, *, max_depth: int
) -> tuple[jax.Array, jax.Array]:
    weights = _weigh_places(edges, nodes.shape[1], max_depth, nodes.dtype, None)
    patches = jnp.einsum("bknm,bmd->bndk", weights, nodes)
    dw = jnp.einsum("bndk,bnof->dkof", patches, d_out)
    if not follows_fluid("tree_conv_gradient"):
        return jnp.einsum("bknm,bnof,dkof->bmd", weights, d_out, w), dw
    # Patches (O, F, 3), but the filter is read as (D, 3, O, F): as Fluid does.
    above = d_out.reshape(*d_out.shape[:2], -1)
    mixed = jnp.einsum("bkrn,bro->bnok", weights, above).reshape(*nodes.shape[:2], -1)
    return mixed @ w.reshape(w.shape[0], -1).T, dw


def _weigh_places(
    edges: jax.Array, count: int, max_depth: int, dtype: np.dtype[Any], ctx: OpContext | None
) -> jax.Array:
    """Return the weights of node j in node i, for left, right and top: shape (B, 3, count, count)."""
    parent, child = edges[..., 0], edges[..., 1]
    used = jnp.cumprod((parent != 0) & (child != 0), axis=1).astype(bool)
    total = ((parent != 0) & (child != 0)).sum(1) + 1
    if ctx is not None:
        inside = (jnp.minimum(parent, child) > 0) & (jnp.maximum(parent, child) <= total[:, None])
        ctx.check((inside | ~used) & (total <= count)[:, None], "the edges make no tree of the nodes")
    same = (parent[:, :, None] == parent[:, None]) & used[:, None] & used[:, :, None]
    siblings = same.sum(-1)
    index = jnp.tril(same).sum(-1)  # from 1 on, in the order of the edges
    batch = jnp.arange(edges.shape[0])[:, None]
    at = jnp.where(used, child - 1, count)  # out of bounds: dropped

    def by_node(values: jax.Array) -> jax.Array:
        return jnp.ones((edges.shape[0], count), jnp.float64).at[batch, at].set(values, mode="drop")

    places = jnp.where(siblings == 1, 0.5, (index - 1) / jnp.maximum(siblings - 1, 1))
    place = by_node(places)
    below = (
        jnp.zeros((edges.shape[0], count, count))
        .at[batch, parent - 1, at]
        .set(jnp.where(used, 1.0, 0.0), mode="drop")
    )  # from a node to its children
    exists = (jnp.arange(count) < total[:, None])[:, :, None]
    reach = jnp.where(exists, jnp.eye(count), 0.0)
    result = jnp.zeros((edges.shape[0], 3, count, count))
    for depth in range(max_depth):
        top = (max_depth - depth) / max_depth
        side = jnp.full_like(place, 0.5) if depth == 0 else place
        left = (1 - top) * side
        parts = jnp.stack([left, (1 - top) * (1 - left), jnp.full_like(left, top)], 1)
        result = result + reach[:, None] * parts[:, :, None]
        reach = reach @ below
    return result.astype(dtype)
