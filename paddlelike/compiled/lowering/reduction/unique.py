"""unique: the number of results is only known at run time, so the first rows of the result are in use."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from paddlelike.compiled.lowerings import lowers
from paddlelike.compiled.packing import LoweringError
from paddlelike.compiled.values import Packed, Value
from paddlelike.core.dtypes import VarType, numpy_dtype


def count_used(rows: jax.Array, live: jax.Array) -> Packed:
    """Return rows, the first ``live`` of them in use."""
    return Packed(rows, (), rows.shape[0], shown=False, live=live.astype(jnp.int32))


@lowers("unique", sequences=True)
def unique(x: Value, *, dtype: int) -> tuple[Packed, Value]:
    found, index, _ = unique_with_counts(x, dtype=dtype)
    return found, index


@lowers("unique_with_counts", sequences=True)
def unique_with_counts(x: jax.Array | Packed, *, dtype: int) -> tuple[Packed, Value, Packed]:
    if isinstance(x, Packed):
        return _find_among_rows(x, dtype)
    found, index, counts, live = _find_unique(x, jnp.ones(x.shape[0], jnp.int64), dtype)
    return count_used(found, live), index, count_used(counts, live)


def _find_among_rows(x: Packed, dtype: int) -> tuple[Packed, Value, Packed]:
    """Return the same for the rows in use; the unused rows repeat the first one."""
    if x.offsets:
        raise LoweringError("its lowering takes no sequences")
    found, index, counts, live = _find_unique(x.rows, x.used.astype(jnp.int64), dtype)
    live = jnp.where(x.total > 0, live, 0)
    return count_used(found, live), x.replace(index), count_used(counts, live)


def _find_unique(
    x: jax.Array, weights: jax.Array, dtype: int
) -> tuple[jax.Array, jax.Array, jax.Array, jax.Array]:
    """Return unique numbers in order of appearance, the index of each of X, the counts, and how many."""
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
