"""Lowerings of tensor operators: join, repeat, pad, read and write at positions."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from paddlelike.compiled.formulas import stands_for
from paddlelike.compiled.lowerings import Results, lowers
from paddlelike.compiled.packing import LoweringError
from paddlelike.compiled.tracing.context import OpContext
from paddlelike.compiled.values import Packed, Value, get_rows
from paddlelike.core import numpy_dtype
from paddlelike.ops.operands import read_numbers
from paddlelike.ops.tensor import pad as pads


def take_rows(index: Array, height: int, ctx: OpContext) -> Array:
    """Flatten an index, and check that its ids are below ``height``."""
    flat = index.reshape(-1)
    ctx.check_below(flat, height, "an index is")
    return flat


@lowers("gather", sequences=True)
def gather(x: Array | Packed, index: Array | Packed, *, ctx: OpContext) -> Value:
    rows = get_rows(x)
    height = x.total if isinstance(x, Packed) else x.shape[0]
    flat = get_rows(index).reshape(-1)
    ctx.check((flat >= 0) & (flat < height), "an index is outside of the rows of X")
    out = jnp.take(rows, flat, axis=0, mode="clip")
    return index.replace(out, shown=False) if isinstance(index, Packed) else out


@lowers("gather_grad", sequences=True)
def gather_grad(d_out: Array | Packed, x: Array | Packed, index: Array | Packed, *, overwrite: bool) -> Value:
    values = d_out.mask() if isinstance(d_out, Packed) else d_out
    rows = get_rows(index).reshape(-1)
    if values.shape[0] != rows.shape[0]:
        raise LoweringError("Out@GRAD and Index have different numbers of rows")
    whole = get_rows(x)
    zeros = jnp.zeros(whole.shape, values.dtype)
    if overwrite:  # only the last of repeated rows counts
        order = jnp.arange(rows.shape[0])
        if isinstance(index, Packed):  # the unused ones repeat the first one
            order = jnp.where(index.used, order, -1)
        last = jnp.full(whole.shape[0], -1).at[rows].max(order)
        kept = last[rows] == jnp.arange(rows.shape[0])
        values = jnp.where(kept.reshape(-1, *[1] * (whole.ndim - 1)), values, 0)
    found = zeros.at[rows].add(values)
    return x.replace(found, shown=False) if isinstance(x, Packed) else found


def _places(x: Array, index: Array, ctx: OpContext) -> tuple[Array, ...]:
    dims = jnp.asarray(x.shape[: index.shape[-1]])
    ctx.check((index >= 0) & (index < dims), f"Index points outside of an array of shape {list(x.shape)}")
    return tuple(jnp.moveaxis(index, -1, 0))


@lowers("gather_nd", sequences=True)
def gather_nd(x: Array | Packed, index: Array | Packed, *, ctx: OpContext) -> Value:
    if isinstance(x, Packed):
        raise LoweringError("its lowering takes no sequences")
    rows = get_rows(index)
    out = x.at[_places(x, rows, ctx)].get(mode="clip")
    return index.replace(out, shown=False) if isinstance(index, Packed) else out


@lowers("scatter")
def scatter(x: Array, ids: Array, updates: Array, *, overwrite: bool, ctx: OpContext) -> Array:
    rows = take_rows(ids, x.shape[0], ctx)
    if not overwrite:
        return x.at[rows].set(0).at[rows].add(updates)
    order = jnp.arange(rows.shape[0])
    last = jnp.full(x.shape[0], -1).at[rows].max(order)
    shape = (-1, *[1] * (x.ndim - 1))
    return jnp.where((last >= 0).reshape(shape), updates[jnp.maximum(last, 0)], x)


@lowers("scatter_grad")
def scatter_grad(d_out: Array, ids: Array, updates: Array) -> Results:
    return d_out, jnp.take(d_out, ids.reshape(-1), axis=0, mode="clip")


@lowers("scatter_nd_add", without={"X": "Out@GRAD"})
def scatter_nd_add(x: Array, index: Array, updates: Array, *, ctx: OpContext) -> Array:
    return x.at[_places(x, index, ctx)].add(updates)


@lowers("index_select")
def index_select(x: Array, index: Array, *, dim: int, ctx: OpContext) -> Array:
    return jnp.take(x, take_rows(index, x.shape[dim], ctx), axis=dim, mode="clip")


@lowers("index_sample")
def index_sample(x: Array, index: Array, *, ctx: OpContext) -> Array:
    take_rows(index, x.shape[1], ctx)
    return jnp.take_along_axis(x, index, 1, mode="clip")


@lowers("range", "linspace")
def refuse_values(start: Array, end: Array, step: Array) -> Array:
    """Raise LoweringError, since the number of elements depends on values; numpy's kernel then computes the
    result.
    """
    raise LoweringError("the number of elements depends on values")


def _find_starts(parts: list[Array] | list[Array | Packed]) -> Array:
    """Return the start of each part's used rows in the result, and then their total number."""
    totals = [part.total if isinstance(part, Packed) else part.shape[0] for part in parts]
    return jnp.concatenate(
        [jnp.zeros(1, jnp.int32), jnp.cumsum(jnp.stack([jnp.asarray(n, jnp.int32) for n in totals]))]
    )


@lowers("concat", across_rows=True)
def concat(parts: list[Value], axis_tensor: Value | None, *, axis: int) -> Packed:
    if axis_tensor is not None or axis != 0:
        raise LoweringError("its lowering takes no sequences")
    rows = [get_rows(part) for part in parts]
    starts = _find_starts(parts)
    places = np.cumsum([0, *(len(one) for one in rows[:-1])])  # with the unused rows
    row = jnp.arange(sum(len(one) for one in rows))
    part = jnp.searchsorted(starts[1:], row, side="right")
    place = jnp.asarray(places)[jnp.minimum(part, len(rows) - 1)] + row - starts[part]
    joined = jnp.take(jnp.concatenate(rows), jnp.where(row < starts[-1], place, 0), axis=0, mode="clip")
    levels = [len(part.offsets) if isinstance(part, Packed) else 0 for part in parts]
    if set(levels) == {1} and all(part.live is None for part in parts):
        offsets = [part.offsets[0][1:] + start for part, start in zip(parts, starts, strict=False)]
        offsets = jnp.concatenate([jnp.zeros(1, jnp.int32), *offsets]).astype(jnp.int32)
        shown = all(part.shown for part in parts)
        return Packed(joined, (offsets,), max(part.longest for part in parts), shown=shown)
    if max(levels) > 1:
        raise LoweringError("it reads sequences of sequences")
    return Packed(joined, (), joined.shape[0], shown=False, live=starts[-1])


@lowers("concat_grad", across_rows=True)
def concat_grad(
    d_out: Array | Packed, parts: list[Value], axis_tensor: Value | None, *, axis: int
) -> list[Any]:
    if axis_tensor is not None or axis != 0:
        raise LoweringError("its lowering takes no sequences")
    d_rows = get_rows(d_out)
    found = []
    for part, start in zip(parts, _find_starts(parts), strict=False):
        size = get_rows(part).shape[0]
        own = jnp.take(d_rows, start + jnp.arange(size), axis=0, mode="clip")
        found.append(part.replace(part.mask(own), shown=False) if isinstance(part, Packed) else own)
    return found


@lowers("multiplex", traces_gradient=True)
def multiplex(ids: Array, xs: list[Array], *, ctx: OpContext) -> Array:
    which = take_rows(ids, len(xs), ctx)
    return jnp.stack(xs)[which, jnp.arange(which.shape[0])]


@lowers("fill_constant_batch_size_like", sequences=True)
def fill_constant_batch_size_like(
    x: Value,
    *,
    shape: list[int],
    value: float,
    str_value: str,
    dtype: int,
    input_dim_idx: int,
    output_dim_idx: int,
) -> Value:
    sizes = list(shape)
    if not isinstance(x, Packed):
        like = x.shape
    elif x.live is not None and x.offsets:
        raise LoweringError("it selects some sequences of a batch")
    else:  # of sequences their count
        like = (x.count, *x.rows.shape[1:]) if x.offsets else x.rows.shape
    sizes[output_dim_idx] = like[input_dim_idx]
    out = jnp.full(sizes, float(str_value) if str_value else value, numpy_dtype(dtype))
    by_row = input_dim_idx == output_dim_idx == 0
    return x.replace(out) if isinstance(x, Packed) and not x.offsets and by_row else out


@lowers("diag_embed")
def diag_embed(x: Array, *, offset: int, dim1: int, dim2: int) -> Array:
    size = x.shape[-1] + abs(offset)
    place = jnp.arange(x.shape[-1])
    out = jnp.zeros((*x.shape[:-1], size, size), x.dtype)
    out = out.at[..., place + max(-offset, 0), place + max(offset, 0)].set(x)
    return jnp.moveaxis(out, (-2, -1), (dim1 % out.ndim, dim2 % out.ndim))


@lowers("expand", constants=True, traces_gradient=True)
def expand(
    x: Array,
    times: np.ndarray[Any, Any] | None,
    several: list[np.ndarray[Any, Any]],
    *,
    expand_times: list[int],
) -> Array:
    return jnp.tile(x, read_numbers(expand_times, times, several))


@lowers("expand_as", traces_gradient=True)
def expand_as(x: Array, target: Array) -> Array:
    return jnp.tile(x, [size // dim for size, dim in zip(target.shape, x.shape, strict=True)])


@lowers("one_hot")
def one_hot(
    x: Array, depth_tensor: Array, *, depth: int, dtype: int, allow_out_of_range: bool, ctx: OpContext
) -> Array:
    return one_hot_v2(
        x.reshape(x.shape[:-1]), depth_tensor, depth=depth, dtype=dtype,
        allow_out_of_range=allow_out_of_range, ctx=ctx,
    )  # fmt: skip


@lowers("one_hot_v2")
def one_hot_v2(
    x: Array,
    depth_tensor: Array | None,
    *,
    depth: int,
    dtype: int,
    allow_out_of_range: bool,
    ctx: OpContext,
) -> Array:
    if depth_tensor is not None:
        raise LoweringError("the depth is a variable")
    if not allow_out_of_range:
        ctx.check_below(x, depth, "X holds a value")
    return jax.nn.one_hot(x, depth, dtype=numpy_dtype(dtype))


@lowers("shard_index")
def shard_index(
    x: Array, *, index_num: int, nshards: int, shard_id: int, ignore_value: int, ctx: OpContext
) -> Array:
    ctx.check_below(x, index_num, "X holds a value")
    size = -(-index_num // nshards)
    return jnp.where(x // size == shard_id, x % size, jnp.asarray(ignore_value, x.dtype))


@stands_for(pads.replace_elements)
def _replace_elements(x: Array, places: np.ndarray[Any, np.dtype[Any]], values: Array) -> Array:
    return x.reshape(-1).at[places].set(values).reshape(x.shape)


@lowers("pad", traces_gradient=True)
def pad(x: Array, *, paddings: list[int], pad_value: float) -> Array:
    widths = list(zip(paddings[::2], paddings[1::2], strict=True))
    return jnp.pad(x, widths, constant_values=jnp.asarray(pad_value, x.dtype))


@lowers("pad_constant_like", traces_gradient=True)
def pad_constant_like(x: Array, y: Array, *, pad_value: float) -> Array:
    widths = [(0, dim - part) for dim, part in zip(x.shape, y.shape, strict=True)]
    return jnp.pad(y, widths, constant_values=jnp.asarray(pad_value, y.dtype))


@lowers("pad2d")
def pad2d(
    x: Array,
    tensor: Array | None,
    *,
    paddings: list[int],
    pad_value: float,
    mode: str,
    data_format: str,
) -> Array:
    if tensor is not None:
        raise LoweringError("Paddings is a variable")
    _, widths, kept = pads.pad_images(x.shape, paddings, mode, data_format)
    if mode == "constant":
        return jnp.pad(x, widths, constant_values=jnp.asarray(pad_value, x.dtype))[kept]
    return jnp.pad(x, widths, mode=mode)[kept]


@lowers("shape", sequences=True, constants=True)
def shape(x: Array | Packed) -> Value | np.ndarray[Any, Any]:
    if not isinstance(x, Packed) or x.full:
        return np.array(x.rows.shape if isinstance(x, Packed) else x.shape, np.int32)
    dims = jnp.array(x.rows.shape, jnp.int32)
    return dims.at[0].set(x.total.astype(jnp.int32))
