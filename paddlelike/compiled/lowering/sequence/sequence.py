"""Operators on sequences, which are padded here: see :class:`~paddlelike.compiled.values.Packed`."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import Array

from paddlelike.compiled.lowerings import lowers
from paddlelike.compiled.packing import LoweringError, find_bucket
from paddlelike.compiled.tracing.context import OpContext
from paddlelike.compiled.values import Packed, Value, get_rows
from paddlelike.framework import follows_fluid


def require_sequences(*values: Value | None) -> None:
    """Raise LoweringError unless all values are sequences; numpy's kernel then raises the proper error."""
    if not all(isinstance(value, Packed) and value.offsets for value in values):
        raise LoweringError("an input has no LoD")


def sum_sequences(x: Packed, rows: Array) -> Array:
    """Return the sum of the rows of each sequence."""
    total = jnp.zeros((x.count + 1, *rows.shape[1:]), rows.dtype)
    return total.at[x.index_rows()].add(rows)[: x.count]


def spread(x: Packed, values: Array) -> Array:
    """Return, for each row of ``x``, the element of ``values`` that belongs to its sequence."""
    return jnp.take(values, x.index_rows(), axis=0, mode="clip")


def to_steps(x: Packed, *, reverse: bool = False) -> tuple[Array, Array]:
    """Return the rows as (longest, sequences, ...), and a mask (longest, sequences) of existing ones."""
    step = jnp.arange(x.longest)[:, None]
    there = step < x.lengths
    at = x.offsets[-1][1:] - 1 - step if reverse else x.offsets[-1][:-1] + step
    return jnp.take(x.rows, jnp.where(there, at, 0), axis=0, mode="clip"), there


def from_steps(x: Packed, steps: Array, *, reverse: bool = False) -> Array:
    """Return rows like the rows of ``x`` from the result of :func:`to_steps`."""
    which = jnp.minimum(x.index_rows(), x.count - 1)
    row = jnp.arange(x.rows.shape[0])
    first, end = x.offsets[-1][:-1][which], x.offsets[-1][1:][which]
    step = end - 1 - row if reverse else row - first
    return steps[jnp.clip(step, 0, x.longest - 1), which]


def _above(x: Packed, rows: Array) -> Value:
    """Return one row per sequence, with the LoD levels above the last."""
    if len(x.offsets) == 1:
        if x.live is None:
            return rows
        return Packed(rows, (), x.count, shown=False, live=x.live, source=x.source)
    return Packed(rows, x.offsets[:-1], find_bucket(rows.shape[0]))


@lowers("sequence_pool", sequences=True)
def sequence_pool(x: Packed, *, pooltype: str, pad_value: float, is_test: bool) -> tuple[Value, Value | None]:
    require_sequences(x)
    lengths = x.lengths
    column = (-1, *[1] * (x.rows.ndim - 1))
    index = None
    if pooltype in ("FIRST", "LAST"):
        at = x.offsets[-1][:-1] if pooltype == "FIRST" else x.offsets[-1][1:] - 1
        pooled = jnp.take(x.rows, jnp.maximum(at, 0), axis=0, mode="clip")
    elif pooltype == "MAX":
        steps, there = to_steps(x)
        there = there.reshape(*there.shape, *[1] * (x.rows.ndim - 1))
        masked = jnp.where(there, steps, -jnp.inf)
        best = jnp.argmax(masked, 0)
        pooled = jnp.take_along_axis(steps, best[None], 0)[0]
        index = None if is_test else (best + x.offsets[-1][:-1].reshape(column)).astype(jnp.int32)
        index = None if index is None else jnp.where((lengths > 0).reshape(column), index, -1)
    else:
        pooled = sum_sequences(x, x.mask())
        n = jnp.maximum(lengths, 1).astype(x.rows.dtype).reshape(column)
        pooled = {"SUM": pooled, "AVERAGE": pooled / n, "SQRT": pooled / jnp.sqrt(n)}[pooltype]
    pooled = jnp.where((lengths > 0).reshape(column), pooled, jnp.asarray(pad_value, x.rows.dtype))
    return _above(x, pooled), index


@lowers("sequence_softmax", sequences=True)
def sequence_softmax(x: Packed) -> Value:
    require_sequences(x)
    flat = x.rows.reshape(-1)
    greatest = jnp.full(x.count + 1, -jnp.inf, flat.dtype).at[x.index_rows()].max(flat)[: x.count]
    raised = jnp.exp(jnp.where(x.used, flat - spread(x, greatest), 0))
    total = sum_sequences(x, jnp.where(x.used, raised, 0))
    total = jnp.where(total == 0, 1, total)  # no rows
    return x.replace((raised / spread(x, total)).reshape(x.rows.shape))


@lowers("sequence_reverse", sequences=True)
def sequence_reverse(x: Packed) -> Value:
    require_sequences(x)
    first, end = spread(x, x.offsets[-1][:-1]), spread(x, x.offsets[-1][1:])
    row = jnp.arange(x.rows.shape[0])
    return x.replace(jnp.take(x.rows, jnp.where(x.used, first + end - 1 - row, row), axis=0, mode="clip"))


def _rows_of_sequences(x: Array | Packed, y: Packed) -> Array:
    """Return one row per sequence of ``y``."""
    if (isinstance(x, Packed) and x.offsets) or len(y.offsets) > 1:
        raise LoweringError("X has a LoD, or Y has several levels")
    return get_rows(x)


@lowers("sequence_expand_as", sequences=True)
def sequence_expand_as(x: Value, y: Packed) -> Value:
    require_sequences(y)
    return y.replace(spread(y, _rows_of_sequences(x, y)), shown=True)


@lowers("sequence_expand", sequences=True)
def sequence_expand(x: Value, y: Packed, *, ref_level: int) -> Value:
    require_sequences(y)
    return y.replace(spread(y, _rows_of_sequences(x, y)), shown=False)


@lowers("sequence_conv", sequences=True)
def sequence_conv(
    x: Packed, padding: Value, filter: Array,  # noqa: A002
    *, contextLength: int, contextStart: int, paddingTrainable: bool,  # noqa: N803
) -> Value:  # fmt: skip
    require_sequences(x)
    if paddingTrainable:
        raise LoweringError("the padding is trained")
    if contextStart > 0 and follows_fluid("sequence_conv_gradient"):
        raise LoweringError("Fluid has another gradient for short sequences")
    rows = jnp.arange(x.rows.shape[0])[:, None] + jnp.arange(contextStart, contextStart + contextLength)
    first, end = (spread(x, edge)[:, None] for edge in (x.offsets[-1][:-1], x.offsets[-1][1:]))
    inside = (rows >= first) & (rows < end) & x.used[:, None]
    columns = jnp.take(x.rows, jnp.where(inside, rows, 0), axis=0, mode="clip")
    columns = jnp.where(inside[..., None], columns, 0).reshape(x.rows.shape[0], -1)
    return x.replace(columns.astype(x.rows.dtype) @ filter)


@lowers("lod_reset", sequences=True)
def lod_reset(
    x: Array | Packed,
    y: Array | Packed | None,
    *,
    target_lod: list[int],
    append: bool,
    ctx: OpContext,
) -> Value:
    if isinstance(y, Packed) and y.offsets:
        return y.replace(_fit_rows(x, y, ctx), shown=True)
    numbers = get_rows(y)
    offsets = jnp.asarray(target_lod if y is None else numbers).reshape(-1).astype(jnp.int32)
    if isinstance(y, Packed) or offsets.size < 2:
        raise LoweringError("the number of sequences is only known at run time")
    above = x.offsets if append and isinstance(x, Packed) else ()
    rows, total = (x.rows, x.total) if isinstance(x, Packed) else (x, x.shape[0])
    is_cut = (offsets[0] == 0) & (offsets[-1] == total) & (offsets[1:] >= offsets[:-1])
    ctx.check(is_cut, "the offsets do not cut the rows of X into sequences")
    ctx.note_count(offsets, x)
    rows = _pad_rows(rows, find_bucket(rows.shape[0]))
    return Packed(rows, (*above, offsets), rows.shape[0])


@lowers("lod_reset_grad", sequences=True)
def lod_reset_grad(d_out: Array | Packed, x: Array | Packed) -> Value:
    rows = d_out.mask() if isinstance(d_out, Packed) else d_out
    if not isinstance(x, Packed):
        return rows[: x.shape[0]]
    missing = max(x.rows.shape[0] - rows.shape[0], 0)
    rows = jnp.concatenate([rows, jnp.zeros((missing, *rows.shape[1:]), rows.dtype)])
    return x.replace(rows[: x.rows.shape[0]], shown=False)


def _fit_rows(x: Array | Packed, like: Packed, ctx: OpContext) -> Array:
    """Return the rows of ``x``, as many as ``like`` has including unused rows."""
    rows, total = (x.rows, x.total) if isinstance(x, Packed) else (x, x.shape[0])
    size = like.rows.shape[0]
    ctx.require(total == like.total, "X has another number of rows than the LoD of Y")
    return rows[:size] if rows.shape[0] > size else _pad_rows(rows, size)


def _pad_rows(rows: Array, size: int) -> Array:
    """Return rows padded with copies of the first row."""
    missing = size - rows.shape[0]
    unused = jnp.broadcast_to(rows[:1], (missing, *rows.shape[1:]))
    return jnp.concatenate([rows, jax.lax.stop_gradient(unused)]) if missing else rows


@lowers("row_conv", sequences=True)
def row_conv(x: Array | Packed, filter: Array) -> Value:  # noqa: A002
    if not isinstance(x, Packed):
        raise LoweringError("its input is a padded batch")
    end = spread(x, x.offsets[-1][1:])
    total = jnp.zeros_like(x.rows)
    row = jnp.arange(x.rows.shape[0])
    for ahead in range(filter.shape[0]):
        there = (row + ahead < end) & x.used
        rows = jnp.take(x.rows, jnp.where(there, row + ahead, 0), axis=0, mode="clip")
        total = total + jnp.where(there[:, None], jnp.where(there[:, None], rows, 0) * filter[ahead], 0)
    return x.replace(total)
