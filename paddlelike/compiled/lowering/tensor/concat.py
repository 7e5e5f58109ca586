"""Tensors joined, of sequences as well."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from paddlelike.compiled.lowering.tensor.gather import take_rows
from paddlelike.compiled.lowerings import lowers
from paddlelike.compiled.packing import LoweringError
from paddlelike.compiled.tracing.context import OpContext
from paddlelike.compiled.values import Packed, Value


def _find_starts(parts: list[jax.Array] | list[jax.Array | Packed]) -> jax.Array:
    """Return where the rows in use of each part begin in the result, and behind them how many there are."""
    totals = [part.total if isinstance(part, Packed) else part.shape[0] for part in parts]
    return jnp.concatenate(
        [jnp.zeros(1, jnp.int32), jnp.cumsum(jnp.stack([jnp.asarray(n, jnp.int32) for n in totals]))]
    )


@lowers("concat", across_rows=True)
def concat(parts: list[Value], axis_tensor: Value | None, *, axis: int) -> Packed:
    if axis_tensor is not None or axis != 0:
        raise LoweringError("its lowering takes no sequences")
    rows = [part.rows if isinstance(part, Packed) else part for part in parts]
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
        raise LoweringError("sequences of sequences")
    return Packed(joined, (), joined.shape[0], shown=False, live=starts[-1])


@lowers("concat_grad", across_rows=True)
def concat_grad(
    d_out: jax.Array | Packed, parts: list[Value], axis_tensor: Value | None, *, axis: int
) -> list[Any]:
    if axis_tensor is not None or axis != 0:
        raise LoweringError("its lowering takes no sequences")
    d_rows = d_out.rows if isinstance(d_out, Packed) else d_out
    found = []
    for part, start in zip(parts, _find_starts(parts), strict=False):
        size = (part.rows if isinstance(part, Packed) else part).shape[0]
        own = jnp.take(d_rows, start + jnp.arange(size), axis=0, mode="clip")
        found.append(part.replace(part.mask(own), shown=False) if isinstance(part, Packed) else own)
    return found


@lowers("multiplex")
def multiplex(ids: jax.Array, xs: list[jax.Array], *, ctx: OpContext) -> jax.Array:
    which = take_rows(ids, len(xs), ctx)
    return jnp.stack(xs)[which, jnp.arange(which.shape[0])]
