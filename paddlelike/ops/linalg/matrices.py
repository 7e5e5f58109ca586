"""Products and decompositions of matrices."""

from __future__ import annotations

import numpy as np

from paddlelike.framework.opdef import Array, Bool, Float, Int, String
from paddlelike.ops.later import register_kernel


@register_kernel("matmul_v2", "X Y -> Out", {"trans_x": Bool(False), "trans_y": Bool(False)})
def _matmul(x: Array, y: Array, *, trans_x: bool, trans_y: bool) -> Array:
    """The matrix product as numpy's; the last two dims are exchanged first where asked for."""
    x = np.swapaxes(x, -1, -2) if trans_x and x.ndim > 1 else x
    return np.asarray(np.matmul(x, np.swapaxes(y, -1, -2) if trans_y and y.ndim > 1 else y))


@register_kernel("mv", "X Vec -> Out")
def _mv(x: Array, vector: Array) -> Array:
    """A matrix times a vector."""
    return np.asarray(x @ vector)


@register_kernel("dot", "X Y -> Out", changed=True)
def _dot(x: Array, y: Array) -> Array:
    """The sum of products along the last dim, which is dropped."""
    return np.asarray((x * y).sum(-1))


@register_kernel("multi_dot", "X* -> Out")
def _multi_dot(arrays: list[Array]) -> Array:
    """The product of several matrices."""
    return np.asarray(np.linalg.multi_dot(arrays))


@register_kernel("einsum", "Operands* -> Out InnerCache*? XShape*?", {"equation": String("")})
def _einsum(operands: list[Array], *, equation: str) -> tuple[Array, None, None]:
    """A sum of products in Einstein's notation."""
    return np.asarray(np.einsum(equation, *operands, optimize=True)), None, None


@register_kernel("trace", "Input -> Out", {"offset": Int(0), "axis1": Int(0), "axis2": Int(1)}, changed=True)
def _trace(x: Array, *, offset: int, axis1: int, axis2: int) -> Array:
    """The sum of a diagonal."""
    return np.asarray(np.trace(x, offset, axis1, axis2))


@register_kernel("inverse", "Input -> Output")
def _inverse(x: Array) -> Array:
    """The inverse of square matrices."""
    return np.linalg.inv(x)


@register_kernel("determinant", "Input -> Out")
def _determinant(x: Array) -> Array:
    """The determinant of square matrices."""
    return np.asarray(np.linalg.det(x))


@register_kernel("slogdeterminant", "Input -> Out")
def _slogdeterminant(x: Array) -> Array:
    """The sign of the determinant and the logarithm of its size, stacked."""
    return np.stack(np.linalg.slogdet(x))


@register_kernel("cholesky", "X -> Out", {"upper": Bool(False)})
def _cholesky(x: Array, *, upper: bool) -> Array:
    """The triangular factor of positive definite matrices."""
    factor = np.linalg.cholesky(x)
    return np.ascontiguousarray(np.swapaxes(factor, -1, -2)) if upper else factor


@register_kernel("solve", "X Y -> Out")
def _solve(x: Array, y: Array) -> Array:
    """The solution A of ``X A = Y``."""
    return np.linalg.solve(x, y[..., None])[..., 0] if y.ndim == 1 else np.linalg.solve(x, y)


@register_kernel(
    "triangular_solve",
    "X Y -> Out",
    {"upper": Bool(True), "transpose": Bool(False), "unitriangular": Bool(False)},
)
def _triangular_solve(x: Array, y: Array, *, upper: bool, transpose: bool, unitriangular: bool) -> Array:
    """The solution A of ``X A = Y`` where only a triangle of X counts."""
    triangle = np.triu(x) if upper else np.tril(x)
    if unitriangular:
        triangle[..., range(x.shape[-1]), range(x.shape[-1])] = 1
    return np.linalg.solve(np.swapaxes(triangle, -1, -2) if transpose else triangle, y)


@register_kernel("renorm", "X -> Out", {"p": Float(2.0), "axis": Int(0), "max_norm": Float(1.0)})
def _renorm(x: Array, *, p: float, axis: int, max_norm: float) -> Array:
    """X with slices along an axis scaled down to a p-norm of at most ``max_norm``."""
    others = tuple(i for i in range(x.ndim) if i != axis % x.ndim)
    norms = (np.abs(x) ** p).sum(others, keepdims=True) ** (1 / p)
    return np.where(norms > max_norm, x * (max_norm / (norms + 1e-7)), x).astype(x.dtype)


@register_kernel("matrix_power", "X -> Out", {"n": Int(1)})
def _matrix_power(x: Array, *, n: int) -> Array:
    """The n-th power of square matrices."""
    return np.linalg.matrix_power(x, n)
