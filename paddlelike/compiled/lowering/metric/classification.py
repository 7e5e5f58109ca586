"""Metrics of classes."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from paddlelike.compiled.lowerings import Results, lowers
from paddlelike.compiled.packing import LoweringError
from paddlelike.compiled.tracing.context import OpContext
from paddlelike.compiled.values import Packed, Value
from paddlelike.framework.quirks import follows_fluid


def _count(ids: jax.Array, chosen: jax.Array, classes: int, weights: jax.Array | None = None) -> jax.Array:
    """Return how often each class occurs among the chosen ids; float64 where there are weights."""
    ids = jnp.where(chosen, ids, classes)  # out of bounds: dropped
    if weights is None:
        return jnp.zeros(classes, jnp.int64).at[ids].add(1, mode="drop")
    return jnp.zeros(classes, jnp.float64).at[ids].add(weights.astype(jnp.float64), mode="drop")


@lowers("auc", sequences=True)
def auc(
    predict: Value, label: Value, pos: jax.Array, neg: jax.Array,
    *, curve: str, num_thresholds: int, slide_steps: int, ctx: OpContext,
) -> Results:  # fmt: skip
    if curve == "PR" and not follows_fluid("auc_curve"):
        raise LoweringError("the area under the curve of precision and recall")
    (predicted, given), used = _unpack(predict, label)
    score, labels = predicted[:, -1], given.reshape(-1)
    ctx.check((score >= 0) & (score <= 1), "Predict holds no probabilities")
    buckets = num_thresholds + 1
    place = (score * jnp.asarray(num_thresholds, score.dtype)).astype(jnp.int64)
    totals, tables = [], []
    for table, chosen in ((pos, labels > 0), (neg, labels == 0)):
        count = _count(place, chosen & used, buckets)
        if slide_steps == 0:
            total = table.reshape(-1)[:buckets] + count
            tables.append(total.reshape(1, buckets))
        else:
            total, new = _advance_window(table.reshape(-1), count, buckets, slide_steps)
            tables.append(new.reshape(table.shape))
        totals.append(total)
    found_pos, found_neg = (jnp.cumsum(total[::-1].astype(jnp.float64)) for total in totals)
    before_pos = jnp.concatenate([jnp.zeros(1), found_pos[:-1]])
    before_neg = jnp.concatenate([jnp.zeros(1), found_neg[:-1]])
    area = ((found_neg - before_neg) * (found_pos + before_pos)).sum() / 2
    square = found_pos[-1] * found_neg[-1]
    area = jnp.where(square > 0, area / jnp.where(square > 0, square, 1), area)
    return area.reshape(1), tables[0], tables[1]


def _unpack(*values: Value) -> tuple[list[jax.Array], jax.Array]:
    """Return the rows of sequences and of arrays, of equally many each, and which of them are in use."""
    used = [x.used for x in values if isinstance(x, Packed)]
    rows = [x.rows if isinstance(x, Packed) else x for x in values]
    if len({len(x) for x in rows}) > 1:
        raise LoweringError("its inputs have sequences of different counts of rows")
    return rows, used[0] if used else jnp.asarray(True)


def _advance_window(
    flat: jax.Array, count: jax.Array, buckets: int, steps: int
) -> tuple[jax.Array, jax.Array]:
    """Return the counts to evaluate, and the table with one step more."""
    latest = flat[:-1].reshape(steps + 1, buckets)
    place = flat[-1] % steps
    total = latest[steps] + count - latest[place]
    latest = latest.at[steps].set(total).at[place].set(count)
    return total, jnp.concatenate([latest.reshape(-1), flat[-1:] + 1])


@lowers("precision_recall")
def precision_recall(
    probs: jax.Array,
    indices: jax.Array,
    labels: jax.Array,
    weights: jax.Array | None,
    states: jax.Array | None,
    *,
    class_number: int,
    ctx: OpContext,
) -> Results:
    found, label = indices.reshape(-1), labels.reshape(-1)
    for name, ids in (("Indices", found), ("Labels", label)):
        ctx.check((ids >= 0) & (ids < class_number), f"{name} hold no class of {class_number}")
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


def _measure(states: jax.Array) -> jax.Array:
    """Return macro and micro precision, recall and F1. A class that never occurs has the value 1."""

    def share(part: jax.Array, rest: jax.Array) -> jax.Array:
        whole = part + rest
        return jnp.where(whole > 0, part / jnp.where(whole > 0, whole, 1), 1.0)

    def join(precision: jax.Array, recall: jax.Array) -> jax.Array:
        both = precision + recall
        return jnp.where(both > 0, 2 * precision * recall / jnp.where(both > 0, both, 1), 0.0)

    true_pos, false_pos, _, false_neg = states.T
    macro = [share(true_pos, rest).mean() for rest in (false_pos, false_neg)]
    micro = [share(true_pos.sum(), rest.sum()) for rest in (false_pos, false_neg)]
    return jnp.stack([*macro, join(*macro), *micro, join(*micro)]).astype(jnp.float64)


@lowers("mean_iou")
def mean_iou(
    predictions: jax.Array,
    labels: jax.Array,
    wrongs: jax.Array,
    corrects: jax.Array,
    means: jax.Array,
    *,
    num_classes: int,
    ctx: OpContext,
) -> Results:
    found, label = predictions.reshape(-1), labels.reshape(-1)
    ctx.check((found >= 0) & (found < num_classes), f"Predictions hold no class of {num_classes}")
    ctx.check((label >= 0) & (label < num_classes), f"Labels hold no class of {num_classes}")
    right = found == label
    correct = _count(found, right, num_classes)
    wrong = _count(found, ~right, num_classes) + _count(label, ~right, num_classes)
    correct, wrong = sum(corrects or [], correct), sum(wrongs or [], wrong)
    seen = correct + wrong
    shares = jnp.where(seen > 0, correct / jnp.maximum(seen, 1), 0)
    mean = shares.sum() / jnp.maximum((seen > 0).sum(), 1)
    for one in means or []:
        mean = mean + one.reshape(-1)[0]
    return mean.reshape(1).astype(jnp.float32), wrong.astype(jnp.int32), correct.astype(jnp.int32)


@lowers("accuracy", sequences=True)
def accuracy(out: Value, indices: jax.Array | Packed, label: jax.Array | Packed) -> tuple[Value, ...]:
    used = None
    if isinstance(indices, Packed):
        used = indices.used
        indices = indices.rows
    label = label.rows if isinstance(label, Packed) else label
    hit = (indices == label.reshape(-1, 1)).any(1)
    total = jnp.asarray(hit.shape[0], jnp.int32) if used is None else used.sum().astype(jnp.int32)
    correct = (hit if used is None else hit & used).sum().astype(jnp.int32)
    share = (correct / jnp.maximum(total, 1)).astype(jnp.float32)
    return share.reshape(1), correct.reshape(1), total.reshape(1)
