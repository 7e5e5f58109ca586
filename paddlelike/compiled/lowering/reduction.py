"""Sums and means, over the rows of sequences as well; metrics."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import jax
import jax.numpy as jnp

from paddlelike.compiled.refusals import LoweringError
from paddlelike.compiled.table import lowers
from paddlelike.compiled.values import Packed
from paddlelike.core.dtypes import numpy_dtype


@lowers("mean", sequences=True)
def mean(x: Any) -> Any:
    if isinstance(x, Packed):
        per_row = max(1, x.rows.size // x.rows.shape[0])
        count = (x.offsets[-1][-1] * per_row).astype(x.rows.dtype)
        return (x.mask().sum() / count).reshape(1)
    return jnp.mean(x).reshape(1)


@lowers("reduce_sum_grad", "reduce_mean_grad")
def reduce_sum_grad(d_out: Any, x: Any, *, dim: Any, reduce_all: bool, in_dtype: int, ctx: Any) -> Any:
    axes = _axes(x, dim, reduce_all)
    shape = [1 if i in axes else size for i, size in enumerate(x.shape)]
    count = 1 if ctx.op.type == "reduce_sum_grad" else x.size // d_out.size
    spread = jnp.broadcast_to(d_out.reshape(shape) / jnp.asarray(count, d_out.dtype), x.shape)
    return spread if in_dtype < 0 else spread.astype(numpy_dtype(in_dtype))


@lowers("accuracy", sequences=True)
def accuracy(out: Any, indices: Any, label: Any) -> tuple[Any, ...]:
    used = None
    if isinstance(indices, Packed):
        used = indices.used
        indices = indices.rows
    label = label.rows if isinstance(label, Packed) else label
    hit = (indices == label.reshape(-1, 1)).any(1)
    total = jnp.asarray(hit.shape[0], jnp.int32) if used is None else used.sum().astype(jnp.int32)
    correct = (hit if used is None else hit & used).sum().astype(jnp.int32)
    share = (correct / jnp.maximum(total, 1)).astype(jnp.float32)
    return share.reshape(1), correct.reshape(1), total.reshape(1)


@lowers("cumsum")
def cumsum(x: Any, *, axis: int, exclusive: bool, reverse: bool) -> Any:
    x = jnp.flip(x, axis) if reverse else x
    total = jnp.cumsum(x, axis)
    if exclusive:
        first = [(1, 0) if dim == axis % x.ndim else (0, 0) for dim in range(x.ndim)]
        total = jnp.pad(jax.lax.slice_in_dim(total, 0, x.shape[axis] - 1, axis=axis), first)
    return jnp.flip(total, axis) if reverse else total


def _axes(x: Any, dim: Any, reduce_all: bool) -> tuple[int, ...]:
    return tuple(range(x.ndim)) if reduce_all else tuple(sorted({d % x.ndim for d in dim}))


def _register(type: str, function: Callable[..., Any]) -> None:
    def forward(x: Any, *, dim: Any, keep_dim: bool, reduce_all: bool, out_dtype: int) -> Any:
        axes = _axes(x, dim, reduce_all)
        if type == "reduce_mean" and not jnp.issubdtype(x.dtype, jnp.floating):
            raise LoweringError("the mean of integers")
        if out_dtype >= 0:
            x = x.astype(numpy_dtype(out_dtype))
        out = function(x, axis=axes, keepdims=keep_dim)
        return out.reshape(1) if out.ndim == 0 else out

    lowers(type)(forward)


_ROWS: Final[dict[str, Callable[..., Any]]] = {
    "reduce_sum": lambda x, **given: jnp.sum(x, dtype=x.dtype, **given),
    "reduce_mean": lambda x, **given: jnp.mean(x, **given),
    "reduce_max": jnp.max,
    "reduce_min": jnp.min,
    "reduce_prod": lambda x, **given: jnp.prod(x, dtype=x.dtype, **given),
    "reduce_all": jnp.all,
    "reduce_any": jnp.any,
    "frobenius_norm": lambda x, **given: jnp.sqrt(jnp.sum(x * x, **given)),
}

for _type, _function in _ROWS.items():
    _register(_type, _function)


@lowers("reduce_max_grad", "reduce_min_grad")
def reduce_max_grad(d_out: Any, out: Any, x: Any, *, dim: Any, reduce_all: bool, in_dtype: int) -> Any:
    axes = _axes(x, dim, reduce_all)
    shape = [1 if i in axes else size for i, size in enumerate(x.shape)]
    d_x = d_out.reshape(shape) * (x == out.reshape(shape))  # every one of equal elements, as in Paddle
    return d_x if in_dtype < 0 else d_x.astype(numpy_dtype(in_dtype))


@lowers("dist")
def dist(x: Any, y: Any, *, p: float) -> Any:
    return jnp.linalg.norm((x - y).reshape(-1), p).reshape(1).astype(x.dtype)
