"""Operators that move elements: gather and scatter, one-hot, pads, slices of gradients."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from paddlelike.compiled.refusals import LoweringError
from paddlelike.compiled.table import lowers
from paddlelike.compiled.values import Packed
from paddlelike.core.dtypes import numpy_dtype
from paddlelike.ops.operands import read_numbers

Results = tuple[Any, ...]


def _rows(index: Any, height: int, ctx: Any) -> Any:
    """Return an index as one row of numbers, which must be below ``height``."""
    flat = index.reshape(-1)
    ctx.check((flat >= 0) & (flat < height), f"an index is outside of 0 to {height - 1}")
    return flat


@lowers("shape", sequences=True, constants=True)
def shape(x: Any) -> Any:
    if not isinstance(x, Packed) or x.full:
        return np.array(x.rows.shape if isinstance(x, Packed) else x.shape, np.int32)
    dims = jnp.array(x.rows.shape, jnp.int32)
    return dims.at[0].set(x.total.astype(jnp.int32))


@lowers("gather", sequences=True)
def gather(x: Any, index: Any, *, ctx: Any) -> Any:
    rows = x.rows if isinstance(x, Packed) else x
    height = x.total if isinstance(x, Packed) else x.shape[0]
    flat = (index.rows if isinstance(index, Packed) else index).reshape(-1)
    ctx.check((flat >= 0) & (flat < height), "an index is outside of the rows of X")
    out = jnp.take(rows, flat, axis=0, mode="clip")
    return index.replace(out, shown=False) if isinstance(index, Packed) else out


@lowers("gather_grad", sequences=True)
def gather_grad(d_out: Any, x: Any, index: Any, *, overwrite: bool) -> Any:
    values = d_out.mask() if isinstance(d_out, Packed) else d_out
    rows = (index.rows if isinstance(index, Packed) else index).reshape(-1)
    if values.shape[0] != rows.shape[0]:
        raise LoweringError("Out@GRAD and Index have different counts of rows")
    whole = x.rows if isinstance(x, Packed) else x
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


@lowers("expand", constants=True)
def expand(x: Any, times: Any, several: list[Any], *, expand_times: list[int]) -> Any:
    return jnp.tile(x, read_numbers(expand_times, times, several))


@lowers("expand_as")
def expand_as(x: Any, target: Any) -> Any:
    return jnp.tile(x, [size // dim for size, dim in zip(target.shape, x.shape, strict=True)])


def _places(x: Any, index: Any, ctx: Any) -> tuple[Any, ...]:
    dims = jnp.asarray(x.shape[: index.shape[-1]])
    ctx.check((index >= 0) & (index < dims), f"Index points outside of an array of shape {list(x.shape)}")
    return tuple(jnp.moveaxis(index, -1, 0))


@lowers("gather_nd", sequences=True)
def gather_nd(x: Any, index: Any, *, ctx: Any) -> Any:
    if isinstance(x, Packed):
        raise LoweringError("its lowering takes no sequences")
    rows = index.rows if isinstance(index, Packed) else index
    out = x.at[_places(x, rows, ctx)].get(mode="clip")
    return index.replace(out, shown=False) if isinstance(index, Packed) else out


@lowers("scatter")
def scatter(x: Any, ids: Any, updates: Any, *, overwrite: bool, ctx: Any) -> Any:
    rows = _rows(ids, x.shape[0], ctx)
    if not overwrite:
        return x.at[rows].set(0).at[rows].add(updates)
    order = jnp.arange(rows.shape[0])
    last = jnp.full(x.shape[0], -1).at[rows].max(order)
    shape = (-1, *[1] * (x.ndim - 1))
    return jnp.where((last >= 0).reshape(shape), updates[jnp.maximum(last, 0)], x)


@lowers("scatter_grad")
def scatter_grad(d_out: Any, ids: Any, updates: Any) -> Results:
    return d_out, jnp.take(d_out, ids.reshape(-1), axis=0, mode="clip")


@lowers("scatter_nd_add", without={"X": "Out@GRAD"})
def scatter_nd_add(x: Any, index: Any, updates: Any, *, ctx: Any) -> Any:
    return x.at[_places(x, index, ctx)].add(updates)


@lowers("index_select")
def index_select(x: Any, index: Any, *, dim: int, ctx: Any) -> Any:
    return jnp.take(x, _rows(index, x.shape[dim], ctx), axis=dim, mode="clip")


@lowers("index_sample")
def index_sample(x: Any, index: Any, *, ctx: Any) -> Any:
    _rows(index, x.shape[1], ctx)
    return jnp.take_along_axis(x, index, 1, mode="clip")


@lowers("multiplex")
def multiplex(ids: Any, xs: list[Any], *, ctx: Any) -> Any:
    which = _rows(ids, len(xs), ctx)
    return jnp.stack(xs)[which, jnp.arange(which.shape[0])]


@lowers("one_hot")
def one_hot(x: Any, depth_tensor: Any, *, depth: int, dtype: int, allow_out_of_range: bool, ctx: Any) -> Any:
    return one_hot_v2(
        x.reshape(x.shape[:-1]), depth_tensor, depth=depth, dtype=dtype,
        allow_out_of_range=allow_out_of_range, ctx=ctx,
    )  # fmt: skip


@lowers("one_hot_v2")
def one_hot_v2(
    x: Any, depth_tensor: Any, *, depth: int, dtype: int, allow_out_of_range: bool, ctx: Any
) -> Any:
    if depth_tensor is not None:
        raise LoweringError("the depth is a variable")
    if not allow_out_of_range:
        ctx.check((x >= 0) & (x < depth), f"X holds a value outside of 0 to {depth - 1}")
    return jax.nn.one_hot(x, depth, dtype=numpy_dtype(dtype))


@lowers("shard_index")
def shard_index(x: Any, *, index_num: int, nshards: int, shard_id: int, ignore_value: int, ctx: Any) -> Any:
    ctx.check((x >= 0) & (x < index_num), f"X holds a value outside of 0 to {index_num - 1}")
    size = -(-index_num // nshards)
    return jnp.where(x // size == shard_id, x % size, jnp.asarray(ignore_value, x.dtype))


@lowers("pad")
def pad(x: Any, *, paddings: Any, pad_value: float) -> Any:
    widths = list(zip(paddings[::2], paddings[1::2], strict=True))
    return jnp.pad(x, widths, constant_values=jnp.asarray(pad_value, x.dtype))


@lowers("pad_constant_like")
def pad_constant_like(x: Any, y: Any, *, pad_value: float) -> Any:
    widths = [(0, dim - part) for dim, part in zip(x.shape, y.shape, strict=True)]
    return jnp.pad(y, widths, constant_values=jnp.asarray(pad_value, y.dtype))


@lowers("pad2d")
def pad2d(x: Any, tensor: Any, *, paddings: Any, pad_value: float, mode: str, data_format: str) -> Any:
    if tensor is not None:
        raise LoweringError("Paddings is a variable")
    height, width = (2, 3) if data_format == "NCHW" else (1, 2)
    widths = [(0, 0)] * 4
    widths[height], widths[width] = tuple(paddings[:2]), tuple(paddings[2:])
    if mode == "constant":
        return jnp.pad(x, widths, constant_values=jnp.asarray(pad_value, x.dtype))
    return jnp.pad(x, widths, mode=mode)


@lowers("unfold")
def unfold(x: Any, *, kernel_sizes: Any, strides: Any, paddings: Any, dilations: Any) -> Any:
    top, left, bottom, right = paddings
    patches = jax.lax.conv_general_dilated_patches(
        x, kernel_sizes, strides, ((top, bottom), (left, right)), rhs_dilation=dilations
    )
    return patches.reshape(x.shape[0], patches.shape[1], -1)


@lowers("temporal_shift", without={"X": "Out@GRAD"})
def temporal_shift(x: Any, *, seg_num: int, shift_ratio: float) -> Any:
    frames = x.reshape(-1, seg_num, *x.shape[1:])
    first, second = int(x.shape[1] * shift_ratio), int(x.shape[1] * 2 * shift_ratio)
    zero = jnp.zeros_like(frames[:, :1])
    before = jnp.concatenate([zero, frames[:, :-1]], 1)[:, :, :first]
    after = jnp.concatenate([frames[:, 1:], zero], 1)[:, :, first:second]
    return jnp.concatenate([before, after, frames[:, :, second:]], 2).reshape(x.shape)


@lowers("diag_embed")
def diag_embed(x: Any, *, offset: int, dim1: int, dim2: int) -> Any:
    size = x.shape[-1] + abs(offset)
    place = jnp.arange(x.shape[-1])
    out = jnp.zeros((*x.shape[:-1], size, size), x.dtype)
    out = out.at[..., place + max(-offset, 0), place + max(offset, 0)].set(x)
    return jnp.moveaxis(out, (-2, -1), tuple(sorted((dim1 % out.ndim, dim2 % out.ndim))))


@lowers("fill_constant_batch_size_like", sequences=True)
def fill_constant_batch_size_like(
    x: Any, *, shape: Any, value: float, str_value: str, dtype: int, input_dim_idx: int, output_dim_idx: int
) -> Any:
    sizes = list(shape)
    if not isinstance(x, Packed):
        like = x.shape
    elif x.live is not None and x.offsets:
        raise LoweringError("some sequences of a batch")
    else:  # of sequences their count
        like = (x.count, *x.rows.shape[1:]) if x.offsets else x.rows.shape
    sizes[output_dim_idx] = like[input_dim_idx]
    out = jnp.full(sizes, float(str_value) if str_value else value, numpy_dtype(dtype))
    by_row = isinstance(x, Packed) and not x.offsets and input_dim_idx == output_dim_idx == 0
    return x.replace(out) if by_row else out


@lowers("range", "linspace")
def refuse_values(start: Any, end: Any, step: Any) -> Any:
    """Refuse numbers that only the device knows; of constants numpy's kernel computes the result."""
    raise LoweringError("values say how many numbers there are")
