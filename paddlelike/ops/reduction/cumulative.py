"""Sums, products and extremes up to each element. The gradient of cumsum is a cumsum."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from paddlelike.framework.opdef import (
    Array,
    Attrs,
    Bool,
    GradOp,
    Int,
    OpDef,
    OpView,
    Spec,
    derive_grad_op,
    register,
)
from paddlelike.ops.later import INTEGERS, register_kernel
from paddlelike.ops.operands import normalize_axis


class CumulationAttrs(Attrs):
    """Attributes of sums up to each element."""

    axis: int = Int(-1)
    flatten: bool = Bool(False)
    exclusive: bool = Bool(False)
    reverse: bool = Bool(False)


@register_kernel("cumsum", "X -> Out", CumulationAttrs.table(), changed=True)
def _cumsum(x: Array, *, attrs: CumulationAttrs) -> Array:
    """The sum of the elements up to each one along an axis, or of all elements in one row."""
    return _cumulate(x, attrs, lambda rows, axis: np.cumsum(rows, axis, dtype=x.dtype), 0)


@register_kernel("logcumsumexp", "X -> Out", CumulationAttrs.table())
def _logcumsumexp(x: Array, *, attrs: CumulationAttrs) -> Array:
    """The logarithm of the sum of e^X up to each element."""
    return _cumulate(x, attrs, lambda rows, axis: np.logaddexp.accumulate(rows, axis), -np.inf)


def _cumulate(x: Array, attrs: CumulationAttrs, function: Any, nothing: float) -> Array:
    rows, axis = (x.reshape(-1), 0) if attrs.flatten or not x.ndim else (x, attrs.axis)
    rows = np.flip(rows, axis) if attrs.reverse else rows
    out = function(rows, axis)
    if attrs.exclusive:
        out = np.roll(out, 1, axis)
        np.moveaxis(out, axis, 0)[0] = nothing
    return np.flip(out, axis) if attrs.reverse else out


@register_kernel("cumprod", "X -> Out", {"dim": Int(-1)})
def _cumprod(x: Array, *, dim: int) -> Array:
    """The product of the elements up to each one along a dim."""
    return np.cumprod(x, dim, dtype=x.dtype)


def _make_running(function: np.ufunc) -> Callable[..., tuple[Array, Array]]:
    def run(x: Array, *, axis: int, dtype: int) -> tuple[Array, Array]:
        out = function.accumulate(x, axis)
        places = np.arange(x.shape[axis]).reshape([-1 if i == axis % x.ndim else 1 for i in range(x.ndim)])
        last = np.maximum.accumulate(np.where(x == out, places, 0), axis)
        return out, last.astype(INTEGERS[dtype])

    return run


for _name, _function in (("cummax", np.maximum), ("cummin", np.minimum)):
    register_kernel(_name, "x -> out indices", {"axis": Int(-1), "dtype": Int(3)})(_make_running(_function))


@register
class Cumsum(OpDef):
    """``Out[i]`` is the sum of X up to i along ``axis``, without X[i] itself if ``exclusive``.

    With ``reverse`` it adds from the end.
    """

    type = "cumsum"
    attrs = {"axis": Int(-1), "exclusive": Bool(False), "reverse": Bool(False)}
    lod = "X"

    @staticmethod
    def infer(x: Spec, *, axis: int) -> Spec:
        normalize_axis("cumsum", axis, len(x.shape))
        return Spec(x.shape, x.dtype)

    @staticmethod
    def forward(x: Array, *, axis: int, exclusive: bool, reverse: bool) -> Array:
        out = np.empty_like(x)
        source, total = (np.moveaxis(array, axis, 0) for array in (x, out))  # views
        if reverse:
            source, total = source[::-1], total[::-1]
        if exclusive:
            total[:1] = 0
            source, total = source[:-1], total[1:]
        np.add.accumulate(source, axis=0, out=total)
        return out

    @classmethod
    def make_grad(cls, op: OpView) -> list[GradOp]:
        attrs = {name: op.attrs[name] for name in ("axis", "exclusive")}
        return [derive_grad_op(op, "cumsum", "X", 0, **attrs, reverse=not op.attrs["reverse"])]
