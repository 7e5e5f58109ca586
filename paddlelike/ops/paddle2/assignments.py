"""Arrays with some elements replaced, sums of segments, and rows of powers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from paddlelike.core.dtypes import VarType, numpy_dtype
from paddlelike.framework.opdef import Array, Bool, Int, Long, String
from paddlelike.ops.paddle2.registration import register_kernel

_REDUCTIONS: Final[dict[str, Callable[..., Any]]] = {
    "SUM": np.sum, "MEAN": np.mean, "MAX": np.max, "MIN": np.min
}  # fmt: skip


@register_kernel("index_put", "x indices* value -> out", {"accumulate": Bool(False)})
def _index_put(x: Array, indices: list[Array], value: Array, *, accumulate: bool) -> Array:
    """X with ``value`` at the indices, one array for each of the first dims; or added there."""
    out = x.copy()
    if accumulate:
        np.add.at(out, tuple(indices), value)
    else:
        out[tuple(indices)] = value
    return out


@register_kernel("fill_diagonal_tensor", "X Y -> Out", {"offset": Long(0), "dim1": Int(0), "dim2": Int(1)})
def _fill_diagonal(x: Array, y: Array, *, offset: int, dim1: int, dim2: int) -> Array:
    """X with Y on the diagonal of two dims; the last dim of Y runs along it."""
    out = x.copy()
    diagonal = np.diagonal(out, offset, dim1, dim2)
    diagonal.setflags(write=True)
    diagonal[...] = y
    return out


@register_kernel("segment_pool", "X SegmentIds -> Out SummedIds?", {"pooltype": String("SUM")})
def _segment_pool(x: Array, ids: Array, *, pooltype: str) -> tuple[Array, None]:
    """Rows of one id made one: their sum, mean, maximum or minimum; zeros for ids that do not occur."""
    out = np.zeros((int(ids[-1]) + 1 if ids.size else 0, *x.shape[1:]), x.dtype)
    starts = np.flatnonzero(ids[1:] != ids[:-1]) + 1
    for rows in np.split(np.arange(len(ids)), starts):
        if rows.size:
            out[ids[rows[0]]] = _REDUCTIONS[pooltype](x[rows], 0)
    return out, None


@register_kernel("logspace", "Start Stop Num Base -> Out", {"dtype": Int(5)})
def _logspace(start: Array, stop: Array, count: Array, base: Array, *, dtype: int) -> Array:
    """Powers of ``base`` whose exponents are equally far apart."""
    exponents = np.linspace(start.item(), stop.item(), count.item())
    return np.asarray(base.item() ** exponents).astype(numpy_dtype(VarType(dtype)))
