"""Searches whose number of results is only known at run time."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from paddlelike.compiled.lowering.reduction.unique import count_used
from paddlelike.compiled.lowerings import lowers
from paddlelike.compiled.values import Packed


@lowers("where_index")
def where_index(condition: jax.Array) -> Packed:
    places = jnp.nonzero(condition, size=condition.size)
    rows = jnp.stack(places, -1).astype(jnp.int64)
    return count_used(rows, (condition != 0).sum())
