"""Sums of several tensors, sparse gradients or arrays of tensors."""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp

from paddlelike.compiled.arrays import TensorArray, add_arrays
from paddlelike.compiled.lowerings import lowers
from paddlelike.compiled.packing import LoweringError
from paddlelike.compiled.tracing.context import OpContext
from paddlelike.compiled.values import Packed, SparseRows, Value
from paddlelike.framework.opdef import GRAD


@lowers("sum", sequences=True)
def add_up(xs: list[Value], *, ctx: OpContext) -> Value | SparseRows:
    sparse = [x for x in xs if isinstance(x, SparseRows)]
    if len(sparse) == len(xs):
        rows, values = (jnp.concatenate([getattr(x, name) for x in sparse]) for name in ("rows", "values"))
        return SparseRows(rows, values, sparse[0].height)
    if any(isinstance(x, TensorArray) for x in xs):
        return functools.reduce(add_arrays, xs)
    packed = [x for x in xs if isinstance(x, Packed)]
    plain = [_match_rows(x, packed[0], ctx) for x in xs] if packed else xs
    total: jax.Array | None = None
    for x in plain:
        if isinstance(x, SparseRows):
            total = x.to_dense() if total is None else total.at[x.rows].add(x.values)
        else:
            total = x if total is None else total + x
    return packed[0].replace(total) if packed else total


def _match_rows(x: jax.Array | Packed | SparseRows, like: Packed, ctx: OpContext) -> jax.Array:
    """Return the rows of an operand of a sum of sequences, with as many unused ones as ``like`` has.

    Numpy runs the operator, or refuses it, where these are not as many rows as the sequences have.
    """
    if isinstance(x, SparseRows):
        raise LoweringError("it adds sparse rows to sequences")
    rows, size = (x.rows if isinstance(x, Packed) else x), like.rows.shape[0]
    total = x.total if isinstance(x, Packed) else x.shape[0]
    if total is not like.total and not (isinstance(x, Packed) and _have_one_lod(x, like)):
        ctx.require(total == like.total, "an input has another count of rows")
    missing = max(size - rows.shape[0], 0)
    is_gradient = GRAD in ctx.op.output("Out")[0]
    unused = jnp.broadcast_to(
        jnp.zeros_like(rows[:1]) if is_gradient else rows[:1], (missing, *rows.shape[1:])
    )
    return jnp.concatenate([rows, unused])[:size] if rows.shape[0] != size else rows


def _have_one_lod(x: Packed, y: Packed) -> bool:
    if x.offsets and y.offsets:
        return x.offsets[-1] is y.offsets[-1]
    return not x.offsets and not y.offsets and x.live is y.live
