"""Reductions over dims: reduce_sum, reduce_mean, reduce_max, ..., mean, frobenius_norm.

A result without dims has the shape (1,), as always in Paddle.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Final, NamedTuple

import numpy as np

from paddlelike.core.dtypes import VarType, numpy_dtype
from paddlelike.errors import ShapeError
from paddlelike.framework.opdef import (
    NO_LOD,
    OWN,
    Array,
    Attrs,
    Bool,
    Context,
    Gradient,
    Int,
    Ints,
    OpDef,
    Spec,
    register,
)
from paddlelike.ops.extremes import reduce_extreme
from paddlelike.ops.kernels.broadcasting import sum_to
from paddlelike.ops.later import register_kernel
from paddlelike.ops.operands import normalize_axis, one_element

Shape = tuple[int, ...]
Axes = tuple[int, ...]


class ReduceAttrs(Attrs):
    """Attributes of every reduction; ``in_dtype`` and ``out_dtype`` of -1 are the dtype of X."""

    dim: list[int] = Ints([0])
    keep_dim: bool = Bool(False)
    reduce_all: bool = Bool(False)
    in_dtype: int = Int(-1)
    out_dtype: int = Int(-1)

    def axes(self, op: str, rank: int) -> Axes:
        """Return the dims to reduce, from the front, each once. Raises ShapeError when one is not there."""
        return _find_axes(op, None if self.reduce_all else tuple(self.dim), rank)


@functools.lru_cache(maxsize=4096)
def _find_axes(op: str, dims: tuple[int, ...] | None, rank: int) -> Axes:
    """Return the dims to reduce; None: all."""
    if dims is None:
        return tuple(range(rank))
    if not dims:
        raise ShapeError(f"{op}: dim is empty", hint="reduce_all=True reduces all dims")
    return tuple(sorted({normalize_axis(op, axis, rank, name="dim") for axis in dims}))


@functools.lru_cache(maxsize=4096)
def _reduce_shape(shape: Shape, axes: Axes, keep_dim: bool) -> Shape:
    if keep_dim:
        return tuple(1 if axis in axes else dim for axis, dim in enumerate(shape))
    return tuple(dim for axis, dim in enumerate(shape) if axis not in axes) or (1,)


def _sum(x: Array, axes: Axes) -> Array:
    """Return the sum with the reduced dims kept as 1; real numbers by BLAS where it pays."""
    kept = _reduce_shape(x.shape, axes, keep_dim=True)
    if x.dtype.kind == "f" and len(axes) < x.ndim and x.size:
        return sum_to(kept, x, -1)
    return np.add.reduce(x, axis=axes, dtype=x.dtype, keepdims=True)


def _mean(x: Array, axes: Axes) -> Array:
    total = _sum(x, axes)
    return (total / (x.size // max(total.size, 1))).astype(x.dtype, copy=False)


def _frobenius(x: Array, axes: Axes) -> Array:
    return np.sqrt(_sum(x * x, axes))


def _equals(d: Array, out: Array, x: Array) -> Array:
    """Return the gradient of an extremum: every element that equals it gets all of it."""
    return d * (x == out)


class _Row(NamedTuple):
    """An operator. ``value`` keeps the reduced dims as 1; ``slope`` takes d_out and Out like that."""

    type: str
    meaning: str
    value: Callable[[Array, Axes], Array]
    slope: Callable[..., Array] | None = None  # from d_out, (Out,) X
    reads_out: bool = False
    dtype: VarType | None = None


_EXACT: Final = 1 << 24  # up to here a float32 holds every integer

_ROWS: Final = [
    _Row("reduce_sum", "the sum", _sum, lambda d, x: _spread(d, x)),
    _Row("reduce_mean", "the mean", _mean, lambda d, x: _spread(d / (x.size // max(d.size, 1)), x)),
    _Row(
        "reduce_max",
        "the greatest element",
        lambda x, axes: reduce_extreme(x, axes, is_greatest=True),
        _equals,
        reads_out=True,
    ),
    _Row(
        "reduce_min",
        "the least element",
        lambda x, axes: reduce_extreme(x, axes, is_greatest=False),
        _equals,
        reads_out=True,
    ),
    _Row(
        "reduce_prod",
        "the product",
        lambda x, axes: np.multiply.reduce(x, axis=axes, dtype=x.dtype, keepdims=True),
        lambda d, out, x: d * out * (1 / x),
        reads_out=True,
    ),
    _Row(
        "reduce_all",
        "whether all are true",
        lambda x, axes: np.logical_and.reduce(x, axis=axes, keepdims=True),
    ),
    _Row(
        "reduce_any", "whether one is true", lambda x, axes: np.logical_or.reduce(x, axis=axes, keepdims=True)
    ),
    _Row(
        "frobenius_norm",
        "the square root of the sum of squares",
        _frobenius,
        lambda d, out, x: d / out * x,
        reads_out=True,
    ),
]


def _spread(d: Array, x: Array) -> Array:
    """Return ``d``, broadcast to the shape of X, as an array of its own."""
    out = np.empty(x.shape, d.dtype)
    out[...] = d
    return out


def _make_operator(row: _Row) -> type[OpDef]:
    """Return the operator of a row. It keeps X's LoD unless it reduces the first dim."""

    def infer(x: Spec, *, attrs: ReduceAttrs) -> Spec:
        axes = attrs.axes(row.type, len(x.shape))
        dtype = x.dtype if attrs.out_dtype < 0 else VarType(attrs.out_dtype)
        level = NO_LOD if 0 in axes else x.lod_level
        return Spec(_reduce_shape(x.shape, axes, attrs.keep_dim), dtype, level)

    def forward(ctx: Context, x: Array, *, attrs: ReduceAttrs) -> Array:
        axes = attrs.axes(row.type, x.ndim)
        ctx.set_lod("Out", [] if 0 in axes else ctx.lod("X"))
        if attrs.out_dtype >= 0:
            x = x.astype(numpy_dtype(VarType(attrs.out_dtype)), copy=False)
        return row.value(x, axes).reshape(_reduce_shape(x.shape, axes, attrs.keep_dim))

    def backward(ctx: Context, *arrays: Array, attrs: ReduceAttrs) -> Array:
        x = arrays[-1]
        kept = _reduce_shape(x.shape, attrs.axes(row.type, x.ndim), keep_dim=True)
        assert row.slope is not None
        d_x = row.slope(*(array.reshape(kept) for array in arrays[:-1]), x)
        return d_x if attrs.in_dtype < 0 else d_x.astype(numpy_dtype(VarType(attrs.in_dtype)), copy=False)

    body: dict[str, Any] = {
        "__doc__": f"``Out``: {row.meaning} along the dims ``dim``, or of all with ``reduce_all``.",
        "__module__": __name__,
        "type": row.type,
        "attrs": ReduceAttrs.table(),
        "context": True,
        "infer": staticmethod(infer),
        "forward": staticmethod(forward),
    }
    if row.slope is not None:
        reads = ("Out@GRAD", "Out", "X") if row.reads_out else ("Out@GRAD", "X")
        body |= {"gradient": Gradient(*reads, lod=OWN), "backward": staticmethod(backward)}
    return type(row.type.title().replace("_", ""), (OpDef,), body)


for _row in _ROWS:
    register(_make_operator(_row))


@register
class Mean(OpDef):
    """``Out``, of shape (1,), is the mean of all elements of X."""

    type = "mean"
    gradient = Gradient("X", "Out@GRAD", copies_attrs=False, lod=OWN, shapes_of=("X",))

    infer = one_element()

    @staticmethod
    def forward(x: Array) -> Array:
        total = np.add.reduce(x.reshape(-1), keepdims=True)
        if 0 < x.size <= _EXACT and total.dtype.char in "fd":
            total.fill(total.item() / x.size)  # the same bits: a quotient of doubles rounds to that of floats
        else:
            total /= x.size
        return total

    @staticmethod
    def backward(x: Array, d_out: Array) -> Array:
        d_x = np.empty(x.shape, d_out.dtype)
        d_x.fill(d_out.item() / x.size)
        return d_x


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
