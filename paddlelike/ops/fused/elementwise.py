"""fused_elemwise_activation: a sum or product, and an elementwise function, in one operator."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple

import numpy as np

from paddlelike.errors import ShapeError
from paddlelike.framework import follows_fluid
from paddlelike.framework.opdef import (
    Array,
    Attrs,
    Bool,
    Float,
    Gradient,
    GradOp,
    Int,
    OpDef,
    OpView,
    Spec,
    Strings,
    register,
)
from paddlelike.ops.kernels.broadcasting import align, broadcast_shape, sum_to
from paddlelike.ops.kernels.special import sigmoid


class _Unary(NamedTuple):
    """An elementwise function, and its slope in terms of the argument and of the value."""

    value: Callable[[Array, Any], Array]
    slope: Callable[[Array, Array, Any], Array]


_UNARY: Final = {
    "relu": _Unary(lambda x, _: np.maximum(x, 0), lambda x, y, _: (y > 0).astype(y.dtype)),
    "scale": _Unary(lambda x, s: x * s, lambda x, y, s: np.full_like(y, s)),
    "tanh": _Unary(lambda x, _: np.tanh(x), lambda x, y, _: 1 - y * y),
    "sigmoid": _Unary(lambda x, _: sigmoid(x), lambda x, y, _: y * (1 - y)),
}
_BINARY: Final = ("elementwise_add", "elementwise_mul")


class _Attrs(Attrs):
    axis: int = Int(-1)
    scale: float = Float(0.0)
    save_intermediate_out: bool = Bool(False)
    functor_list: list[str] = Strings()


class _Plan(NamedTuple):
    """The two functions, and whether the elementwise one is applied to Y first or to the result last."""

    unary: _Unary
    is_sum: bool
    on_y: bool


def _read_plan(functors: list[str]) -> _Plan:
    """Return the plan of two names, with or without ``_grad`` at the end; raise ShapeError for others."""
    names = [name.removesuffix("_grad").partition(",")[0] for name in functors]
    binary = [name for name in names if name in _BINARY]
    unary = [name for name in names if name in _UNARY]
    if len(names) != 2 or len(binary) != 1 or len(unary) != 1:
        raise ShapeError(
            f"fused_elemwise_activation: functor_list is {list(functors)}; expected one of "
            f"{', '.join(_BINARY)} and one of {', '.join(_UNARY)}"
        )
    return _Plan(_UNARY[unary[0]], binary[0] == "elementwise_add", names[0] in _BINARY)


@register
class FusedElemwiseActivation(OpDef):
    """``Out = b(X, u(Y))`` for ``functor_list`` [b, u], ``Out = u(b(X, Y))`` for [u, b].

    b is elementwise_add or elementwise_mul, with Y broadcast from dim ``axis`` on; u is relu, tanh, sigmoid
    or scale (by ``scale``). With ``save_intermediate_out``, IntermediateOut is the result of the inner
    function. Gradients are exact. In Paddle 1.8 the gradient of Y is inexact for [elementwise_mul, tanh], and
    for sigmoid without IntermediateOut.
    """

    type = "fused_elemwise_activation"
    by_row = True
    inputs = ("X", "Y")
    outputs = ("Out", "IntermediateOut")
    attrs = _Attrs.table()
    lod = {"Out": "X"}
    gradient = Gradient(
        "X", "Y", "Out", "IntermediateOut?", "Out@GRAD",
        outputs=("X@GRAD", "Y@GRAD", "IntermediateOut@GRAD?"),
    )  # fmt: skip

    @classmethod
    def make_grad(cls, op: OpView) -> list[GradOp]:
        (grad,) = super().make_grad(op)
        grad.attrs["functor_list"] = [f"{name}_grad" for name in op.attrs["functor_list"]]
        if not op.attrs["save_intermediate_out"]:
            grad.inputs["IntermediateOut"] = []
        grad.outputs["IntermediateOut@GRAD"] = []  # it has no readers
        return [grad]

    @classmethod
    def infer(cls, x: Spec, y: Spec, *, attrs: _Attrs) -> tuple[Spec, Spec | None]:
        plan = _read_plan(attrs.functor_list)
        out = Spec(broadcast_shape(cls.type, x.shape, y.shape, attrs.axis), x.dtype)
        if not attrs.save_intermediate_out:
            return out, None
        return out, Spec(y.shape, y.dtype) if plan.on_y else out

    @staticmethod
    def forward(x: Array, y: Array, *, attrs: _Attrs) -> tuple[Array, Array | None]:
        plan, scale = _read_plan(attrs.functor_list), x.dtype.type(attrs.scale)
        first = plan.unary.value(y, scale) if plan.on_y else y
        a, b = align(x, first, attrs.axis)
        joined = a + b if plan.is_sum else a * b
        kept = first if plan.on_y else joined
        out = joined if plan.on_y else plan.unary.value(joined, scale)
        return out, kept if attrs.save_intermediate_out else None

    @staticmethod
    def backward(
        x: Array, y: Array, out: Array, kept: Array | None, d_out: Array, *, attrs: _Attrs
    ) -> tuple[Array, Array, None]:
        plan, scale = _read_plan(attrs.functor_list), x.dtype.type(attrs.scale)
        first = plan.unary.value(y, scale) if plan.on_y else y
        d_joined = d_out
        a, b = align(x, first, attrs.axis)
        if not plan.on_y:
            d_joined = d_out * plan.unary.slope(a, out, scale)
        dx = sum_to(x.shape, d_joined if plan.is_sum else d_joined * b, attrs.axis)
        d_first = sum_to(y.shape, d_joined if plan.is_sum else d_joined * a, attrs.axis)
        if kept is None and follows_fluid("fused_activation_gradient"):
            first = y
        dy = d_first * plan.unary.slope(y, first, scale) if plan.on_y else d_first
        return dx, dy, None
