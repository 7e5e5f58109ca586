"""Lowerings of reductions, sums, sorts and counts."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array

from paddlelike.compiled.arrays import TensorArray, add_arrays
from paddlelike.compiled.formulas import stands_for
from paddlelike.compiled.lowerings import Lowering, Results, add_rows, evaluate_kernel, lowers
from paddlelike.compiled.packing import LoweringError
from paddlelike.compiled.tracing.context import OpContext
from paddlelike.compiled.values import Packed, SparseRows, Value, get_rows
from paddlelike.core import VarType, numpy_dtype
from paddlelike.framework import follows_fluid
from paddlelike.framework.opdef import GRAD, OpDef, registry
from paddlelike.ops import extremes
from paddlelike.ops.reduction import reduce


@lowers("mean", sequences=True)
def mean(x: Array | Packed) -> Value:
    if isinstance(x, Packed):
        per_row = max(1, x.rows.size // x.rows.shape[0])
        count = (x.total * per_row).astype(x.rows.dtype)
        return (x.mask().sum() / count).reshape(1)
    if not x.size:
        raise LoweringError("X has no elements")
    return jnp.mean(x).reshape(1)


def _reduce_rows(ctx: OpContext, args: list[Any], cls: type[OpDef], given: Mapping[str, Any]) -> Value:
    """Reduce the rows of sequences, or return the gradient. A mean divides by the number of used rows."""
    row = reduce.REDUCTIONS[cls.type.removesuffix("_grad")]
    *others, x = args
    divided = row.type == "reduce_mean"
    cls = registry.find(cls.type.replace("mean", "sum")) if divided else cls
    if others:
        if divided:
            others[0] = others[0] / _count(x, others[0])
        return x.replace(x.mask(evaluate_kernel(ctx, [*others, x.rows], cls, given)), shown=False)
    if divided and x.rows.dtype.kind != "f":
        raise LoweringError("it computes the mean of integers")
    out = evaluate_kernel(ctx, [x.mask(unused=row.get_neutral(x.rows.dtype))], cls, given)
    return out / _count(x, out) if divided else out


def _count(x: Packed, out: Array) -> Array:
    """Return the number of used values per result, counting all rows of sequences."""
    return (x.total * (x.rows.size // max(1, x.rows.shape[0] * out.size))).astype(out.dtype)


for _type, _row in reduce.REDUCTIONS.items():
    if _row.value is not None:
        types = (_type, f"{_type}_grad") if _row.slope else (_type,)
        add_rows(types, Lowering(_reduce_rows, handles_sequences=True), across_rows=True)


def _pass_over_nan(x: Array, worst: float) -> Array:
    if jnp.issubdtype(x.dtype, jnp.floating) and follows_fluid("nan_comparisons"):
        return jnp.where(jnp.isnan(x), jnp.asarray(worst, x.dtype), x)
    return x


@stands_for(extremes.reduce_extreme)
def reduce_extreme(x: Array, axes: tuple[int, ...], *, is_greatest: bool) -> Array:
    if is_greatest:
        return jnp.max(_pass_over_nan(x, -jnp.inf), axes, keepdims=True)
    return jnp.min(_pass_over_nan(x, jnp.inf), axes, keepdims=True)


@stands_for(extremes.find_extreme)
def find_extreme(x: Array, axis: int | None, *, keepdims: bool, is_greatest: bool) -> Array:
    if is_greatest:
        return jnp.argmax(_pass_over_nan(x, -jnp.inf), axis, keepdims=keepdims)
    return jnp.argmin(_pass_over_nan(x, jnp.inf), axis, keepdims=keepdims)


@stands_for(reduce._spread)
def spread(d: Array, x: Array) -> Array:
    return jnp.broadcast_to(d, x.shape)


@lowers("sum", sequences=True)
def add_up(xs: list[Value], *, ctx: OpContext) -> Value | SparseRows:
    sparse = [x for x in xs if isinstance(x, SparseRows)]
    if len(sparse) == len(xs):
        rows, values = (jnp.concatenate([getattr(x, name) for x in sparse]) for name in ("rows", "values"))
        return SparseRows(rows, values, sparse[0].height)
    if any(isinstance(x, TensorArray) for x in xs):
        return functools.reduce(add_arrays, xs)
    packed = [x for x in xs if isinstance(x, Packed)]
    plain = [_match_rows(x, packed[0], ctx) for x in xs] if packed else xs
    total: Array | None = None
    for x in plain:
        if isinstance(x, SparseRows):
            total = x.to_dense() if total is None else total.at[x.rows].add(x.values)
        else:
            total = x if total is None else total + x
    return packed[0].replace(total) if packed else total


def _match_rows(x: Array | Packed | SparseRows, like: Packed, ctx: OpContext) -> Array:
    """Return the rows of an operand of a sum, with as many unused rows as ``like`` has.

    If the numbers of rows do not match, numpy runs the operator or refuses it.
    """
    if isinstance(x, SparseRows):
        raise LoweringError("it adds sparse rows to sequences")
    rows, size = get_rows(x), like.rows.shape[0]
    total = x.total if isinstance(x, Packed) else x.shape[0]
    if total is not like.total and not (isinstance(x, Packed) and _have_one_lod(x, like)):
        ctx.require(total == like.total, "an input has another number of rows")
    missing = max(size - rows.shape[0], 0)
    is_gradient = GRAD in ctx.op.output("Out")[0]
    unused = jnp.broadcast_to(
        jnp.zeros_like(rows[:1]) if is_gradient else rows[:1], (missing, *rows.shape[1:])
    )
    return jnp.concatenate([rows, unused])[:size] if rows.shape[0] != size else rows


def _have_one_lod(x: Packed, y: Packed) -> bool:
    if x.offsets and y.offsets:
        return x.offsets[-1] is y.offsets[-1]
    return not x.offsets and not y.offsets and x.live is y.live


@lowers("cumsum", sequences=True)
def cumsum(x: Array | Packed, *, axis: int, exclusive: bool, reverse: bool) -> Value:
    if not isinstance(x, Packed):
        return _add_up(x, axis, exclusive, reverse)
    # Unused rows at the end add nothing to the sum; they keep other rows, or a gradient's zeros.
    total = _add_up(x.mask(), axis, exclusive, reverse)
    return x.replace(x.mask(total, x.rows))


def _add_up(x: Array, axis: int, exclusive: bool, reverse: bool) -> Array:
    x = jnp.flip(x, axis) if reverse else x
    total = jnp.cumsum(x, axis)
    if exclusive:
        first = [(1, 0) if dim == axis % x.ndim else (0, 0) for dim in range(x.ndim)]
        total = jnp.pad(jax.lax.slice_in_dim(total, 0, x.shape[axis] - 1, axis=axis), first)
    return jnp.flip(total, axis) if reverse else total


@lowers("top_k")
def top_k(x: Array, k_tensor: Array | None, *, k: int, ctx: OpContext) -> Results:
    if k_tensor is not None:
        raise LoweringError("K is a variable")
    if not follows_fluid("order_of_equals"):
        values, indices = jax.lax.top_k(x, k)
        return values, indices.astype(jnp.int64)
    if k == 1:  # NaN is found only where it comes first
        unknown = jnp.isnan(x)
        indices = jnp.argmax(jnp.where(unknown, -jnp.inf, x), -1, keepdims=True)
        indices = jnp.where(unknown[..., :1], 0, indices)
        return jnp.take_along_axis(x, indices, -1), indices.astype(jnp.int64)
    values, indices = jax.lax.top_k(x, min(k + 1, x.shape[-1]))
    is_odd = (values[..., 1:] == values[..., :-1]).any() | jnp.isnan(x).any()
    ctx.require(~is_odd, "it has equal or unknown numbers, which an unstable sort puts in order")
    return values[..., :k], indices[..., :k].astype(jnp.int64)


@lowers("argsort")
def argsort(x: Array, *, axis: int, descending: bool, ctx: OpContext) -> Results:
    order = jnp.argsort(-x if descending else x, axis, stable=True)
    out = jnp.take_along_axis(x, order, axis)
    if follows_fluid("order_of_equals"):
        is_odd = jnp.isnan(x).any()
        if x.shape[axis] > 16:
            is_odd |= (jnp.diff(out, axis=axis) == 0).any()
        ctx.require(~is_odd, "it has equal or unknown numbers, which an unstable sort puts in order")
    return out, order.astype(jnp.int64)


def count_used(rows: Array, live: Array) -> Packed:
    """Return sequences whose first ``live`` rows are in use."""
    return Packed(rows, (), rows.shape[0], shown=False, live=live.astype(jnp.int32))


@lowers("unique", sequences=True)
def unique(x: Value, *, dtype: int) -> tuple[Packed, Value]:
    found, index, _ = unique_with_counts(x, dtype=dtype)
    return found, index


@lowers("unique_with_counts", sequences=True)
def unique_with_counts(x: Array | Packed, *, dtype: int) -> tuple[Packed, Value, Packed]:
    if isinstance(x, Packed):
        return _find_among_rows(x, dtype)
    found, index, counts, live = _find_unique(x, jnp.ones(x.shape[0], jnp.int64), dtype)
    return count_used(found, live), index, count_used(counts, live)


def _find_among_rows(x: Packed, dtype: int) -> tuple[Packed, Value, Packed]:
    """Return the result for the rows in use. Unused rows repeat the first row, which changes no extreme."""
    if x.offsets:
        raise LoweringError("its lowering takes no sequences")
    found, index, counts, live = _find_unique(x.rows, x.used.astype(jnp.int64), dtype)
    live = jnp.where(x.total > 0, live, 0)
    return count_used(found, live), x.replace(index), count_used(counts, live)


def _find_unique(x: Array, weights: Array, dtype: int) -> tuple[Array, Array, Array, Array]:
    """Return unique numbers by appearance, the index of each element of X, the counts, and their number."""
    number = numpy_dtype(VarType(dtype))
    size = x.shape[0]
    order = jnp.argsort(x, stable=True)
    ranked = x[order]
    starts = jnp.concatenate([jnp.ones(1, bool), ranked[1:] != ranked[:-1]])[:size]
    group = jnp.zeros(size, jnp.int64).at[order].set(jnp.cumsum(starts) - 1)  # of each number of X
    # The groups by their first numbers; unused ones come last.
    first = jnp.full(size, size, jnp.int64).at[group].min(jnp.arange(size))
    by_first = jnp.argsort(first, stable=True)
    rank = jnp.zeros(size, jnp.int64).at[by_first].set(jnp.arange(size))
    places = jnp.where(jnp.arange(size) < starts.sum(), first[by_first], 0)
    counts = jnp.zeros(size, jnp.int64).at[group].add(weights)[by_first]
    return x[places], rank[group].astype(number), counts.astype(number), starts.sum()


@lowers("where_index")
def where_index(condition: Array) -> Packed:
    places = jnp.nonzero(condition, size=condition.size)
    rows = jnp.stack(places, -1).astype(jnp.int64)
    return count_used(rows, (condition != 0).sum())
