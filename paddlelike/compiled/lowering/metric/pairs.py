"""Metrics of pairs."""

from __future__ import annotations

from typing import Final

import jax
import jax.numpy as jnp

from paddlelike.compiled.lowerings import Results, lowers
from paddlelike.compiled.packing import LoweringError

_MOST_PAIRS: Final = 4096  # rows whose pairs are compared in a matrix


@lowers("positive_negative_pair")
def positive_negative_pair(
    score: jax.Array,
    label: jax.Array,
    query: jax.Array,
    positive: jax.Array,
    negative: jax.Array,
    neutral: jax.Array,
    weight: jax.Array | None,
    *,
    column: int,
) -> Results:
    scores, labels, queries = score[:, column], label.reshape(-1), query.reshape(-1)
    count = scores.shape[0]
    if count > _MOST_PAIRS:
        raise LoweringError(f"all pairs of {count} rows are too many for a matrix")
    weights = jnp.ones(count, score.dtype) if weight is None else weight.reshape(-1)
    by_score = scores[:, None] - scores
    by_label = labels[:, None] - labels
    pairs = (queries[:, None] == queries) & (by_label != 0) & jnp.triu(jnp.ones((count, count), bool), 1)
    right = by_score * by_label > 0
    mean = ((weights[:, None] + weights) * 0.5).astype(jnp.float64)
    totals = [jnp.where(pairs & kind, mean, 0).sum() for kind in (right, ~right, by_score == 0)]
    before = (positive, negative, neutral)
    if all(each is not None for each in before):
        totals = [each.reshape(-1)[0].astype(jnp.float64) + x for each, x in zip(before, totals, strict=True)]
    found = [total.reshape(1).astype(score.dtype) for total in totals]
    return found[0], found[1], found[2]
