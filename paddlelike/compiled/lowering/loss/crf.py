"""Linear chains of labels: the cost of a sequence's labels, and its best labels."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import Array

from paddlelike.compiled.lowering.sequence.sequence import (
    from_steps,
    require_sequences,
    sum_sequences,
    to_steps,
)
from paddlelike.compiled.lowerings import Results, lowers
from paddlelike.compiled.packing import LoweringError
from paddlelike.compiled.tracing.context import OpContext
from paddlelike.compiled.values import Packed, Value


@lowers("linear_chain_crf", sequences=True)
def linear_chain_crf(
    emission: Packed, transition: Array, label: Packed, length: Value | None, *, ctx: OpContext
) -> Results:
    require_sequences(emission, label)
    if length is not None:
        raise LoweringError("its input is a padded batch")
    start, end, between = transition[0], transition[1], transition[2:]
    labels = label.rows.reshape(-1)
    ctx.check_below(labels, transition.shape[1], "Label holds a value", ~label.used)
    steps, there = to_steps(emission)
    # Powers of e that are infinite have other gradients than their logarithms.
    for each in (emission.rows, jnp.exp(transition)):
        ctx.require(
            each < jnp.inf, "Emission or Transition hold NaN, infinity or numbers whose power of e overflows"
        )

    def run(alpha: Array, given: tuple[Array, ...]) -> tuple[Array, None]:
        rows, here = given
        ahead = jax.nn.logsumexp(alpha[:, :, None] + between, 1) + rows
        return jnp.where(here[:, None], ahead, alpha), None

    alpha, _ = jax.lax.scan(run, start + steps[0], (steps[1:], there[1:]))
    total = jax.nn.logsumexp(alpha + end, 1)
    # The score of the labels, row by row.
    row = jnp.arange(labels.shape[0])
    offsets = emission.offsets[-1]
    which = jnp.minimum(emission.index_rows(), emission.count - 1)
    first, last = offsets[:-1][which] == row, offsets[1:][which] - 1 == row
    scores = jnp.take_along_axis(emission.rows, labels[:, None], 1, mode="clip")[:, 0]
    before = labels[jnp.maximum(row - 1, 0)]
    scores = scores + jnp.where(first, start[labels], between[before, labels])
    scores = scores + jnp.where(last, end[labels], 0)
    score = sum_sequences(emission, jnp.where(emission.used, scores, 0))
    cost = jnp.where(emission.lengths > 0, total - score, 0)
    greatest = emission.rows.max(1, keepdims=True)
    exps = emission.replace(jnp.exp(emission.rows - greatest), shown=False)
    return None, exps, jnp.exp(transition), cost[:, None].astype(emission.rows.dtype)


@lowers("crf_decoding", sequences=True)
def crf_decoding(emission: Packed, transition: Array, label: Packed | None, length: Array | None) -> Value:
    require_sequences(emission)
    if length is not None:
        raise LoweringError("its input is a padded batch")
    emission = emission.replace(jnp.fmax(emission.rows, -jnp.inf))  # NaN is never the greatest score
    transition = jnp.fmax(transition, -jnp.inf)
    start, end, between = transition[0], transition[1], transition[2:]
    steps, there = to_steps(emission)

    def forwards(best: Array, given: tuple[Array, ...]) -> tuple[Array, Array]:
        rows, here = given
        scores = best[:, :, None] + between
        ahead = jnp.where(here[:, None], scores.max(1) + rows, best)
        return ahead, jnp.where(here[:, None], scores.argmax(1), jnp.arange(best.shape[1]))

    best, came_from = jax.lax.scan(forwards, start + steps[0], (steps[1:], there[1:]))
    last = (best + end).argmax(1)

    def backwards(state: Array, source: Array) -> tuple[Array, Array]:
        return jnp.take_along_axis(source, state[:, None], 1)[:, 0], state

    first, rest = jax.lax.scan(backwards, last, came_from, reverse=True)
    path = from_steps(emission, jnp.concatenate([first[None], rest])).astype(jnp.int64)[:, None]
    if label is not None:
        path = (path == label.rows.reshape(-1, 1)).astype(jnp.int64)
    return emission.replace(path)
