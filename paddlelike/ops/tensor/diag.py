"""Diagonals and triangles: eye, diag, diag_embed."""

from __future__ import annotations

import numpy as np

from paddlelike.core import VarType, numpy_dtype
from paddlelike.errors import ShapeError
from paddlelike.framework.opdef import Array, Attrs, Float, Int, Long, OpDef, Spec, register
from paddlelike.ops.later import INTEGERS, register_kernel
from paddlelike.ops.operands import normalize_axis


@register
class Eye(OpDef):
    """``Out[i, j] = 1 if i == j else 0``; without ``num_columns`` (-1) it is square."""

    type = "eye"
    inputs = ()
    attrs = {"dtype": Int(5), "num_rows": Long(), "num_columns": Long(-1)}

    @staticmethod
    def infer(*, num_rows: int, num_columns: int, dtype: int) -> Spec:
        if num_rows < 0 or num_columns < -1:
            raise ShapeError(f"eye: {num_rows} rows and {num_columns} columns, expected 0 or more")
        return Spec((num_rows, num_rows if num_columns == -1 else num_columns), VarType(dtype))

    @staticmethod
    def forward(*, num_rows: int, num_columns: int, dtype: int) -> Array:
        return np.eye(num_rows, None if num_columns == -1 else num_columns, dtype=numpy_dtype(dtype))


@register
class Diag(OpDef):
    """``Out[i, i] = Diagonal[i]``, zero elsewhere."""

    type = "diag"
    until = "1"
    inputs = ("Diagonal",)

    @staticmethod
    def infer(diagonal: Spec) -> Spec:
        if len(diagonal.shape) != 1:
            raise ShapeError(f"diag: Diagonal has shape {diagonal.shape}, expected one dim")
        return Spec(diagonal.shape * 2, diagonal.dtype)

    @staticmethod
    def forward(diagonal: Array) -> Array:
        return np.diag(diagonal)


@register
class DiagEmbed(OpDef):
    """``Out``: the last dim of Input as the diagonal, moved by ``offset``, of dims ``dim1, dim2``."""

    type = "diag_embed"
    inputs = ("Input",)
    attrs = {"offset": Int(0), "dim1": Int(-2), "dim2": Int(-1)}

    @staticmethod
    def infer(x: Spec, *, offset: int, dim1: int, dim2: int) -> Spec:
        low, high = sorted(_find_plane(len(x.shape), dim1, dim2))
        shape = list(x.shape[:-1])
        side = -1 if x.shape[-1] < 0 else x.shape[-1] + abs(offset)
        shape.insert(low, side)
        shape.insert(high, side)
        return Spec(tuple(shape), x.dtype)

    @staticmethod
    def forward(x: Array, *, offset: int, dim1: int, dim2: int) -> Array:
        plane = _find_plane(x.ndim, dim1, dim2)
        size = x.shape[-1]
        out = np.zeros((*x.shape[:-1], size + abs(offset), size + abs(offset)), x.dtype)
        rows = np.arange(size) + max(-offset, 0)
        out[..., rows, rows + offset] = x
        return np.ascontiguousarray(np.moveaxis(out, (-2, -1), plane))


def _find_plane(rank: int, dim1: int, dim2: int) -> tuple[int, int]:
    """Return the two dims of the result that hold the diagonal, first the dim of the rows."""
    first = normalize_axis("diag_embed", dim1, rank + 1, name="dim1")
    second = normalize_axis("diag_embed", dim2, rank + 1, name="dim2")
    if first == second:
        raise ShapeError(f"diag_embed: dim1 and dim2 are both {first}, expected two different dims")
    return first, second


@register_kernel("diag_v2", "X -> Out", {"offset": Int(0), "padding_value": Float(0.0)})
def _diag(x: Array, *, offset: int, padding_value: float) -> Array:
    """The diagonal of a matrix, or a matrix with X as its diagonal."""
    if x.ndim > 1:
        return np.diagonal(x, offset).copy()
    out = np.diag(x, offset)
    return out if not padding_value else np.where(np.diag(np.ones(len(x), bool), offset), out, padding_value)


@register_kernel("diagonal", "Input -> Out", {"offset": Int(0), "axis1": Int(0), "axis2": Int(1)})
def _diagonal(x: Array, *, offset: int, axis1: int, axis2: int) -> Array:
    """A diagonal of two dims, as the last dim."""
    return np.diagonal(x, offset, axis1, axis2).copy()


class TriangleAttrs(Attrs):
    """Attributes of the indices of a triangle."""

    rows: int = Int(0)
    cols: int = Int(0)
    row: int = Int(0)  # of triu_indices
    col: int = Int(0)
    offset: int = Int(0)
    dtype: int = Int(3)


@register_kernel("tril_indices", " -> out", TriangleAttrs.table())
def _tril_indices(*, attrs: TriangleAttrs) -> Array:
    """The rows and columns of the lower triangle of a matrix."""
    return np.stack(np.tril_indices(attrs.rows, attrs.offset, attrs.cols)).astype(INTEGERS[attrs.dtype])


@register_kernel("triu_indices", " -> out", TriangleAttrs.table())
def _triu_indices(*, attrs: TriangleAttrs) -> Array:
    """The rows and columns of the upper triangle of a matrix."""
    return np.stack(np.triu_indices(attrs.row, attrs.offset, attrs.col)).astype(INTEGERS[attrs.dtype])
