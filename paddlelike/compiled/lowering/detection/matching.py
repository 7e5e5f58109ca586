"""What anchors are to predict: target_assign."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp

from paddlelike.compiled.lowering.sequences.sequence import require_sequences
from paddlelike.compiled.refusals import LoweringError
from paddlelike.compiled.table import lowers
from paddlelike.compiled.values import Packed


@lowers("target_assign", sequences=True)
def target_assign(x: Any, match: Any, negative: Any, *, mismatch_value: int) -> tuple[Any, Any]:
    require_sequences(x)
    match = match.rows[: x.count] if isinstance(match, Packed) else match
    if x.count != match.shape[0]:
        raise LoweringError("X has no sequence for each row of MatchIndices")
    matched = match > -1
    rows = x.offsets[-1][:-1][:, None] + jnp.maximum(match, 0)
    found = x.rows[rows, jnp.arange(match.shape[1]) % x.rows.shape[1]]
    fill = jnp.asarray(mismatch_value, x.rows.dtype)
    out = jnp.where(matched[..., None], found, fill)
    weight = matched
    if negative is not None:
        require_sequences(negative)
        anchor = jnp.where(negative.used, negative.rows.reshape(-1), match.shape[1])  # out of bounds: dropped
        image = jnp.minimum(negative.index_rows(), negative.count - 1)
        out = out.at[image, anchor].set(fill, mode="drop")
        weight = weight.at[image, anchor].set(True, mode="drop")
    return out, weight[..., None].astype(jnp.float32)
