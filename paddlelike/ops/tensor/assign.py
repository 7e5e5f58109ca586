"""The operator assign, which copies a value of any kind."""

from __future__ import annotations

import numpy as np

from paddlelike.core import LoDTensor, LoDTensorArray, SelectedRows
from paddlelike.framework.opdef import Array, GradOp, OpDef, OpView, Spec, grad_names, register

Value = Array | SelectedRows | LoDTensorArray


@register
class Assign(OpDef):
    """``Out``: a copy of X, which may be a tensor, SelectedRows or a tensor array; without X, nothing."""

    type = "assign"
    keeps_dtype = True
    by_row = True
    inputs = ("X?",)
    lod = "X"

    @classmethod
    def make_grad(cls, op: OpView) -> list[GradOp]:
        d_out = grad_names(op.output("Out"))
        d_x = grad_names(op.input("X"))
        return [GradOp("assign", {"X": d_out}, {"Out": d_x}, {}, own_attrs=True)]

    @staticmethod
    def infer(x: Spec | None) -> Spec | None:
        return None if x is None else Spec(x.shape, x.dtype, x.lod_level, x.kind)

    @staticmethod
    def forward(x: Value | None) -> Value | None:
        if isinstance(x, SelectedRows):
            value = x.held_array
            assert value is not None
            return SelectedRows(x.row_array.copy(), x.height(), value.copy())
        if isinstance(x, LoDTensorArray):
            return LoDTensorArray(
                LoDTensor(None if one.held_array is None else one.held_array.copy(), one.lod()) for one in x
            )
        return None if x is None else np.array(x)
