"""Products with their biases and activations: fc, fusion_repeated_fc_relu, fusion_squared_mat_sub."""

from __future__ import annotations

import numpy as np

from paddlelike.errors import ShapeError
from paddlelike.framework.opdef import Array, Float, OpDef, Spec, register
from paddlelike.ops.kernels.linalg import multiply
from paddlelike.ops.operands import can_be_equal


@register
class FusionRepeatedFcRelu(OpDef):
    """``Out``: X ``(N, M)`` through layers ``relu(x W + Bias)``; ReluOut: the results of all but the last."""

    type = "fusion_repeated_fc_relu"
    by_row = True
    inputs = ("X", "W*", "Bias*")
    outputs = ("ReluOut*", "Out")
    lod = {"Out": "X"}

    @staticmethod
    def infer(x: Spec, w: list[Spec], bias: list[Spec]) -> tuple[None, Spec]:
        if not w or len(w) != len(bias):
            raise ShapeError(f"fusion_repeated_fc_relu: there are {len(w)} W and {len(bias)} Bias")
        columns = x.shape[1]
        for i, each in enumerate(w):
            if len(each.shape) != 2 or not can_be_equal(columns, each.shape[0]):
                raise ShapeError(
                    f"fusion_repeated_fc_relu: W[{i}] has shape {each.shape}; its input has {columns} columns"
                )
            columns = each.shape[1]
        return None, Spec((x.shape[0], columns), x.dtype)

    @staticmethod
    def forward(x: Array, w: list[Array], bias: list[Array]) -> tuple[list[Array], Array]:
        outs = []
        for weight, added in zip(w, bias, strict=True):
            x = multiply(x, weight)
            x += added.reshape(-1)
            np.maximum(x, 0, out=x)
            outs.append(x)
        return outs[:-1], outs[-1]


@register
class FusionSquaredMatSub(OpDef):
    """``Out = scalar ((X Y)^2 - X^2 Y^2)``, the interactions of factorization machines.

    X is ``(M, K)``, Y ``(K, N)``. Squares are elementwise; SquaredX, SquaredY and SquaredXY hold them.
    """

    type = "fusion_squared_mat_sub"
    by_row = True
    inputs = ("X", "Y")
    outputs = ("SquaredX", "SquaredY", "SquaredXY", "Out")
    attrs = {"scalar": Float(1.0)}

    @staticmethod
    def infer(x: Spec, y: Spec) -> tuple[Spec, Spec, Spec, Spec]:
        if len(x.shape) != 2 or len(y.shape) != 2 or not can_be_equal(x.shape[1], y.shape[0]):
            raise ShapeError(
                f"fusion_squared_mat_sub: X has shape {x.shape} and Y {y.shape}; no product fits"
            )
        out = Spec((x.shape[0], y.shape[1]), x.dtype)
        return Spec(x.shape, x.dtype), Spec(y.shape, y.dtype), out, out

    @staticmethod
    def forward(x: Array, y: Array, *, scalar: float) -> tuple[Array, Array, Array, Array]:
        squared_x, squared_y, product = x * x, y * y, x @ y
        product *= product
        return squared_x, squared_y, product, (product - squared_x @ squared_y) * x.dtype.type(scalar)
