"""Reductions over dims, and sums up to each element. Without dims to reduce, all are reduced."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from paddlelike.core.dtypes import VarType, numpy_dtype
from paddlelike.framework.opdef import Array, Attrs, Bool, Float, Int, Ints
from paddlelike.ops.paddle2.registration import INTEGERS, register_kernel
from paddlelike.ops.reduction.reduce import ReduceAttrs

_REDUCTIONS: Final[dict[str, Callable[..., Any]]] = {
    "reduce_sum": lambda x, **where: np.sum(x, dtype=x.dtype, **where),
    "reduce_mean": np.mean,
    "reduce_max": np.max,
    "reduce_min": np.min,
    "reduce_prod": lambda x, **where: np.prod(x, dtype=x.dtype, **where),
    "reduce_all": np.all,
    "reduce_any": np.any,
    "frobenius_norm": lambda x, **where: np.sqrt(np.sum(x * x, **where)),
}


def _make_reduction(function: Callable[..., Any]) -> Callable[..., Array]:
    def reduce(x: Array, *, attrs: ReduceAttrs) -> Array:
        axes = None if attrs.reduce_all or not attrs.dim else tuple(attrs.dim)
        if attrs.out_dtype >= 0:
            x = x.astype(numpy_dtype(VarType(attrs.out_dtype)), copy=False)
        return np.asarray(function(x, axis=axes, keepdims=attrs.keep_dim))

    return reduce


for _name, _function in _REDUCTIONS.items():
    register_kernel(_name, "X -> Out", ReduceAttrs.table(), changed=True)(_make_reduction(_function))
register_kernel("reduce_amax", "X -> Out", ReduceAttrs.table())(_make_reduction(np.max))
register_kernel("reduce_amin", "X -> Out", ReduceAttrs.table())(_make_reduction(np.min))


@register_kernel(
    "logsumexp", "X -> Out", {"axis": Ints([0]), "keepdim": Bool(False), "reduce_all": Bool(False)}
)
def _logsumexp(x: Array, *, axis: list[int], keepdim: bool, reduce_all: bool) -> Array:
    """The logarithm of the sum of e^X over some dims."""
    axes = None if reduce_all or not axis else tuple(axis)
    top = x.max(axes, keepdims=True)
    out = np.log(np.exp(x - top).sum(axes, keepdims=True)) + top
    return out if keepdim else np.asarray(out.squeeze(axes))


class NormAttrs(Attrs):
    """Attributes of the later p_norm."""

    porder: float = Float(2.0)
    axis: int = Int(-1)
    epsilon: float = Float(1e-12)
    keepdim: bool = Bool(False)
    asvector: bool = Bool(False)


@register_kernel("p_norm", "X -> Out", NormAttrs.table(), changed=True)
def _p_norm(x: Array, *, attrs: NormAttrs) -> Array:
    """The p-norm along an axis; ``asvector``: of all elements."""
    axis = 0 if attrs.asvector else attrs.axis
    rows = x.reshape(-1) if attrs.asvector else x
    out = np.asarray(np.linalg.norm(rows, attrs.porder, axis), x.dtype)
    if not attrs.keepdim:
        return out
    return out.reshape((1,) * x.ndim) if attrs.asvector else np.expand_dims(out, axis)


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


def _make_running(function: Any) -> Any:
    def run(x: Array, *, axis: int, dtype: int) -> tuple[Array, Array]:
        out = function.accumulate(x, axis)
        places = np.arange(x.shape[axis]).reshape([-1 if i == axis % x.ndim else 1 for i in range(x.ndim)])
        last = np.maximum.accumulate(np.where(x == out, places, 0), axis)
        return out, last.astype(INTEGERS[dtype])

    return run


for _name, _function in (("cummax", np.maximum), ("cummin", np.minimum)):
    register_kernel(_name, "x -> out indices", {"axis": Int(-1), "dtype": Int(3)})(_make_running(_function))
