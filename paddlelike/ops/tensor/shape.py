"""The shape of a tensor, and counters: shape, increment."""

from __future__ import annotations

import math

import numpy as np

from paddlelike.core.dtypes import VarType
from paddlelike.errors import ShapeError
from paddlelike.framework.opdef import Array, Float, GradOp, OpDef, OpView, Spec, register

__all__ = ["Increment", "Shape"]


@register
class Shape(OpDef):
    """``Out``: the dims of Input, int32."""

    type = "shape"
    inputs = ("Input",)
    any_order = True

    @staticmethod
    def infer(x: Spec) -> Spec:
        return Spec((len(x.shape),), VarType.INT32)

    @staticmethod
    def forward(x: Array) -> Array:
        return np.array(x.shape, np.int32)


@register
class Increment(OpDef):
    """``Out = X + step`` for one number; mostly a counter, where Out is X.

    In place of a gradient the step is taken back: counters of loops run backwards with them.
    """

    type = "increment"
    lod = "X"
    attrs = {"step": Float(1.0)}

    @staticmethod
    def infer(x: Spec) -> Spec:
        if math.prod(x.shape) != 1:
            raise ShapeError(f"increment: X has shape {x.shape}, expected one element")
        return Spec(x.shape, x.dtype)

    @staticmethod
    def forward(x: Array, *, step: float) -> Array:
        return x + x.dtype.type(step)

    @classmethod
    def make_grad(cls, op: OpView) -> list[GradOp]:
        back = {"step": -op.attrs["step"]}
        return [GradOp("increment", {"X": op.output("Out")}, {"Out": op.input("X")}, back, True)]
