"""Lowerings of matrices: products and norms."""

from __future__ import annotations

import math
from typing import Any

import jax.numpy as jnp
from jax import Array

from paddlelike.compiled.lowerings import Results, lowers
from paddlelike.compiled.packing import LoweringError
from paddlelike.compiled.values import Packed, Value
from paddlelike.ops.linalg.matmul import find_matmul_shape
from paddlelike.ops.operands import check_same_dtype


@lowers("mul")
def mul(x: Array, y: Array, *, x_num_col_dims: int, y_num_col_dims: int) -> Array:
    check_same_dtype("mul", x, [y])
    a = x.reshape(math.prod(x.shape[:x_num_col_dims]), -1)
    b = y.reshape(math.prod(y.shape[:y_num_col_dims]), -1)
    return (a @ b).reshape(*x.shape[:x_num_col_dims], *y.shape[y_num_col_dims:])


@lowers("matmul")
def matmul(x: Array, y: Array, *, transpose_X: bool, transpose_Y: bool, alpha: float) -> Array:  # noqa: N803
    check_same_dtype("matmul", x, [y])
    a = x.reshape(1, -1) if x.ndim == 1 else x
    b = y.reshape(-1, 1) if y.ndim == 1 else y
    if a.ndim > 2 and b.ndim > 2 and a.ndim != b.ndim:  # the same matrices in other dims
        b = b.reshape(*a.shape[:-2], *b.shape[-2:])
    a = a.swapaxes(-1, -2) if transpose_X else a
    b = b.swapaxes(-1, -2) if transpose_Y else b
    out = a @ b
    if alpha != 1.0:
        out = out * jnp.asarray(alpha, out.dtype)
    return out.reshape(find_matmul_shape(x.shape, y.shape, transpose_X, transpose_Y))


@lowers("fc")
def fc(
    x: Array,
    w: Array,
    bias: Array | None,
    *,
    in_num_col_dims: int,
    activation_type: str,
    padding_weights: bool,
) -> Array:
    w = w[:-4, :-4] if padding_weights else w
    leading = x.shape[:in_num_col_dims]
    out = x.reshape(math.prod(leading), -1) @ w
    out = out if bias is None else out + bias.reshape(-1)
    if activation_type not in ("", "relu"):
        raise LoweringError(f"activation_type is {activation_type!r}")
    return (jnp.maximum(out, 0) if activation_type else out).reshape(*leading, w.shape[1])


@lowers("mul_grad_grad")
def mul_grad_grad(
    dd_x: Array | None,
    dd_y: Array | None,
    d_out: Array,
    x: Array,
    y: Array,
    *,
    x_num_col_dims: int,
    y_num_col_dims: int,
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


@lowers("bmm")
def bmm(x: Array, y: Array) -> Array:
    return jnp.matmul(x, y)


@lowers("matmul", across_rows=True)
def matmul_rows(
    x: Array | Packed,
    y: Array,
    *,
    transpose_X: bool,  # noqa: N803
    transpose_Y: bool,  # noqa: N803
    alpha: float,
) -> Value:
    attrs = {"transpose_X": transpose_X, "transpose_Y": transpose_Y, "alpha": alpha}
    if isinstance(x, Packed) and isinstance(y, Packed):
        return _multiply_alike(x, y, attrs)
    if isinstance(x, Packed) and y.ndim <= 2 < x.rows.ndim + (not transpose_X):
        return x.replace(matmul(x.rows, y, **attrs))  # each row, or the matrix in it, with the same matrix
    raise LoweringError("the result's rows differ from the rows of the sequences")


def _multiply_alike(x: Packed, y: Packed, attrs: dict[str, Any]) -> Value:
    """Multiply corresponding matrices of two batches; for rows of vectors, return ``X^T Y``."""
    if x.rows.shape[0] != y.rows.shape[0]:
        raise LoweringError("X and Y have different numbers of rows")
    if x.rows.ndim > 2 and y.rows.ndim == x.rows.ndim:
        return x.replace(matmul(x.rows, y.rows, **attrs))
    if x.rows.ndim == y.rows.ndim == 2 and attrs["transpose_X"] and not attrs["transpose_Y"]:
        return matmul(x.mask(), y.mask(), **attrs)
    raise LoweringError("the result's rows differ from the rows of the sequences")


@lowers("cos_sim", traces_gradient=True)
def cos_sim(x: Array, y: Array) -> Results:
    a, b = x.reshape(x.shape[0], -1), y.reshape(y.shape[0], -1)
    a_norm, b_norm = (jnp.sqrt(jnp.fmax((z * z).sum(1, keepdims=True), 1e-8)) for z in (a, b))
    return (a * b).sum(1, keepdims=True) / (a_norm * b_norm), a_norm, b_norm


@lowers("dist", traces_gradient=True)
def dist(x: Array, y: Array, *, p: float) -> Array:
    return jnp.linalg.norm((x - y).reshape(-1), p).reshape(1).astype(x.dtype)


@lowers("norm", traces_gradient=True)
def norm(x: Array, *, axis: int, epsilon: float) -> Results:
    length = jnp.sqrt(jnp.sum(x * x, axis, keepdims=True) + epsilon)
    return length, x / length
