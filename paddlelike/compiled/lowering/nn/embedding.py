"""Rows of tables by ids, and sparse gradients."""

from __future__ import annotations

import jax.numpy as jnp
from jax import Array

from paddlelike.compiled.lowerings import lowers
from paddlelike.compiled.packing import LoweringError
from paddlelike.compiled.tracing.context import OpContext
from paddlelike.compiled.values import Packed, SparseRows, Value, get_rows


@lowers("merge_selected_rows")
def merge_selected_rows(x: Array | SparseRows) -> SparseRows:
    """Add up the rows of each id; unused rows get ids beyond the height, and the value zero."""
    if not isinstance(x, SparseRows):
        raise LoweringError("X is not a sparse gradient")
    return x.merge()


@lowers("get_tensor_from_selected_rows")
def get_tensor_from_selected_rows(x: Array | SparseRows) -> Packed:
    if not isinstance(x, SparseRows):
        raise LoweringError("X is not a sparse gradient")
    live = (x.rows < x.height).sum().astype(jnp.int32)
    return Packed(x.values, (), x.values.shape[0], shown=False, live=live)


@lowers("lookup_table")
def lookup_table(w: Array, ids: Array, *, padding_idx: int, ctx: OpContext) -> Array:
    return lookup_table_v2(w, ids.reshape(ids.shape[:-1]), padding_idx=padding_idx, ctx=ctx)


@lowers("lookup_table_v2")
def lookup_table_v2(w: Array | SparseRows, ids: Array, *, padding_idx: int, ctx: OpContext) -> Array:
    if isinstance(w, SparseRows):
        raise LoweringError("the table holds only some rows")
    height = w.shape[0]
    is_padding = ids == padding_idx if padding_idx != -1 else jnp.zeros(ids.shape, bool)
    ctx.check_below(ids, height, "Ids hold a value", is_padding)
    rows = jnp.take(w, ids, axis=0, mode="clip")
    return rows if padding_idx == -1 else jnp.where(is_padding[..., None], 0, rows).astype(w.dtype)


@lowers("lookup_table_grad", "lookup_table_v2_grad", sequences=True)
def lookup_table_grad(
    d_out: Array | Packed,
    w: Array,
    ids: Array | Packed,
    *,
    is_sparse: bool,
    padding_idx: int,
    ctx: OpContext,
) -> Value | SparseRows:
    values = get_rows(d_out)
    if isinstance(ids, Packed):  # unused rows have no gradient; their ids are that of the first row
        values = ids.mask(values)
        used, rows = ids.used, ids.rows.reshape(-1)
        ids = jnp.where(jnp.repeat(used, rows.size // used.size), rows, rows[0])
    rows = ids.reshape(-1)
    values = values.reshape(rows.shape[0], -1)
    if is_sparse:  # Paddle's sparse gradient keeps the rows of padding, the dense one does not
        return SparseRows(rows, values, w.shape[0])
    if padding_idx != -1:
        values = jnp.where((rows == padding_idx)[:, None], 0, values)
    found = SparseRows(rows, values, w.shape[0])
    return found if found.has_few_rows and id(ctx.op) in ctx.plan.made_as_rows else found.to_dense()
