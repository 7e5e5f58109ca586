"""Matrices: their parts, powers and decompositions."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Final, TypeVar, cast

import numpy as np

from paddlelike.errors import ShapeError
from paddlelike.framework.opdef import (
    REQUIRED,
    Array,
    Bool,
    Float,
    Gradient,
    Int,
    OpDef,
    Spec,
    String,
    register,
)
from paddlelike.framework.opdef.registry import LATER, LATEST
from paddlelike.ops.later import keep_attrs, register_kernel
from paddlelike.ops.operands import normalize_axis

Factors = TypeVar("Factors")


@register_kernel("matmul_v2", "X Y -> Out", {"trans_x": Bool(False), "trans_y": Bool(False)})
def _matmul(x: Array, y: Array, *, trans_x: bool, trans_y: bool) -> Array:
    """The matrix product as in numpy; optionally the last two dims are exchanged first."""
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
    """The sign of the determinant and the logarithm of its absolute value, stacked."""
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
    """The solution A of ``X A = Y``, where only one triangle of X is read."""
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


@register
class Trace(OpDef):
    """The sum of the diagonal ``offset`` of the matrices in the dims ``dim1`` and ``dim2``.

    The lower of the two dims holds the rows, even when it is ``dim2``.
    """

    type = "trace"
    inputs = ("Input",)
    attrs = {"offset": Int(0), "dim1": Int(-2), "dim2": Int(-1)}
    gradient = Gradient("Input", "Out@GRAD", traceable=False)

    @staticmethod
    def infer(x: Spec, *, dim1: int, dim2: int) -> Spec:
        gone = {normalize_axis("trace", dim, len(x.shape), name="a dim") for dim in (dim1, dim2)}
        if len(gone) < 2:
            raise ShapeError(f"trace: dim1 {dim1} and dim2 {dim2} are the same dim of {x.shape}")
        rest = tuple(dim for axis, dim in enumerate(x.shape) if axis not in gone)
        return Spec(rest or (1,), x.dtype)

    @staticmethod
    def forward(x: Array, *, offset: int, dim1: int, dim2: int) -> Array:
        rows, columns = _in_order(x.ndim, dim1, dim2)
        total = np.trace(x, offset, rows, columns, dtype=x.dtype)
        return np.reshape(total, total.shape or (1,))

    @staticmethod
    def backward(x: Array, d_out: Array, *, offset: int, dim1: int, dim2: int) -> Array:
        return _spread_trace(x, d_out, offset, _in_order(x.ndim, dim1, dim2))


def _in_order(rank: int, dim1: int, dim2: int) -> tuple[int, int]:
    a, b = dim1 % rank, dim2 % rank
    return min(a, b), max(a, b)


def _spread_trace(x: Array, d_out: Array, offset: int, dims: tuple[int, int]) -> Array:
    """Return the gradient of the sum of a diagonal: along this diagonal."""
    d_x = np.zeros_like(x)
    matrices = np.moveaxis(d_x, dims, (-2, -1))
    down, right = max(-offset, 0), max(offset, 0)
    rows, columns = matrices.shape[-2:]
    at = np.arange(max(min(rows - down, columns - right), 0))
    matrices[..., at + down, at + right] = d_out.reshape(*matrices.shape[:-2], 1)
    return d_x


def _register_trace(mark: str, order: Callable[[int, int, int], tuple[int, int]]) -> None:
    def trace(x: Array, *, offset: int, axis1: int, axis2: int) -> Array:
        """The sum of a diagonal."""
        return np.asarray(np.trace(x, offset, *order(x.ndim, axis1, axis2), dtype=x.dtype))

    def spread(x: Array, d_out: Array, *, offset: int, axis1: int, axis2: int) -> Array:
        return _spread_trace(x, d_out, offset, order(x.ndim, axis1, axis2))

    add = functools.partial(
        register_kernel, attrs={"offset": Int(0), "axis1": Int(0), "axis2": Int(1)}, changed=True, mark=mark
    )
    add("trace", "Input -> Out", make_grad=classmethod(keep_attrs))(trace)
    add("trace_grad", "Input Out@GRAD -> Input@GRAD", traceable=False)(spread)


_register_trace(LATER, _in_order)
_register_trace(LATEST, lambda rank, axis1, axis2: (axis1, axis2))


@register
class TrilTriu(OpDef):
    """The lower (``lower``) or upper triangle of the matrices in the last two dims, else 0."""

    type = "tril_triu"
    attrs = {"diagonal": Int(0), "lower": Bool(REQUIRED)}
    lod = "X"
    gradient = Gradient("Out@GRAD")

    @staticmethod
    def infer(x: Spec) -> Spec:
        if len(x.shape) < 2:
            raise ShapeError(f"tril_triu: X has shape {x.shape}, expected 2 dims or more")
        return Spec(x.shape, x.dtype)

    @staticmethod
    def forward(x: Array, *, diagonal: int, lower: bool) -> Array:
        return np.tril(x, diagonal) if lower else np.triu(x, diagonal)

    backward = forward


def _factorize(function: Callable[..., Factors], x: Array, *args: object, **options: object) -> Factors:
    """Return ``function(x, ...)``, with NaN for matrices that are not finite, for which LAPACK may never
    return.
    """
    finite = np.asarray(np.isfinite(x).all((-2, -1)))
    results = function(np.where(finite[..., None, None], x, 0), *args, **options)

    def mark(result: Array) -> Array:
        return np.where(finite.reshape(finite.shape + (1,) * (result.ndim - finite.ndim)), result, np.nan)

    return cast(
        "Factors", tuple(map(mark, results)) if isinstance(results, tuple) else mark(np.asarray(results))
    )


def _factorize_symmetric(function: Callable[..., Factors], x: Array, triangle: str) -> Factors:
    """Return ``function(x, triangle)``; the other triangle is not read, and may hold NaN."""
    if triangle == "U":
        return _factorize(function, np.triu(x), "U")
    return _factorize(function, np.tril(x), "L")


def _find_singular_values(x: Array, hermitian: bool) -> Array:
    if hermitian:
        return np.abs(_factorize_symmetric(np.linalg.eigvalsh, x, "L"))
    return np.asarray(_factorize(np.linalg.svd, x, compute_uv=False))


@register_kernel("svd", "X -> U S VH", {"full_matrices": Bool(False)})
def _svd(x: Array, *, full_matrices: bool) -> tuple[Array, Array, Array]:
    """The singular values of matrices in falling order, and their vectors."""
    u, s, vh = _factorize(np.linalg.svd, x, full_matrices=full_matrices)
    return u, s, vh


@register_kernel("qr", "X -> Q? R", {"mode": String("reduced")})
def _qr(x: Array, *, mode: str) -> tuple[Array | None, Array]:
    """An orthogonal and a triangular factor; in mode "r" only the triangular one."""
    if mode == "r":
        return None, np.asarray(np.linalg.qr(x, "r"))
    q, r = np.linalg.qr(x, "complete" if mode == "complete" else "reduced")
    return q, r


@register_kernel("eigh", "X -> Eigenvalues Eigenvectors", {"UPLO": String("L")})
def _eigh(x: Array, *, UPLO: str) -> tuple[Array, Array]:  # noqa: N803  (Paddle's name)
    """The eigenvalues of symmetric matrices in rising order, and their vectors."""
    values, vectors = _factorize_symmetric(np.linalg.eigh, x, UPLO)
    return values, vectors


@register_kernel("eigvalsh", "X -> Eigenvalues Eigenvectors?", {"UPLO": String("L"), "is_test": Bool(False)})
def _eigvalsh(x: Array, *, UPLO: str) -> tuple[Array, None]:  # noqa: N803
    """The eigenvalues of symmetric matrices in rising order."""
    return _factorize_symmetric(np.linalg.eigvalsh, x, UPLO), None


@register_kernel("lu", "X -> Out Pivots Infos?", {"pivots": Bool(True)})
def _lu(x: Array) -> tuple[Array, Array, Array]:
    """Both triangular factors in one matrix, and for each row the row that it was exchanged with, from 1
    on.
    """
    out = np.array(x)
    steps = min(x.shape[-2:])
    pivots = np.empty((*x.shape[:-2], steps), np.int32)
    infos = np.zeros(x.shape[:-2], np.int32)
    for place in np.ndindex(x.shape[:-2]):
        matrix = out[place]
        for step in range(steps):
            best = step + int(np.abs(matrix[step:, step]).argmax())
            pivots[(*place, step)] = best + 1
            matrix[[step, best]] = matrix[[best, step]]
            if matrix[step, step] == 0:
                infos[place] = infos[place] or step + 1
                continue
            matrix[step + 1 :, step] /= matrix[step, step]
            matrix[step + 1 :, step + 1 :] -= np.outer(matrix[step + 1 :, step], matrix[step, step + 1 :])
    return out, pivots, infos


@register_kernel(
    "lu_unpack", "X Pivots -> Pmat L U", {"unpack_ludata": Bool(True), "unpack_pivots": Bool(True)}
)
def _lu_unpack(x: Array, pivots: Array) -> tuple[Array, Array, Array]:
    """The permutation and the two triangular factors whose product is the factorized matrix."""
    steps = min(x.shape[-2:])
    rows = np.broadcast_to(np.arange(x.shape[-2]), x.shape[:-1]).copy()
    for place in np.ndindex(pivots.shape[:-1]):
        for step, pivot in enumerate(pivots[place]):
            rows[place][[step, pivot - 1]] = rows[place][[pivot - 1, step]]
    permutation = np.swapaxes(np.eye(x.shape[-2], dtype=x.dtype)[rows], -1, -2)
    lower = np.tril(x[..., :steps], -1) + np.eye(x.shape[-2], steps, dtype=x.dtype)
    return np.ascontiguousarray(permutation), lower, np.triu(x[..., :steps, :])


@register_kernel("lu_solve", "b lu pivots -> out", {"trans": String("N")}, since="3")
def _lu_solve(b: Array, lu: Array, pivots: Array, *, trans: str) -> Array:
    """The solution of ``A Out = b`` by the factors of A; with trans "T" or "C", for A transposed."""
    permutation, lower, upper = _lu_unpack(lu, pivots)
    matrix = permutation @ lower @ upper
    return np.linalg.solve(matrix if trans == "N" else np.swapaxes(matrix, -1, -2).conj(), b)


@register_kernel("eig", "X -> Eigenvalues Eigenvectors")
def _eig(x: Array) -> tuple[Array, Array]:
    """The complex eigenvalues of square matrices, and their vectors."""
    kind = np.result_type(x, np.complex64)
    values, vectors = _factorize(np.linalg.eig, x)
    return values.astype(kind), vectors.astype(kind)


@register_kernel("eigvals", "X -> Out")
def _eigvals(x: Array) -> Array:
    """The complex eigenvalues of square matrices."""
    return _factorize(np.linalg.eigvals, x).astype(np.result_type(x, np.complex64))


@register_kernel(
    "lstsq",
    "X Y -> Solution Residuals Rank SingularValues",
    {"rcond": Float(0.0), "driver": String("gels")},
)
def _lstsq(x: Array, y: Array, *, rcond: float, driver: str) -> tuple[Array, Array, Array, Array]:
    """The smallest A that minimizes ``|X A - Y|``, and the other results of the driver of LAPACK."""
    singular = _find_singular_values(x, hermitian=False)
    rank = (singular > rcond * singular.max(-1, keepdims=True)).sum(-1).astype(np.int32)
    solution = _factorize(np.linalg.pinv, x, rcond) @ y
    residuals = np.zeros(0, x.dtype)
    if driver != "gelsy" and x.shape[-2] > x.shape[-1] and (rank == x.shape[-1]).all():
        residuals = ((x @ solution - y) ** 2).sum(-2)
    empty = np.zeros(0, np.int32)
    return (
        solution.astype(x.dtype),
        residuals,
        empty if driver == "gels" else rank,
        singular if driver in ("gelss", "gelsd") else empty.astype(x.dtype),
    )


@register_kernel("cholesky_solve", "X Y -> Out", {"upper": Bool(False)})
def _cholesky_solve(x: Array, y: Array, *, upper: bool) -> Array:
    """The solution of ``A Out = X``, where Y is the triangular factor of A."""
    factor = np.triu(y) if upper else np.tril(y)  # the rest of Y does not matter
    other = np.swapaxes(factor, -1, -2)
    return np.asarray(np.linalg.solve(other @ factor if upper else factor @ other, x))


_RANK_ATTRS: Final = {"tol": Float(0.0), "use_default_tol": Bool(True), "hermitian": Bool(False)}


@register_kernel("matrix_rank", "X TolTensor? -> Out", _RANK_ATTRS)
def _matrix_rank(
    x: Array, tolerance: Array | None, *, tol: float, use_default_tol: bool, hermitian: bool
) -> Array:
    """The number of singular values above the tolerance, by default the largest value times size times
    epsilon.
    """
    values = _find_singular_values(x, hermitian)
    limit = np.asarray(tol, x.dtype) if tolerance is None else tolerance
    if use_default_tol:
        limit = values.max(-1) * max(x.shape[-2:]) * np.finfo(x.dtype).eps
    return np.asarray((values > np.asarray(limit)[..., None]).sum(-1), np.int32)


@register_kernel("matrix_rank", "X TolTensor? -> Out", _RANK_ATTRS, changed=True, mark=LATEST)
def _matrix_rank_as_int64(
    x: Array, tolerance: Array | None, *, tol: float, use_default_tol: bool, hermitian: bool
) -> Array:
    """The result of ``_matrix_rank`` as int64."""
    found = _matrix_rank(x, tolerance, tol=tol, use_default_tol=use_default_tol, hermitian=hermitian)
    return found.astype(np.int64)


@register_kernel("matrix_rank_atol_rtol", "x atol rtol? -> out", {"hermitian": Bool(False)}, since="3")
def _matrix_rank_relative(x: Array, atol: Array, rtol: Array | None, *, hermitian: bool) -> Array:
    """The number of singular values above ``atol`` and above ``rtol`` times the largest one."""
    values = _find_singular_values(x, hermitian)
    relative = max(x.shape[-2:]) * np.finfo(x.dtype).eps * (atol <= 0) if rtol is None else rtol
    limit = np.maximum(atol, relative * values.max(-1))
    return np.asarray((values > limit[..., None]).sum(-1), np.int64)
