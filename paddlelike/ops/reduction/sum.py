"""The sum of several values: dense tensors, SelectedRows, tensor arrays.

Its gradient is one ``scale`` by 1 for each input.
"""

from __future__ import annotations

import numpy as np

from paddlelike.core.dtypes import VarType
from paddlelike.core.rows import add_rows
from paddlelike.core.tensor import LoDTensor, LoDTensorArray, SelectedRows
from paddlelike.errors import ShapeError
from paddlelike.framework.opdef import Array, GradOp, OpDef, OpView, Spec, register
from paddlelike.ops.elementwise.unary import MKLDNN, grad_by
from paddlelike.ops.operands import same_or_unknown

__all__ = ["Sum"]

Value = Array | SelectedRows | LoDTensorArray


@register
class Sum(OpDef):
    """``Out`` is the sum of all X, which have one shape.

    SelectedRows among dense tensors are added to their rows. SelectedRows alone give SelectedRows
    with sorted rows, each once. Tensor arrays are added up element by element.
    """

    type = "sum"
    inputs = ("X*",)
    attrs = MKLDNN
    lod = "X"

    @staticmethod
    def infer(xs: list[Spec]) -> Spec:
        first = xs[0]
        for x in xs[1:]:
            same = len(x.shape) == len(first.shape) and all(map(same_or_unknown, x.shape, first.shape))
            if not same:
                raise ShapeError(
                    f"sum: X has the shapes {', '.join(str(x.shape) for x in xs)}; they must be equal"
                )
        kinds = {x.kind for x in xs}
        kind = VarType.LOD_TENSOR if VarType.LOD_TENSOR in kinds else first.kind
        return Spec(first.shape, first.dtype, kind=kind)

    @staticmethod
    def forward(xs: list[Value]) -> Value:
        dense = [x for x in xs if isinstance(x, np.ndarray)]
        sparse = [x for x in xs if isinstance(x, SelectedRows)]
        if dense:
            return _dense_sum(dense, sparse)
        arrays = [x for x in xs if isinstance(x, LoDTensorArray)]
        return _array_sum(arrays) if arrays else _rows_sum(sparse)

    @classmethod
    def make_grad(cls, op: OpView) -> list[GradOp]:
        return [grad_by(op, "scale", "X", index, scale=1.0) for index in range(len(op.input("X")))]


def _dense_sum(dense: list[Array], sparse: list[SelectedRows]) -> Array:
    total = dense[0] + dense[1] if len(dense) > 1 else np.array(dense[0], order="C")
    for x in dense[2:]:
        total += x
    for rows in sparse:
        assert rows.array is not None
        add_rows(total, rows.row_array, rows.array)
    return total


def _rows_sum(xs: list[SelectedRows]) -> SelectedRows:
    rows = np.concatenate([x.row_array for x in xs])
    values = np.concatenate([x.array for x in xs if x.array is not None])
    return SelectedRows(rows, xs[0].height(), values).merged()


def _array_sum(arrays: list[LoDTensorArray]) -> LoDTensorArray:
    """Sums of the elements with the same number; an array that has none there adds nothing."""
    out = LoDTensorArray()
    for index in range(max(map(len, arrays))):
        here = [array[index] for array in arrays if index < len(array)]
        full = [tensor for tensor in here if tensor.array is not None]
        values = [tensor.array for tensor in full if tensor.array is not None]
        out.append(LoDTensor(_dense_sum(values, []), full[0].lod()) if full else LoDTensor())
    return out
