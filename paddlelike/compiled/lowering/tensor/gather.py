"""Elements read or written at places."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from paddlelike.compiled.lowerings import Results, lowers
from paddlelike.compiled.packing import LoweringError
from paddlelike.compiled.tracing.context import OpContext
from paddlelike.compiled.values import Packed, Value


def take_rows(index: jax.Array, height: int, ctx: OpContext) -> jax.Array:
    """Flatten an index, and check that its numbers are below ``height``."""
    flat = index.reshape(-1)
    ctx.check((flat >= 0) & (flat < height), f"an index is outside of 0 to {height - 1}")
    return flat


@lowers("gather", sequences=True)
def gather(x: jax.Array | Packed, index: jax.Array | Packed, *, ctx: OpContext) -> Value:
    rows = x.rows if isinstance(x, Packed) else x
    height = x.total if isinstance(x, Packed) else x.shape[0]
    flat = (index.rows if isinstance(index, Packed) else index).reshape(-1)
    ctx.check((flat >= 0) & (flat < height), "an index is outside of the rows of X")
    out = jnp.take(rows, flat, axis=0, mode="clip")
    return index.replace(out, shown=False) if isinstance(index, Packed) else out


@lowers("gather_grad", sequences=True)
def gather_grad(
    d_out: jax.Array | Packed, x: jax.Array | Packed, index: jax.Array | Packed, *, overwrite: bool
) -> Value:
    values = d_out.mask() if isinstance(d_out, Packed) else d_out
    rows = (index.rows if isinstance(index, Packed) else index).reshape(-1)
    if values.shape[0] != rows.shape[0]:
        raise LoweringError("Out@GRAD and Index have different counts of rows")
    whole = x.rows if isinstance(x, Packed) else x
    zeros = jnp.zeros(whole.shape, values.dtype)
    if overwrite:  # only the last of repeated rows counts
        order = jnp.arange(rows.shape[0])
        if isinstance(index, Packed):  # the unused ones repeat the first one
            order = jnp.where(index.used, order, -1)
        last = jnp.full(whole.shape[0], -1).at[rows].max(order)
        kept = last[rows] == jnp.arange(rows.shape[0])
        values = jnp.where(kept.reshape(-1, *[1] * (whole.ndim - 1)), values, 0)
    found = zeros.at[rows].add(values)
    return x.replace(found, shown=False) if isinstance(x, Packed) else found


def _places(x: jax.Array, index: jax.Array, ctx: OpContext) -> tuple[jax.Array, ...]:
    dims = jnp.asarray(x.shape[: index.shape[-1]])
    ctx.check((index >= 0) & (index < dims), f"Index points outside of an array of shape {list(x.shape)}")
    return tuple(jnp.moveaxis(index, -1, 0))


@lowers("gather_nd", sequences=True)
def gather_nd(x: jax.Array | Packed, index: jax.Array | Packed, *, ctx: OpContext) -> Value:
    if isinstance(x, Packed):
        raise LoweringError("its lowering takes no sequences")
    rows = index.rows if isinstance(index, Packed) else index
    out = x.at[_places(x, rows, ctx)].get(mode="clip")
    return index.replace(out, shown=False) if isinstance(index, Packed) else out


@lowers("scatter")
def scatter(
    x: jax.Array, ids: jax.Array, updates: jax.Array, *, overwrite: bool, ctx: OpContext
) -> jax.Array:
    rows = take_rows(ids, x.shape[0], ctx)
    if not overwrite:
        return x.at[rows].set(0).at[rows].add(updates)
    order = jnp.arange(rows.shape[0])
    last = jnp.full(x.shape[0], -1).at[rows].max(order)
    shape = (-1, *[1] * (x.ndim - 1))
    return jnp.where((last >= 0).reshape(shape), updates[jnp.maximum(last, 0)], x)


@lowers("scatter_grad")
def scatter_grad(d_out: jax.Array, ids: jax.Array, updates: jax.Array) -> Results:
    return d_out, jnp.take(d_out, ids.reshape(-1), axis=0, mode="clip")


@lowers("scatter_nd_add", without={"X": "Out@GRAD"})
def scatter_nd_add(x: jax.Array, index: jax.Array, updates: jax.Array, *, ctx: OpContext) -> jax.Array:
    return x.at[_places(x, index, ctx)].add(updates)


@lowers("index_select")
def index_select(x: jax.Array, index: jax.Array, *, dim: int, ctx: OpContext) -> jax.Array:
    return jnp.take(x, take_rows(index, x.shape[dim], ctx), axis=dim, mode="clip")


@lowers("index_sample")
def index_sample(x: jax.Array, index: jax.Array, *, ctx: OpContext) -> jax.Array:
    take_rows(index, x.shape[1], ctx)
    return jnp.take_along_axis(x, index, 1, mode="clip")


@lowers("range", "linspace")
def refuse_values(start: jax.Array, end: jax.Array, step: jax.Array) -> jax.Array:
    """Raise LoweringError unless a value is a constant, for which numpy's kernel computes the result."""
    raise LoweringError("values say how many numbers there are")
