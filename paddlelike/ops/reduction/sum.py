"""The sum of several values: dense tensors, SelectedRows, tensor arrays.

Its gradient is one ``scale`` by 1 for each input.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from paddlelike.core.dtypes import VarType
from paddlelike.core.tensor import SelectedRows
from paddlelike.errors import ShapeError
from paddlelike.framework.opdef import GradOp, Kernel, OpDef, OpView, Spec, derive_grad_op, register
from paddlelike.ops.kernels.addition import Value, add_over, add_values
from paddlelike.ops.operands import MKLDNN, can_be_equal


@register
class Sum(OpDef):
    """``Out`` is the sum of all X, which have one shape.

    SelectedRows among dense tensors are added to their rows. SelectedRows alone give SelectedRows
    with sorted rows, each once. Tensor arrays are added up element by element.
    """

    type = "sum"
    inputs = ("X*",)
    attrs = MKLDNN
    any_order = True
    lod = "X"

    @staticmethod
    def infer(xs: list[Spec]) -> Spec:
        first = xs[0]
        for x in xs[1:]:
            same = len(x.shape) == len(first.shape) and all(map(can_be_equal, x.shape, first.shape))
            if not same:
                raise ShapeError(
                    f"sum: X has the shapes {', '.join(str(x.shape) for x in xs)}; they must be equal"
                )
        kinds = {x.kind for x in xs}
        kind = VarType.LOD_TENSOR if VarType.LOD_TENSOR in kinds else first.kind
        return Spec(first.shape, first.dtype, kind=kind)

    @staticmethod
    def forward(xs: list[Value]) -> Value:
        return add_values(xs)

    @classmethod
    def make_overwriting_kernel(cls, keywords: Mapping[str, Any]) -> Kernel | None:
        return add_over

    @classmethod
    def make_rows_kernel(cls, keywords: Mapping[str, Any]) -> Kernel | None:
        return _add_rows_of_dense

    @classmethod
    def make_grad(cls, op: OpView) -> list[GradOp]:
        return [derive_grad_op(op, "scale", "X", index, scale=1.0) for index in range(len(op.input("X")))]


def _add_rows_of_dense(xs: list[Value]) -> Value:
    """Sum arrays in order, some of them given as their nonzero rows."""
    if any(isinstance(x, np.ndarray) for x in xs):  # rows would be added after all dense ones
        xs = [x.to_dense() if isinstance(x, SelectedRows) else x for x in xs]
    return add_values(xs)
