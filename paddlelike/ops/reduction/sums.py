"""Sums of several tensors (dense, SelectedRows, arrays), cumulative sums, and sums of rows by segment.

The gradient of a sum is one ``scale`` by 1 for each input, the gradient of cumsum a cumsum.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np

from paddlelike.core import SelectedRows, VarType
from paddlelike.errors import ShapeError, UnsupportedError
from paddlelike.framework.opdef import (
    Array,
    Attrs,
    Bool,
    GradOp,
    Int,
    Kernel,
    OpDef,
    OpView,
    Spec,
    String,
    derive_grad_op,
    register,
    spares_first,
)
from paddlelike.ops.kernels.addition import Value, add_over, add_values
from paddlelike.ops.later import INTEGERS, keep_attrs, register_kernel
from paddlelike.ops.operands import MKLDNN, can_be_equal, normalize_axis


@register
class Sum(OpDef):
    """``Out`` is the sum of all X, which have one shape.

    SelectedRows among dense tensors are added to the rows that they hold. SelectedRows alone give
    SelectedRows with sorted, distinct rows. Tensor arrays are added element by element.
    """

    type = "sum"
    keeps_dtype = True
    keeps_rows = True
    by_row = True
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
    """Sum arrays in order; some are given by their nonzero rows."""
    if any(isinstance(x, np.ndarray) for x in xs):  # else the rows are added after all dense arrays
        xs = [x.to_dense() if isinstance(x, SelectedRows) else x for x in xs]
    return add_values(xs)


class CumulationAttrs(Attrs):
    """Attributes of cumulative sums."""

    axis: int = Int(-1)
    flatten: bool = Bool(False)
    exclusive: bool = Bool(False)
    reverse: bool = Bool(False)


def _make_cumsum_grad(cls: type[OpDef], op: OpView) -> list[GradOp]:
    if op.attrs.get("flatten"):
        raise UnsupportedError(
            "operator 'cumsum' with flatten=True has no gradient here",
            hint="reshape its input to [-1], and leave flatten False",
        )
    return keep_attrs(cls, op)


@register_kernel(
    "cumsum",
    "X -> Out",
    CumulationAttrs.table(),
    changed=True,
    make_grad=classmethod(_make_cumsum_grad),
)
def _cumsum(x: Array, *, attrs: CumulationAttrs) -> Array:
    """The cumulative sum along an axis, or over all elements as one row."""
    return _cumulate(x, attrs, lambda rows, axis: np.cumsum(rows, axis, dtype=x.dtype), 0)


@register_kernel("logcumsumexp", "X -> Out", CumulationAttrs.table())
def _logcumsumexp(x: Array, *, attrs: CumulationAttrs) -> Array:
    """The logarithm of the cumulative sum of e^X."""
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
    """The cumulative product along a dim."""
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
    """``Out[i]``: the sum of X up to i along ``axis``, without X[i] itself if ``exclusive``.

    With ``reverse`` it adds from the end.
    """

    type = "cumsum"
    by_row = spares_first("axis")
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


_REDUCTIONS: Final[dict[str, Callable[..., Any]]] = {
    "SUM": np.sum, "MEAN": np.mean, "MAX": np.max, "MIN": np.min
}  # fmt: skip


@register_kernel("segment_pool", "X SegmentIds -> Out SummedIds?", {"pooltype": String("SUM")})
def _segment_pool(x: Array, ids: Array, *, pooltype: str) -> tuple[Array, None]:
    """The sum, mean, maximum or minimum of the rows of each id; zeros for absent ids."""
    out = np.zeros((int(ids[-1]) + 1 if ids.size else 0, *x.shape[1:]), x.dtype)
    starts = np.flatnonzero(ids[1:] != ids[:-1]) + 1
    for rows in np.split(np.arange(len(ids)), starts):
        if rows.size:
            out[ids[rows[0]]] = _REDUCTIONS[pooltype](x[rows], 0)
    return out, None
