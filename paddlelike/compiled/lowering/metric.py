"""Lowerings of metrics."""

from __future__ import annotations

from typing import Final

import jax
import jax.numpy as jnp
from jax import Array

from paddlelike.compiled.lowering.sequence.sequence import require_sequences, to_steps
from paddlelike.compiled.lowerings import Results, lowers
from paddlelike.compiled.packing import LoweringError
from paddlelike.compiled.tracing.context import OpContext
from paddlelike.compiled.values import Packed, Value, get_rows
from paddlelike.framework import follows_fluid
from paddlelike.ops.metric.sequence import SCHEMES


def _count(ids: Array, chosen: Array, classes: int, weights: Array | None = None) -> Array:
    """Return how often each class occurs among the chosen ids, in float64 if there are weights."""
    ids = jnp.where(chosen, ids, classes)  # out of bounds: dropped
    if weights is None:
        return jnp.zeros(classes, jnp.int64).at[ids].add(1, mode="drop")
    return jnp.zeros(classes, jnp.float64).at[ids].add(weights.astype(jnp.float64), mode="drop")


@lowers("auc", sequences=True)
def auc(
    predict: Value, label: Value, pos: Array, neg: Array,
    *, curve: str, num_thresholds: int, slide_steps: int, ctx: OpContext,
) -> Results:  # fmt: skip
    if curve == "PR" and not follows_fluid("auc_curve"):
        raise LoweringError("it computes the area under the curve of precision and recall")
    (predicted, given), used = _unpack(predict, label)
    score, labels = predicted[:, -1], given.reshape(-1)
    ctx.check((score >= 0) & (score <= 1), "Predict holds a value outside of 0 to 1")
    buckets = num_thresholds + 1
    place = (score * jnp.asarray(num_thresholds, score.dtype)).astype(jnp.int64)
    done = pos.reshape(-1)[-1]
    totals, tables = [], []
    for table, chosen in ((pos, labels > 0), (neg, labels == 0)):
        count = _count(place, chosen & used, buckets)
        if slide_steps == 0:
            total = table.reshape(-1)[:buckets] + count
            tables.append(total.reshape(1, buckets))
        else:
            total, new = _advance_window(table.reshape(-1), count, buckets, slide_steps, done)
            tables.append(new.reshape(table.shape))
        totals.append(total)
    rising, falling = (total[::-1] for total in totals)
    found = rising.cumsum()
    twice = found + found - rising  # the positives found before and after each score
    area = (falling.astype(jnp.float64) * twice.astype(jnp.float64)).sum() / 2
    square = found[-1].astype(jnp.float64) * falling.sum().astype(jnp.float64)
    area = area / jnp.where(square == 0, 1, square)
    return area.reshape(1), tables[0], tables[1]


def _unpack(*values: Value) -> tuple[list[Array], Array]:
    """Return the rows of sequences and arrays with the same number of rows, and a mask of the rows in use."""
    used = [x.used for x in values if isinstance(x, Packed)]
    rows = [get_rows(x) for x in values]
    if len({len(x) for x in rows}) > 1:
        raise LoweringError("its inputs have sequences of different numbers of rows")
    return rows, used[0] if used else jnp.asarray(True)


def _advance_window(flat: Array, count: Array, buckets: int, steps: int, done: Array) -> tuple[Array, Array]:
    """Return the counts of the last steps, and the table with the counts of this step added."""
    latest = flat[:-1].reshape(steps + 1, buckets)
    place = done % steps
    total = latest[steps] + count - latest[place]
    latest = latest.at[steps].set(total).at[place].set(count)
    return total, jnp.concatenate([latest.reshape(-1), flat[-1:] + 1])


@lowers("precision_recall")
def precision_recall(
    probs: Array,
    indices: Array,
    labels: Array,
    weights: Array | None,
    states: Array | None,
    *,
    class_number: int,
    ctx: OpContext,
) -> Results:
    found, label = indices.reshape(-1), labels.reshape(-1)
    for name, ids in (("Indices", found), ("Labels", label)):
        ctx.check_below(ids, class_number, f"{name} hold a value")
    weight = jnp.ones(found.shape) if weights is None else weights.reshape(-1)
    right = found == label
    true_pos, false_pos, false_neg = (
        _count(ids, chosen, class_number, weight)
        for ids, chosen in ((found, right), (found, ~right), (label, ~right))
    )
    true_neg = weight.sum() - true_pos - false_pos - false_neg
    batch = jnp.stack([true_pos, false_pos, true_neg, false_neg], 1)
    total = batch if states is None else batch + states
    shown = (_measure(counts.astype(probs.dtype)) for counts in (batch, total))
    return *shown, total.astype(probs.dtype)


def _measure(states: Array) -> Array:
    """Return macro and micro precision, recall and F1. A class that never occurs has the value 1."""

    def share(part: Array, rest: Array) -> Array:
        whole = part + rest
        known = (part > 0) | (rest > 0)
        return jnp.where(known, part / jnp.where(known, whole, 1), 1.0)

    def join(precision: Array, recall: Array) -> Array:
        both = precision + recall
        known = (precision > 0) | (recall > 0)
        return jnp.where(known, 2 * precision * recall / jnp.where(known, both, 1), 0.0)

    true_pos, false_pos, _, false_neg = states.T
    macro = [share(true_pos, rest).mean() for rest in (false_pos, false_neg)]
    micro = [share(true_pos.sum(), rest.sum()) for rest in (false_pos, false_neg)]
    return jnp.stack([*macro, join(*macro), *micro, join(*micro)]).astype(jnp.float64)


@lowers("mean_iou")
def mean_iou(
    predictions: Array,
    labels: Array,
    wrongs: Array,
    corrects: Array,
    means: Array,
    *,
    num_classes: int,
    ctx: OpContext,
) -> Results:
    found, label = predictions.reshape(-1), labels.reshape(-1)
    ctx.check_below(found, num_classes, "Predictions hold a value")
    ctx.check_below(label, num_classes, "Labels hold a value")
    right = found == label
    correct = _count(found, right, num_classes)
    wrong = _count(found, ~right, num_classes) + _count(label, ~right, num_classes)
    correct, wrong = sum(corrects or [], correct), sum(wrongs or [], wrong)
    seen = correct + wrong
    shares = jnp.where(seen > 0, correct / jnp.maximum(seen, 1), 0)
    mean = shares.sum() / (seen > 0).sum()
    for one in means or []:
        mean = mean + one.reshape(-1)[0]
    return mean.reshape(1).astype(jnp.float32), wrong.astype(jnp.int32), correct.astype(jnp.int32)


@lowers("accuracy", sequences=True)
def accuracy(out: Value, indices: Array | Packed, label: Array | Packed) -> tuple[Value, ...]:
    used = None
    if isinstance(indices, Packed):
        used = indices.used
        indices = indices.rows
    label = get_rows(label)
    hit = (indices == label.reshape(-1, 1)).any(1)
    total = jnp.asarray(hit.shape[0], jnp.int32) if used is None else used.sum().astype(jnp.int32)
    correct = (hit if used is None else hit & used).sum().astype(jnp.int32)
    share = (correct / jnp.maximum(total, 1)).astype(jnp.float32)
    return share.reshape(1), correct.reshape(1), total.reshape(1)


_MOST_PAIRS: Final = 4096  # rows whose pairs are compared in a matrix


@lowers("positive_negative_pair")
def positive_negative_pair(
    score: Array,
    label: Array,
    query: Array,
    positive: Array,
    negative: Array,
    neutral: Array,
    weight: Array | None,
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


def _read_padded(x: Array | Packed, length: Array | Packed | None) -> tuple[Array, Array]:
    """Return sequences, given by LoD or as a padded batch, as an array (N, longest) and their lengths."""
    if length is None:
        require_sequences(x)
        steps, _ = to_steps(x.replace(x.rows.reshape(x.rows.shape[0], -1)[:, 0]))
        return steps.T, x.lengths
    if isinstance(x, Packed) or isinstance(length, Packed):
        raise LoweringError("a padded batch must not have a LoD as well")
    return x.reshape(x.shape[0], -1), length.reshape(-1)


@lowers("edit_distance", sequences=True)
def edit_distance(
    hyps: Value, refs: Value, hyps_length: Value, refs_length: Value, *, normalized: bool, ctx: OpContext
) -> tuple[Value, Value]:
    found, found_lengths = _read_padded(hyps, hyps_length)
    wanted, wanted_lengths = _read_padded(refs, refs_length)
    if found.shape[0] != wanted.shape[0]:
        raise LoweringError("Hyps and Refs have different numbers of sequences")
    if normalized:
        ctx.check(wanted_lengths > 0, "a sequence of Refs is empty, so no distance to it can be normalized")
    count, width = wanted.shape
    columns = jnp.arange(width + 1)

    def compare(row: Array, given: tuple[Array, ...]) -> tuple[Array, None]:
        token, step = given
        replaced = row[:, :-1] + (wanted != token[:, None])
        best = jnp.minimum(row[:, 1:] + 1, replaced)
        best = jnp.concatenate([jnp.full((count, 1), step + 1, best.dtype), best], 1)
        new = jax.lax.cummin(best - columns, axis=1) + columns  # insertions
        return jnp.where((step < found_lengths)[:, None], new, row), None

    first = jnp.broadcast_to(columns, (count, width + 1))
    row, _ = jax.lax.scan(compare, first, (found.T, jnp.arange(found.shape[1])))
    out = jnp.take_along_axis(row, wanted_lengths[:, None].astype(row.dtype), 1).astype(jnp.float32)
    out = out / wanted_lengths[:, None].astype(jnp.float32) if normalized else out
    return jnp.full(1, count, jnp.int64), out


@lowers("chunk_eval", sequences=True)
def chunk_eval(
    inference: Array | Packed, label: Array | Packed, lengths: Array | None,
    *, num_chunk_types: int, chunk_scheme: str, excluded_chunk_types: list[int], ctx: OpContext,
) -> tuple[Value, ...]:  # fmt: skip
    if lengths is None:
        require_sequences(label)
        size = label.rows.shape[0]
        found, true = (get_rows(one) for one in (inference, label))
        used = label.used
        border = jnp.zeros(size + 1, bool).at[label.offsets[-1]].set(True)[:size]
    else:
        if isinstance(label, Packed) or isinstance(inference, Packed):
            raise LoweringError("a padded batch must not have a LoD as well")
        found, true = inference, label
        width = label.size // label.shape[0]
        step = jnp.arange(width)
        used = (step < lengths.reshape(-1, 1)).reshape(-1)
        border = ((step == 0) | (step == lengths.reshape(-1, 1))).reshape(-1)
    if found.size != true.size:
        raise LoweringError("Inference and Label have different numbers of rows")
    chunks = []
    for tags in (found.reshape(-1), true.reshape(-1)):
        kinds = SCHEMES[chunk_scheme].kinds
        holds = ((tags >= 0) & (tags <= num_chunk_types * kinds)) | ~used
        ctx.check(holds, f"a tag is outside of 0 to {num_chunk_types * kinds}")
        chunks.append(_find_chunks(tags, used, border, chunk_scheme, num_chunk_types, excluded_chunk_types))
    (starts, kind, end), (true_starts, true_kind, true_end) = chunks
    both = starts & true_starts & (kind == true_kind) & (end == true_end)
    numbers = [one.sum().astype(jnp.int64) for one in (starts, true_starts, both)]
    in_found, in_true, hits = (number.astype(jnp.float32) for number in numbers)
    precision = jnp.where(in_found > 0, hits / jnp.maximum(in_found, 1), 0)
    recall = jnp.where(in_true > 0, hits / jnp.maximum(in_true, 1), 0)
    total = jnp.where(hits > 0, precision + recall, 1)
    f1 = jnp.where(hits > 0, 2 * precision * recall / total, 0)
    shares = [value.reshape(1).astype(jnp.float32) for value in (precision, recall, f1)]
    return (*shares, *(number.reshape(1) for number in numbers))


def _find_chunks(
    rows: Array, used: Array, first: Array, scheme: str, types: int, excluded: list[int]
) -> tuple[Array, Array, Array]:
    """Return, for each row, whether a chunk starts there, the chunk's type, and its end."""
    tags = SCHEMES[scheme]
    kind, tag = rows // tags.kinds, rows % tags.kinds
    before_kind, before_tag = jnp.roll(kind, 1), jnp.roll(tag, 1)
    starts_anew = (tag == tags.begin) | (tag == tags.single)
    ended = (before_tag == tags.end) | (before_tag == tags.single)
    border = first | (kind != before_kind) | starts_anew | ended
    starts = border & (kind != types) & used
    for one in excluded:
        starts = starts & (kind != one)
    size = rows.shape[0]
    here = jnp.where(border, jnp.arange(size), size)
    behind = jnp.concatenate([jax.lax.cummin(here, reverse=True)[1:], jnp.full(1, size)])
    return starts, kind, behind
