"""Parts of matrices: trace, tril_triu."""

from __future__ import annotations

import numpy as np

from paddlelike.errors import ShapeError
from paddlelike.framework.opdef import REQUIRED, Array, Bool, Gradient, Int, OpDef, Spec, register
from paddlelike.ops.operands import normalize_axis


@register
class Trace(OpDef):
    """The sum of the diagonal ``offset`` of the matrices in the dims ``dim1`` and ``dim2``.

    The lower dim holds the rows, whichever way round they are given.
    """

    type = "trace"
    inputs = ("Input",)
    attrs = {"offset": Int(0), "dim1": Int(-2), "dim2": Int(-1)}
    gradient = Gradient("Input", "Out@GRAD")

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
        d_x = np.zeros_like(x)
        matrices = np.moveaxis(d_x, _in_order(x.ndim, dim1, dim2), (-2, -1))
        down, right = max(-offset, 0), max(offset, 0)
        rows, columns = matrices.shape[-2:]
        at = np.arange(max(min(rows - down, columns - right), 0))
        matrices[..., at + down, at + right] = d_out.reshape(*matrices.shape[:-2], 1)
        return d_x


def _in_order(rank: int, dim1: int, dim2: int) -> tuple[int, int]:
    a, b = dim1 % rank, dim2 % rank
    return min(a, b), max(a, b)


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
