"""Sums, means and extremes over dims, over the rows of sequences as well."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

import jax
import jax.numpy as jnp

from paddlelike.compiled.formulas import stands_for
from paddlelike.compiled.lowerings import lowers
from paddlelike.compiled.packing import LoweringError
from paddlelike.compiled.tracing.context import OpContext
from paddlelike.compiled.values import Packed, Value
from paddlelike.core.dtypes import numpy_dtype
from paddlelike.framework.quirks import follows_fluid
from paddlelike.ops import extremes


@lowers("mean", sequences=True)
def mean(x: jax.Array | Packed) -> Value:
    if isinstance(x, Packed):
        per_row = max(1, x.rows.size // x.rows.shape[0])
        count = (x.total * per_row).astype(x.rows.dtype)
        return (x.mask().sum() / count).reshape(1)
    if not x.size:
        raise LoweringError("X has no elements")
    return jnp.mean(x).reshape(1)


@lowers("reduce_sum_grad", "reduce_mean_grad", sequences=True)
def reduce_sum_grad(
    d_out: Value, x: Value, *, dim: list[int], reduce_all: bool, in_dtype: int, ctx: OpContext
) -> Value:
    rows, d_rows = _rows(x), _rows(d_out)
    axes = _axes(rows, dim, reduce_all)
    d_rows = d_rows.reshape(_keep_dims(rows, axes))
    if ctx.op.type == "reduce_mean_grad":
        d_rows = d_rows / _count(x, axes).astype(d_rows.dtype)
    return _spread(x, jnp.broadcast_to(d_rows, rows.shape), in_dtype)


def _axes(x: jax.Array, dim: list[int] | jax.Array, reduce_all: bool) -> tuple[int, ...]:
    return tuple(range(x.ndim)) if reduce_all else tuple(sorted({d % x.ndim for d in dim}))


def _rows(x: jax.Array | Packed) -> jax.Array:
    return x.rows if isinstance(x, Packed) else x


def _keep_dims(x: jax.Array, axes: tuple[int, ...]) -> list[int]:
    return [1 if i in axes else size for i, size in enumerate(x.shape)]


def _count(x: jax.Array | Packed, axes: tuple[int, ...]) -> jax.Array:
    """Return how many elements are reduced to one."""
    inner = math.prod(size for i, size in enumerate(_rows(x).shape) if i in axes and i > 0)
    first = (x.total if isinstance(x, Packed) else x.shape[0]) if 0 in axes else 1
    return jnp.asarray(first * inner)


def _spread(x: jax.Array | Packed, gradient: jax.Array, in_dtype: int) -> Value:
    """Broadcast a gradient to the shape of ``x``."""
    gradient = gradient if in_dtype < 0 else gradient.astype(numpy_dtype(in_dtype))
    return x.replace(x.mask(gradient), shown=False) if isinstance(x, Packed) else gradient


def _register(type: str, function: Callable[..., Any], fill: Callable[[Any], Any]) -> None:
    def forward(
        x: jax.Array | Packed, *, dim: list[int], keep_dim: bool, reduce_all: bool, out_dtype: int
    ) -> Value:
        rows = _rows(x)
        axes = _axes(rows, dim, reduce_all)
        if type == "reduce_mean" and not jnp.issubdtype(rows.dtype, jnp.floating):
            raise LoweringError("the mean of integers")
        if out_dtype >= 0:
            rows = rows.astype(numpy_dtype(out_dtype))
        is_whole = not isinstance(x, Packed) or 0 not in axes
        if isinstance(x, Packed) and 0 in axes:
            used = x.used.reshape(-1, *[1] * (rows.ndim - 1))
            rows = jnp.where(used, rows, jnp.asarray(fill(rows.dtype), rows.dtype))
        if type == "reduce_mean" and not is_whole:
            out = jnp.sum(rows, axes, keepdims=keep_dim) / _count(x, axes).astype(rows.dtype)
        else:
            out = function(rows, axis=axes, keepdims=keep_dim)
        out = out.reshape(1) if out.ndim == 0 else out
        return x.replace(out) if isinstance(x, Packed) and 0 not in axes else out

    lowers(type, sequences=True)(forward)


def _zero(_: jax.typing.DTypeLike) -> int:
    return 0


def _lowest(dtype: jax.typing.DTypeLike) -> float:
    return -jnp.inf if jnp.issubdtype(dtype, jnp.floating) else jnp.iinfo(dtype).min


def _highest(dtype: jax.typing.DTypeLike) -> float:
    return jnp.inf if jnp.issubdtype(dtype, jnp.floating) else jnp.iinfo(dtype).max


def _find_extreme(
    function: Callable[..., jax.Array], worst: Callable[[Any], float], x: jax.Array, **given: object
) -> jax.Array:
    if jnp.issubdtype(x.dtype, jnp.floating) and follows_fluid("nan_comparisons"):
        x = jnp.where(jnp.isnan(x), jnp.asarray(worst(x.dtype), x.dtype), x)
    return function(x, **given)


@stands_for(extremes.find_extreme)
def _find_place(x: jax.Array, axis: int | None, *, keepdims: bool, is_greatest: bool) -> jax.Array:
    worst = _lowest if is_greatest else _highest
    return jnp.asarray(
        _find_extreme(jnp.argmax if is_greatest else jnp.argmin, worst, x, axis=axis, keepdims=keepdims)
    )


#: By type: the function, and what stands in unused rows of sequences.
_ROWS: Final[dict[str, tuple[Callable[..., Any], Callable[[Any], Any]]]] = {
    "reduce_sum": (lambda x, **given: jnp.sum(x, dtype=x.dtype, **given), _zero),
    "reduce_mean": (lambda x, **given: jnp.mean(x, **given), _zero),
    "reduce_max": (lambda x, **given: _find_extreme(jnp.max, _lowest, x, **given), _lowest),
    "reduce_min": (lambda x, **given: _find_extreme(jnp.min, _highest, x, **given), _highest),
    "reduce_prod": (lambda x, **given: jnp.prod(x, dtype=x.dtype, **given), lambda _: 1),
    "reduce_all": (jnp.all, lambda _: True),
    "reduce_any": (jnp.any, lambda _: False),
    "frobenius_norm": (lambda x, **given: jnp.sqrt(jnp.sum(x * x, **given)), _zero),
}


for _type, _functions in _ROWS.items():
    _register(_type, *_functions)


@lowers("reduce_max_grad", "reduce_min_grad", sequences=True)
def reduce_max_grad(
    d_out: Value, out: Value, x: Value, *, dim: list[int], reduce_all: bool, in_dtype: int
) -> Value:
    rows = _rows(x)
    shape = _keep_dims(rows, _axes(rows, dim, reduce_all))
    # Every one of equal elements, as in Paddle.
    return _spread(x, _rows(d_out).reshape(shape) * (rows == _rows(out).reshape(shape)), in_dtype)
