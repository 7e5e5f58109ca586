"""Decompositions of matrices, and solvers and ranks based on them."""

from __future__ import annotations

import numpy as np

from paddlelike.framework.opdef import Array, Bool, Float, String
from paddlelike.ops.later import register_kernel


@register_kernel("svd", "X -> U S VH", {"full_matrices": Bool(False)})
def _svd(x: Array, *, full_matrices: bool) -> tuple[Array, Array, Array]:
    """The singular values of matrices, falling, and their vectors."""
    u, s, vh = np.linalg.svd(x, full_matrices=full_matrices)
    return u, s, vh


@register_kernel("qr", "X -> Q? R", {"mode": String("reduced")})
def _qr(x: Array, *, mode: str) -> tuple[Array | None, Array]:
    """An orthogonal and a triangular factor; only the latter in mode "r"."""
    if mode == "r":
        return None, np.asarray(np.linalg.qr(x, "r"))
    q, r = np.linalg.qr(x, "complete" if mode == "complete" else "reduced")
    return q, r


@register_kernel("eigh", "X -> Eigenvalues Eigenvectors", {"UPLO": String("L")})
def _eigh(x: Array, *, UPLO: str) -> tuple[Array, Array]:  # noqa: N803  (Paddle's name)
    """The eigenvalues of symmetric matrices, rising, and their vectors."""
    values, vectors = np.linalg.eigh(x, "U" if UPLO == "U" else "L")
    return values, vectors


@register_kernel("eigvalsh", "X -> Eigenvalues Eigenvectors?", {"UPLO": String("L"), "is_test": Bool(False)})
def _eigvalsh(x: Array, *, UPLO: str) -> tuple[Array, None]:  # noqa: N803
    """The eigenvalues of symmetric matrices, rising."""
    return np.linalg.eigvalsh(x, "U" if UPLO == "U" else "L"), None


@register_kernel("lu", "X -> Out Pivots Infos?", {"pivots": Bool(True)})
def _lu(x: Array) -> tuple[Array, Array, Array]:
    """Both triangular factors in one matrix, the row that each row was exchanged with, from 1 on."""
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


@register_kernel("cholesky_solve", "X Y -> Out", {"upper": Bool(False)})
def _cholesky_solve(x: Array, y: Array, *, upper: bool) -> Array:
    """The solution of ``A Out = X``, where Y is the triangular factor of A."""
    factor = np.triu(y) if upper else np.tril(y)  # the rest of Y does not matter
    other = np.swapaxes(factor, -1, -2)
    return np.asarray(np.linalg.solve(other @ factor if upper else factor @ other, x))


@register_kernel(
    "matrix_rank",
    "X TolTensor? -> Out",
    {"tol": Float(0.0), "use_default_tol": Bool(True), "hermitian": Bool(False)},
)
def _matrix_rank(
    x: Array, tolerance: Array | None, *, tol: float, use_default_tol: bool, hermitian: bool
) -> Array:
    """How many singular values are above the tolerance; by default the largest times size times epsilon."""
    values = np.abs(np.linalg.eigvalsh(x)) if hermitian else np.linalg.svd(x, compute_uv=False)
    limit = np.asarray(tol, x.dtype) if tolerance is None else tolerance
    if use_default_tol:
        limit = values.max(-1) * max(x.shape[-2:]) * np.finfo(x.dtype).eps
    return np.asarray((values > np.asarray(limit)[..., None]).sum(-1), np.int32)
