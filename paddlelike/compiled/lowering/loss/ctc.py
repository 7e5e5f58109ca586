"""Connectionist temporal classification (Graves et al., 2006): warpctc."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import Array

from paddlelike.compiled.lowering.sequence.part import keep_rows
from paddlelike.compiled.lowering.sequence.sequence import require_sequences, spread, to_steps
from paddlelike.compiled.lowerings import lowers
from paddlelike.compiled.packing import LoweringError
from paddlelike.compiled.tracing.context import OpContext
from paddlelike.compiled.values import Packed, Value

_NEVER = -1e30  # the logarithm of probability 0, finite so that differences are not NaN


@lowers("warpctc", sequences=True)
def warpctc(
    logits: Value, label: Value, length: Array | None, label_length: Array | None,
    *, blank: int, norm_by_times: bool, ctx: OpContext,
) -> tuple[None, Value]:  # fmt: skip
    if isinstance(logits, Packed) and isinstance(label, Packed):
        if logits.count != label.count or len(logits.offsets) > 1 or len(label.offsets) > 1:
            raise LoweringError("Logits and Label have different sequences")
        steps, there = to_steps(logits)
        labels, known = (part.T for part in to_steps(label.replace(label.rows.reshape(-1))))
        lengths, label_lengths = logits.lengths, label.lengths
    elif isinstance(logits, Packed) or isinstance(label, Packed) or length is None or label_length is None:
        raise LoweringError("Logits or Label have no sequences")
    else:
        steps, lengths, label_lengths = logits, length.reshape(-1), label_length.reshape(-1)
        there = jnp.arange(steps.shape[0])[:, None] < lengths
        known = jnp.arange(label.shape[1]) < label_lengths[:, None]
        labels = label
        ctx.check(lengths <= steps.shape[0], "LogitsLength is larger than Logits")
        ctx.check(label_lengths <= label.shape[1], "LabelLength is larger than Label")
    ctx.require(steps < jnp.inf, "Logits hold NaN or infinity")
    classes = steps.shape[-1]
    ctx.check_below(labels, classes, "Label holds a value", ~known)
    labels = jnp.where(known, labels, blank)
    loss = _find_loss(steps, there, labels, label_lengths, blank)
    if norm_by_times:  # of the gradient only
        share = loss / jnp.maximum(lengths, 1).astype(loss.dtype)
        loss = share + jax.lax.stop_gradient(loss - share)
    return None, loss[:, None]


def _find_loss(steps: Array, there: Array, labels: Array, label_lengths: Array, blank: int) -> Array:
    """Return ``-log`` of the probability of each sequence's labels, 0 if there is none.

    ``steps`` are the logits, (T, N, classes).

    A path goes through the states blank, label, blank, label, ..., blank of a sequence; from one step to
    the next it stays, advances by one state, or skips a blank between two different labels.
    """
    count, longest = labels.shape
    states = jnp.full((count, 2 * longest + 1), blank).at[:, 1::2].set(labels)
    skips = jnp.zeros(states.shape, bool)
    skips = skips.at[:, 2:].set((states[:, 2:] != blank) & (states[:, 2:] != states[:, :-2]))
    log_p = jax.nn.log_softmax(steps, -1)
    emitted = jnp.take_along_axis(log_p, jnp.broadcast_to(states, (steps.shape[0], *states.shape)), -1)

    def shift(alpha: Array, by: int) -> Array:
        return jnp.pad(alpha, ((0, 0), (by, 0)), constant_values=_NEVER)[:, : alpha.shape[1]]

    def advance(alpha: Array, given: tuple[Array, ...]) -> tuple[Array, None]:
        row, here = given
        ahead = jnp.logaddexp(alpha, shift(alpha, 1))
        ahead = jnp.logaddexp(ahead, jnp.where(skips, shift(alpha, 2), _NEVER)) + row
        return jnp.where(here[:, None], jnp.maximum(ahead, _NEVER), alpha), None

    first = jnp.where(jnp.arange(states.shape[1]) < 2, emitted[0], _NEVER)
    alpha, _ = jax.lax.scan(advance, first, (emitted[1:], there[1:]))
    ends = (2 * label_lengths)[:, None].astype(jnp.int32)
    last = jnp.take_along_axis(alpha, ends, 1)[:, 0]
    before = jnp.take_along_axis(alpha, jnp.maximum(ends - 1, 0), 1)[:, 0]
    log_chance = jnp.logaddexp(last, jnp.where(label_lengths > 0, before, _NEVER))
    possible = (log_chance > _NEVER / 2) & there[0]
    return jnp.where(possible, -jnp.where(possible, log_chance, 0), 0)


@lowers("ctc_align", sequences=True)
def ctc_align(
    x: Array | Packed,
    length: Value | None,
    *,
    blank: int,
    merge_repeated: bool,
    padding_value: int,
    ctx: OpContext,
) -> tuple[Value, Value | None]:
    if length is not None:
        if isinstance(x, Packed):
            raise LoweringError("a padded batch must not have a LoD as well")
        return _align_padded(x, length, blank, merge_repeated, padding_value)
    require_sequences(x)
    if len(x.offsets) > 1 or x.live is not None:
        raise LoweringError("it reads sequences of sequences")
    flat = x.rows.reshape(-1)
    kept = _differs_from(blank, flat)
    if merge_repeated:
        is_first = jnp.arange(flat.shape[0]) == spread(x, x.offsets[-1][:-1])
        kept &= flat != jnp.where(is_first, -1, jnp.roll(flat, 1))
    out, lengths = keep_rows(x.replace(flat[:, None]), kept)
    ctx.require(lengths.sum() > 0, "its result has another shape if no label is left")
    return out, None


def _differs_from(blank: int, ids: Array) -> Array:
    """Return whether ids differ from the blank: as Fluid compares, by the lower half of an int64."""
    return ids.astype(jnp.uint32).astype(jnp.int64) != blank


def _align_padded(
    x: Array, length: Array, blank: int, merge_repeated: bool, fill: int
) -> tuple[Array, Array]:
    rows = x.reshape(x.shape[0], -1)
    kept = _differs_from(blank, rows)
    if merge_repeated:
        kept &= rows != jnp.roll(rows, 1, 1).at[:, :1].set(-1)
    kept &= jnp.arange(rows.shape[1]) < length.reshape(-1, 1)
    counts = kept.sum(1)
    order = jnp.argsort(~kept, axis=1, stable=True)
    there = jnp.arange(rows.shape[1]) < counts[:, None]
    out = jnp.where(there, jnp.take_along_axis(rows, order, 1), jnp.asarray(fill, x.dtype))
    return out.reshape(x.shape), counts[:, None].astype(jnp.int64)
