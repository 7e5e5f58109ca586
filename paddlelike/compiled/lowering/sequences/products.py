"""Products of matrices of which one has the rows of sequences."""

from __future__ import annotations

from typing import Any

from paddlelike.compiled.lowering.dense import matmul
from paddlelike.compiled.refusals import LoweringError
from paddlelike.compiled.table import lowers
from paddlelike.compiled.values import Packed


@lowers("matmul", across_rows=True)
def matmul_rows(x: Any, y: Any, *, transpose_X: bool, transpose_Y: bool, alpha: float) -> Any:  # noqa: N803
    attrs = {"transpose_X": transpose_X, "transpose_Y": transpose_Y, "alpha": alpha}
    if isinstance(x, Packed) and isinstance(y, Packed):
        return _multiply_alike(x, y, attrs)
    if isinstance(x, Packed) and y.ndim <= 2 < x.rows.ndim + (not transpose_X):
        return x.replace(matmul(x.rows, y, **attrs))  # each row, or the matrix in it, with the same matrix
    raise LoweringError("the rows of sequences are not those of the result")


def _multiply_alike(x: Packed, y: Packed, attrs: dict[str, Any]) -> Any:
    """Return products of the matrices in the rows of both; of two matrices, numbers for pairs of columns."""
    if x.rows.shape[0] != y.rows.shape[0]:
        raise LoweringError("X and Y have different counts of rows")
    if x.rows.ndim > 2 and y.rows.ndim == x.rows.ndim:
        return x.replace(matmul(x.rows, y.rows, **attrs))
    if x.rows.ndim == y.rows.ndim == 2 and attrs["transpose_X"] and not attrs["transpose_Y"]:
        return matmul(x.mask(), y.mask(), **attrs)
    raise LoweringError("the rows of sequences are not those of the result")
