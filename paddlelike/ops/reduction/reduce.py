"""Reductions over dims: reduce_sum, reduce_mean, reduce_max, ..., mean, frobenius_norm.

A result without dims has the shape (1,), as always in Paddle.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Final, NamedTuple

import numpy as np

from paddlelike.core import VarType, numpy_dtype
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
    spares_first,
)
from paddlelike.framework.opdef.registry import LATEST
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

    def axes(self, op: str, rank: int, *, may_be_empty: bool = False) -> Axes:
        """Return the dims to reduce, from the front, each once. Raises ShapeError for a missing dim.

        An empty ``dim`` stands for all dims in Paddle 2; Fluid refuses it.
        """
        every = self.reduce_all or (may_be_empty and not self.dim)
        return find_axes(op, None if every else tuple(self.dim), rank)


@functools.lru_cache(maxsize=4096)
def find_axes(op: str, dims: tuple[int, ...] | None, rank: int) -> Axes:
    """Return the distinct dims to reduce, counted from the front; ``dims`` is None for all.

    Raises ShapeError for a dim that does not exist.
    """
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
    """Return the mean with the reduced dims kept as 1; for integers it is truncated."""
    return _divide(_sum(x, axes), x)


def _later_mean(x: Array, **how: Any) -> Array:
    """Return the mean as numpy does, but truncated for integers."""
    return _divide(np.sum(x, dtype=x.dtype, **how), x) if x.dtype.kind in "iu" else np.mean(x, **how)


def _divide(total: Array, x: Array) -> Array:
    count = x.size // max(total.size, 1)
    return (total - np.fmod(total, count)) // count if x.dtype.kind in "iu" else total / count


def _frobenius(x: Array, axes: Axes) -> Array:
    return np.sqrt(_sum(x * x, axes))


def _equals(d: Array, out: Array, x: Array) -> Array:
    """Return the gradient of an extremum: every element equal to it gets the whole gradient."""
    return d * (x == out)


class Reduction(NamedTuple):
    """The properties of a reduction that all engines read: numpy, shape rule, gradient, JAX, ONNX, CNTK.

    Attributes
    ----------
    formula
        Paddle 2.x's result, as a numpy function of an array, ``axis`` and ``keepdims``.
    neutral
        The number that fills unused rows of sequences, because it does not change the result.
    value
        Fluid's formula, a function of X and the axes; it keeps the reduced dims as 1. None means that Fluid
        has no such operator.
    slope
        The gradient of X from the gradient of Out, (Out,) and X; Out and its gradient keep the reduced dims
        as 1.
    """

    type: str
    words: str
    formula: Callable[..., Any]
    neutral: float
    onnx: str
    cntk: str = ""
    value: Callable[[Array, Axes], Array] | None = None
    slope: Callable[..., Array] | None = None
    reads_out: bool = False

    @property
    def is_logical(self) -> bool:
        """Whether the reduction is of truth values."""
        return isinstance(self.neutral, bool)

    def get_neutral(self, dtype: np.dtype[Any]) -> float:
        """Return the neutral element of a dtype; for integers the extreme integer in place of infinity."""
        if dtype.kind not in "iu" or np.isfinite(self.neutral):
            return self.neutral
        return np.iinfo(dtype).max if self.neutral > 0 else np.iinfo(dtype).min


def _logsumexp(x: Array, *, axis: Axes | None, keepdims: bool) -> Array:
    """Return the logarithm of the sum of e^X over some dims."""
    top = x.max(axis, keepdims=True)
    out = np.log(np.exp(x - top).sum(axis, keepdims=True)) + top
    return out if keepdims else np.asarray(out.squeeze(axis))


def _spread(d: Array, x: Array) -> Array:
    """Return ``d``, broadcast to the shape of X, as an array of its own."""
    out = np.empty(x.shape, d.dtype)
    out[...] = d
    return out


_EXACT: Final = 1 << 24  # up to here a float32 holds every integer

_ROWS: Final = (
    Reduction(
        "reduce_sum", "sum", lambda x, **where: np.sum(x, dtype=x.dtype, **where), 0, "ReduceSum", "Sum",
        _sum, _spread,
    ),
    Reduction(
        "reduce_mean", "mean", _later_mean, 0, "ReduceMean", "Mean",
        _mean, lambda d, x: _spread(d / (x.size // max(d.size, 1)), x),
    ),
    Reduction(
        "reduce_max", "greatest number", np.max, -np.inf, "ReduceMax", "Max",
        lambda x, axes: reduce_extreme(x, axes, is_greatest=True), _equals, reads_out=True,
    ),
    Reduction(
        "reduce_min", "least number", np.min, np.inf, "ReduceMin", "Min",
        lambda x, axes: reduce_extreme(x, axes, is_greatest=False), _equals, reads_out=True,
    ),
    Reduction(
        "reduce_prod", "product",
        lambda x, **where: np.prod(x, dtype=x.dtype, **where), 1, "ReduceProd", "Prod",
        lambda x, axes: np.multiply.reduce(x, axis=axes, dtype=x.dtype, keepdims=True),
        lambda d, out, x: d * out * (1 / x), reads_out=True,
    ),
    Reduction(
        "reduce_all", "logical and", np.all, True, "ReduceMin",
        value=lambda x, axes: np.logical_and.reduce(x, axis=axes, keepdims=True),
    ),
    Reduction(
        "reduce_any", "logical or", np.any, False, "ReduceMax",
        value=lambda x, axes: np.logical_or.reduce(x, axis=axes, keepdims=True),
    ),
    Reduction(
        "frobenius_norm", "square root of the sum of squares",
        lambda x, **where: np.sqrt(np.sum(x * x, **where)), 0, "ReduceL2", "",
        _frobenius, lambda d, out, x: d / out * x, reads_out=True,
    ),
    Reduction("reduce_amax", "greatest number", np.max, -np.inf, "ReduceMax"),
    Reduction("reduce_amin", "least number", np.min, np.inf, "ReduceMin"),
    Reduction("logsumexp", "logarithm of the sum of e^X", _logsumexp, -np.inf, "ReduceLogSumExp"),
)  # fmt: skip
#: Every reduction over dims, by type.
REDUCTIONS: Final = {row.type: row for row in _ROWS}


def _make_operator(row: Reduction, value: Callable[[Array, Axes], Array]) -> type[OpDef]:
    """Return the operator of Fluid. It keeps X's LoD unless it reduces the first dim."""

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
        return value(x, axes).reshape(_reduce_shape(x.shape, axes, attrs.keep_dim))

    def backward(ctx: Context, *arrays: Array, attrs: ReduceAttrs) -> Array:
        x = arrays[-1]
        kept = _reduce_shape(x.shape, attrs.axes(row.type, x.ndim, may_be_empty=True), keep_dim=True)
        assert row.slope is not None
        d_x = row.slope(*(array.reshape(kept) for array in arrays[:-1]), x)
        return d_x if attrs.in_dtype < 0 else d_x.astype(numpy_dtype(VarType(attrs.in_dtype)), copy=False)

    body: dict[str, Any] = {
        "__doc__": f"``Out``: the {row.words} along the dims ``dim``, or of all with ``reduce_all``.",
        "__module__": __name__,
        "type": row.type,
        "attrs": ReduceAttrs.table(),
        "lods_only": True,
        "keeps_dtype": row.type == "reduce_sum",
        "by_row": staticmethod(lambda attrs: not attrs["reduce_all"] and spares_first("dim")(attrs)),
        "infer": staticmethod(infer),
        "forward": staticmethod(forward),
    }
    if row.slope is not None:
        reads = ("Out@GRAD", "Out", "X") if row.reads_out else ("Out@GRAD", "X")
        body |= {"gradient": Gradient(*reads, lod=OWN), "backward": staticmethod(backward)}
    return type(row.type.title().replace("_", ""), (OpDef,), body)


def _make_kernel(function: Callable[..., Any]) -> Callable[..., Array]:
    """Return the kernel of Paddle 2.x."""

    def reduce(x: Array, *, attrs: ReduceAttrs) -> Array:
        axes = None if attrs.reduce_all or not attrs.dim else tuple(attrs.dim)
        if attrs.out_dtype >= 0:
            x = x.astype(numpy_dtype(VarType(attrs.out_dtype)), copy=False)
        return np.asarray(function(x, axis=axes, keepdims=attrs.keep_dim))

    return reduce


for _row in _ROWS:
    if _row.value is not None:
        register(_make_operator(_row, _row.value))
    if _row.formula is not _logsumexp:
        _changed = _row.value is not None
        register_kernel(_row.type, "X -> Out", ReduceAttrs.table(), changed=_changed)(
            _make_kernel(_row.formula)
        )


def _share(d: Array, out: Array, x: Array, *, attrs: ReduceAttrs) -> Array:
    """Return the gradient of an extremum in Paddle 3: elements equal to it share the gradient equally."""
    axes = attrs.axes("reduce_max", x.ndim, may_be_empty=True)
    kept = _reduce_shape(x.shape, axes, keep_dim=True)
    equal = x == out.reshape(kept)
    shares = np.where(equal, d.reshape(kept), 0) / np.sum(equal, axis=axes, keepdims=True, dtype=d.dtype)
    return shares.astype(d.dtype, copy=False)


for _name in ("reduce_max_grad", "reduce_min_grad"):
    register_kernel(_name, "Out@GRAD Out X -> X@GRAD", ReduceAttrs.table(), changed=True, mark=LATEST)(_share)


@register_kernel(
    "logsumexp", "X -> Out", {"axis": Ints([0]), "keepdim": Bool(False), "reduce_all": Bool(False)}
)
def _reduce_logsumexp(x: Array, *, axis: list[int], keepdim: bool, reduce_all: bool) -> Array:
    return _logsumexp(x, axis=None if reduce_all or not axis else tuple(axis), keepdims=keepdim)


@register
class Mean(OpDef):
    """``Out``, of shape (1,), is the mean of all elements of X."""

    type = "mean"
    keeps_dtype = True
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
        d_x.fill(d_out.item() / (x.size or 1))
        return d_x
