"""Operators that stack arrays along a new dim, or split them: stack, unstack, unbind."""

from __future__ import annotations

from typing import Any

import numpy as np

from paddlelike.errors import ShapeError
from paddlelike.framework.opdef import (
    REQUIRED,
    Array,
    Gradient,
    GradOp,
    Int,
    OpDef,
    OpView,
    Spec,
    grad_names,
    register,
    spares_first,
)
from paddlelike.ops.operands import can_be_equal, check_same_dtype, normalize_axis


@register
class Stack(OpDef):
    """``Y``: the arrays of X along a new dim ``axis``."""

    type = "stack"
    by_row = spares_first("axis")
    inputs = ("X*",)
    outputs = ("Y",)
    attrs = {"axis": Int(0)}
    lod = "X"
    views = True  # the gradients are parts of Y's
    gradient = Gradient("Y@GRAD")

    @staticmethod
    def infer(x: list[Spec], *, axis: int) -> Spec:
        shape = list(x[0].shape)
        for index, other in enumerate(x):
            if len(other.shape) != len(shape) or not all(map(can_be_equal, shape, other.shape)):
                raise ShapeError(
                    f"stack: X[{index}] has shape {other.shape}, X[0] {x[0].shape}; they must be the same"
                )
        shape.insert(normalize_axis("stack", axis, len(shape) + 1), len(x))
        return Spec(tuple(shape), x[0].dtype)

    @staticmethod
    def forward(x: list[Array], *, axis: int) -> Array:
        check_same_dtype("stack", x[0], x[1:], "its inputs")
        shape = x[0].shape
        axis %= len(shape) + 1
        if axis == len(shape) or any(other.shape != shape for other in x):
            return np.stack(x, axis)
        joined = np.concatenate(x, axis)  # without a view of each array, which takes longer than its copy
        return joined.reshape(*shape[:axis], len(x), *shape[axis:])

    @staticmethod
    def backward(d_y: Array, *, axis: int) -> list[Array]:
        return _split_layers(d_y, axis)


@register
class Unstack(OpDef):
    """``Y``: the ``num`` slices of X along ``axis``, without that dim."""

    type = "unstack"
    outputs = ("Y*",)
    attrs = {"axis": Int(0), "num": Int(REQUIRED)}
    views = True
    gradient = Gradient("Y@GRAD", outputs=("X@GRAD",))

    @staticmethod
    def infer(x: Spec, *, axis: int, num: int) -> list[Spec]:
        axis = normalize_axis("unstack", axis, len(x.shape))
        if not can_be_equal(x.shape[axis], num):
            raise ShapeError(f"unstack: num is {num}, but dim {axis} of X {x.shape} is {x.shape[axis]}")
        return [_drop_dim(x, axis)] * num

    @staticmethod
    def forward(x: Array, *, axis: int) -> list[Array]:
        return _split_layers(x, axis)

    @staticmethod
    def backward(d_y: list[Array], *, axis: int) -> Array:
        return np.stack(d_y, axis)


@register
class Unbind(OpDef):
    """``Out``: the slices of X along ``axis``, without that dim."""

    type = "unbind"
    outputs = ("Out*",)
    attrs = {"axis": Int(0)}
    lod = "X"
    views = True

    @classmethod
    def make_grad(cls, op: OpView) -> list[GradOp]:
        d_out = grad_names(op.output("Out"))
        d_x = grad_names(op.input("X"))
        return [GradOp("stack", {"X": d_out}, {"Y": d_x}, {"axis": op.attrs["axis"]})]

    @staticmethod
    def infer(x: Spec, *, axis: int) -> list[Spec]:
        axis = normalize_axis("unbind", axis, len(x.shape))
        if x.shape[axis] < 0:
            raise ShapeError(f"unbind: dim {axis} of X {x.shape} must be known when the program is built")
        return [_drop_dim(x, axis)] * x.shape[axis]

    @staticmethod
    def forward(x: Array, *, axis: int) -> list[Array]:
        return _split_layers(x, axis)


def _split_layers(x: Array, axis: int) -> list[Array]:
    """Return views of ``x`` at every index of ``axis``, without that dim."""
    front: tuple[Any, ...] = (slice(None),) * (axis % x.ndim)
    return [x[(*front, index)] for index in range(x.shape[axis])]


def _drop_dim(x: Spec, axis: int) -> Spec:
    return Spec((*x.shape[:axis], *x.shape[axis + 1 :]), x.dtype)
