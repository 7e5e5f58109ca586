"""Vectors spread over the dims of a common grid: meshgrid."""

from __future__ import annotations

import numpy as np

from paddlelike.errors import ShapeError
from paddlelike.framework.opdef import Array, Gradient, OpDef, Spec, register

__all__ = ["Meshgrid"]


@register
class Meshgrid(OpDef):
    """``Out[k][i0, i1, ...] = X[k][ik]``; each Out has the lengths of all X as its dims."""

    type = "meshgrid"
    inputs = ("X*",)
    outputs = ("Out*",)
    views = True
    gradient = Gradient("X", "Out@GRAD", copies_attrs=False)

    @staticmethod
    def infer(x: list[Spec]) -> list[Spec]:
        wrong = [one.shape for one in x if len(one.shape) != 1]
        if wrong:
            raise ShapeError(f"meshgrid: X holds a variable of shape {wrong[0]}, expected vectors")
        shape = tuple(one.shape[0] for one in x)
        return [Spec(shape, one.dtype) for one in x]

    @staticmethod
    def forward(x: list[Array]) -> list[Array]:
        return list(np.meshgrid(*x, indexing="ij"))

    @staticmethod
    def backward(x: list[Array], d_out: list[Array | None]) -> list[Array]:
        dims = range(len(x))
        return [
            np.zeros_like(one) if d is None else d.sum(axis=tuple(i for i in dims if i != k))
            for k, (one, d) in enumerate(zip(x, d_out, strict=True))
        ]
