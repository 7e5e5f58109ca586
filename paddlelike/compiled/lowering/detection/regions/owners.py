"""Find the image of each region, and build results with one row for each region."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import jax
import jax.numpy as jnp
from jax import Array

from paddlelike.compiled.packing import LoweringError
from paddlelike.compiled.values import Packed, Value, get_rows

_AT_ONCE: Final = 16  # regions whose parts of the images are in memory at one time


def find_owners(
    rois: Array | Packed, images: int, offsets: Array | Packed | None = None
) -> tuple[Array, Array]:
    """Return the rows of regions, and the image of each region, from their LoD or from ``offsets``."""
    if offsets is None:
        if not isinstance(rois, Packed) or rois.count != images:
            raise LoweringError("the regions have no sequence for each image")
        return rois.rows, jnp.minimum(rois.index_rows(), images - 1)
    if isinstance(offsets, Packed):
        raise LoweringError("the offsets have a LoD")
    rows = get_rows(rois)
    at = jnp.arange(rows.shape[0])
    owners = jnp.searchsorted(offsets.reshape(-1)[1:], at, side="right")
    return rows, jnp.minimum(owners, images - 1)


def like_regions(rois: Array | Packed, out: Array) -> Value:
    """Return results as rows of the regions, without a separate LoD."""
    return rois.replace(out, shown=False) if isinstance(rois, Packed) else out


def map_regions(function: Callable[..., Any], *args: object) -> Array:
    """Return ``function`` of the parts of ``args`` for every region, stacked."""
    return jax.lax.map(lambda given: function(*given), args, batch_size=_AT_ONCE)


def round_half_away(x: Array) -> Array:
    """Return x rounded as C++'s ``round``: halves away from zero."""
    return jnp.trunc(x + jnp.copysign(jnp.asarray(0.5, x.dtype), x))


def divide(x: Array, count: int) -> Array:
    """Return x / count with the bits of a division; XLA would multiply float32 by the inverse."""
    return (x.astype(jnp.float64) / count).astype(x.dtype)


def multiply(x: Array, y: Array) -> Array:
    """Return x * y, rounded to float32 before later additions; XLA would skip that rounding."""
    return (x.astype(jnp.float64) * y.astype(jnp.float64)).astype(x.dtype)
