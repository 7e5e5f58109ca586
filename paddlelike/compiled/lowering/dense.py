"""Products of matrices, embeddings, softmax and what picks elements along an axis."""

from __future__ import annotations

import functools
import math
from typing import Any

import jax
import jax.numpy as jnp

from paddlelike.compiled.arrays import TensorArray, add_arrays
from paddlelike.compiled.refusals import LoweringError
from paddlelike.compiled.table import lowers
from paddlelike.compiled.tracing.context import OpContext
from paddlelike.compiled.values import Packed, SparseRows
from paddlelike.framework.opdef import GRAD
from paddlelike.ops.linalg.matmul import find_matmul_shape
from paddlelike.ops.operands import check_same_dtype

Results = tuple[Any, ...]


@lowers("mul")
def mul(x: Any, y: Any, *, x_num_col_dims: int, y_num_col_dims: int) -> Any:
    check_same_dtype("mul", x, [y])
    a = x.reshape(math.prod(x.shape[:x_num_col_dims]), -1)
    b = y.reshape(math.prod(y.shape[:y_num_col_dims]), -1)
    return (a @ b).reshape(*x.shape[:x_num_col_dims], *y.shape[y_num_col_dims:])


@lowers("matmul")
def matmul(x: Any, y: Any, *, transpose_X: bool, transpose_Y: bool, alpha: float) -> Any:  # noqa: N803
    check_same_dtype("matmul", x, [y])
    a = x.reshape(1, -1) if x.ndim == 1 else x
    b = y.reshape(-1, 1) if y.ndim == 1 else y
    if a.ndim > 2 and b.ndim > 2 and a.ndim != b.ndim:  # as many matrices, counted in another way
        b = b.reshape(*a.shape[:-2], *b.shape[-2:])
    a = a.swapaxes(-1, -2) if transpose_X else a
    b = b.swapaxes(-1, -2) if transpose_Y else b
    out = a @ b
    if alpha != 1.0:
        out = out * jnp.asarray(alpha, out.dtype)
    return out.reshape(find_matmul_shape(x.shape, y.shape, transpose_X, transpose_Y))


@lowers("fc")
def fc(
    x: Any, w: Any, bias: Any, *, in_num_col_dims: int, activation_type: str, padding_weights: bool
) -> Any:
    w = w[:-4, :-4] if padding_weights else w
    leading = x.shape[:in_num_col_dims]
    out = x.reshape(math.prod(leading), -1) @ w
    out = out if bias is None else out + bias.reshape(-1)
    if activation_type not in ("", "relu"):
        raise LoweringError(f"activation_type is {activation_type!r}")
    return (jnp.maximum(out, 0) if activation_type else out).reshape(*leading, w.shape[1])


@lowers("mul_grad_grad")
def mul_grad_grad(
    dd_x: Any, dd_y: Any, d_out: Any, x: Any, y: Any, *, x_num_col_dims: int, y_num_col_dims: int
) -> Results:
    rows, inner = math.prod(x.shape[:x_num_col_dims]), math.prod(y.shape[:y_num_col_dims])
    flat = d_out.reshape(rows, -1)
    parts = []
    if dd_x is not None:
        parts.append(dd_x.reshape(rows, inner) @ y.reshape(inner, -1))
    if dd_y is not None:
        parts.append(x.reshape(rows, inner) @ dd_y.reshape(inner, -1))
    dd_out = sum(parts).reshape(d_out.shape) if parts else None
    d_x = None if dd_y is None else (flat @ dd_y.reshape(inner, -1).T).reshape(x.shape)
    d_y = None if dd_x is None else (dd_x.reshape(rows, inner).T @ flat).reshape(y.shape)
    return dd_out, d_x, d_y


@lowers("merge_selected_rows")
def merge_selected_rows(x: Any) -> SparseRows:
    """Rows beyond the height, of the value zero, are unused."""
    if not isinstance(x, SparseRows):
        raise LoweringError("X is no sparse gradient")
    return x.merge()


@lowers("get_tensor_from_selected_rows")
def get_tensor_from_selected_rows(x: Any) -> Packed:
    if not isinstance(x, SparseRows):
        raise LoweringError("X is no sparse gradient")
    live = (x.rows < x.height).sum().astype(jnp.int32)
    return Packed(x.values, (), x.values.shape[0], shown=False, live=live)


@lowers("lookup_table")
def lookup_table(w: Any, ids: Any, *, padding_idx: int, ctx: Any) -> Any:
    return lookup_table_v2(w, ids.reshape(ids.shape[:-1]), padding_idx=padding_idx, ctx=ctx)


@lowers("lookup_table_v2")
def lookup_table_v2(w: Any, ids: Any, *, padding_idx: int, ctx: Any) -> Any:
    if isinstance(w, SparseRows):
        raise LoweringError("a table that holds some rows only")
    height = w.shape[0]
    is_padding = ids == padding_idx if padding_idx != -1 else jnp.zeros(ids.shape, bool)
    ctx.check(((ids >= 0) & (ids < height)) | is_padding, f"Ids hold a value outside of 0 to {height - 1}")
    rows = jnp.take(w, ids, axis=0, mode="clip")
    return rows if padding_idx == -1 else jnp.where(is_padding[..., None], 0, rows).astype(w.dtype)


@lowers("lookup_table_grad", "lookup_table_v2_grad", sequences=True)
def lookup_table_grad(d_out: Any, w: Any, ids: Any, *, is_sparse: bool, padding_idx: int, ctx: Any) -> Any:
    values = d_out.rows if isinstance(d_out, Packed) else d_out
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


@lowers("bmm")
def bmm(x: Any, y: Any) -> Any:
    return jnp.matmul(x, y)


@lowers("softmax")
def softmax(x: Any, *, axis: int) -> Any:
    shifted = jnp.maximum(x - x.max(axis, keepdims=True), -64).astype(x.dtype)
    raised = jnp.exp(shifted)
    return raised / raised.sum(axis, keepdims=True)


@lowers("top_k")
def top_k(x: Any, k_tensor: Any, *, k: int) -> Results:
    if k_tensor is not None:
        raise LoweringError("K is a variable")
    values, indices = jax.lax.top_k(x, k)
    return values, indices.astype(jnp.int64)


@lowers("argsort")
def argsort(x: Any, *, axis: int, descending: bool) -> Results:
    order = jnp.argsort(-x if descending else x, axis, stable=True)
    return jnp.take_along_axis(x, order, axis), order.astype(jnp.int64)


@lowers("cos_sim")
def cos_sim(x: Any, y: Any) -> Results:
    a, b = x.reshape(x.shape[0], -1), y.reshape(y.shape[0], -1)
    a_norm, b_norm = (jnp.sqrt(jnp.maximum((z * z).sum(1, keepdims=True), 1e-8)) for z in (a, b))
    return (a * b).sum(1, keepdims=True) / (a_norm * b_norm), a_norm, b_norm


@lowers("maxout")
def maxout(x: Any, *, groups: int, axis: int) -> Any:
    axis = axis % x.ndim
    shape = (*x.shape[:axis], x.shape[axis] // groups, groups, *x.shape[axis + 1 :])
    return x.reshape(shape).max(axis + 1)


@lowers("sum", sequences=True)
def add_up(xs: list[Any], *, ctx: OpContext) -> Any:
    if all(isinstance(x, SparseRows) for x in xs):
        rows, values = (jnp.concatenate([getattr(x, name) for x in xs]) for name in ("rows", "values"))
        return SparseRows(rows, values, xs[0].height)
    if any(isinstance(x, TensorArray) for x in xs):
        return functools.reduce(add_arrays, xs)
    packed = [x for x in xs if isinstance(x, Packed)]
    plain = [_match_rows(x, packed[0], ctx) for x in xs] if packed else xs
    total: Any = None
    for x in plain:
        if isinstance(x, SparseRows):
            total = x.to_dense() if total is None else total.at[x.rows].add(x.values)
        else:
            total = x if total is None else total + x
    return packed[0].replace(total) if packed else total


def _match_rows(x: Any, like: Packed, ctx: OpContext) -> Any:
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
