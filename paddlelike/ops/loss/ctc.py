"""Connectionist temporal classification: the loss, and the decoding of labels.

Sequences are rows cut by LoD, or padded with their lengths. A step processes one row of every sequence of the
batch. Graves et al. 2006.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final, NamedTuple

import numpy as np

from paddlelike.errors import EnforceNotMet, ShapeError
from paddlelike.framework.opdef import OWN, Array, Bool, Context, Float, Gradient, Int, OpDef, Spec, register
from paddlelike.ops.kernels.lod import (
    check_equal_counts,
    expand_ranges,
    index_sequences,
    make_lod,
    read_last_level,
)
from paddlelike.ops.kernels.recurrent.steps import Steps
from paddlelike.ops.later import register_kernel

_NEVER: Final = -np.inf  # the logarithm of a probability of 0


class _Batch(NamedTuple):
    """Logits and labels of a batch, from LoD or padded inputs."""

    rows: Array  # of the logits, (T, C) in batch order
    steps: Steps
    lengths: Array  # of the logits of each sequence
    labels: Array  # (N, longest), filled up with the blank
    label_lengths: Array


def _read_lod_batch(ctx: Context, logits: Array, label: Array, blank: int) -> _Batch:
    offsets = read_last_level(ctx, "Logits", len(logits))
    label_lengths = np.diff(read_last_level(ctx, "Label", len(label)))
    check_equal_counts("warpctc", ("Logits", "Label"), (len(offsets) - 1, len(label_lengths)))
    labels = np.full((len(label_lengths), int(label_lengths.max(initial=0))), blank, np.int64)
    which = np.repeat(np.arange(len(label_lengths)), label_lengths)
    labels[which, expand_ranges(np.zeros_like(label_lengths), label_lengths)] = label.reshape(-1)
    steps = Steps.of(offsets)
    return _Batch(logits.take(steps.rows, axis=0), steps, np.diff(offsets), labels, label_lengths)


def _read_padded_batch(
    logits: Array, lengths: Array, label: Array, label_lengths: Array, blank: int
) -> _Batch:
    """Return the batch of padded sequences; logits are (longest, N, C), row t of sequence i is t N + i."""
    lengths, label_lengths = lengths.reshape(-1), label_lengths.reshape(-1)
    time, count = logits.shape[:2]
    check_equal_counts("warpctc", ("Logits", "LogitsLength", "Label", "LabelLength"),
         (count, len(lengths), len(label), len(label_lengths)))  # fmt: skip
    if lengths.max(initial=0) > time or label_lengths.max(initial=0) > label.shape[1]:
        raise EnforceNotMet(
            f"warpctc: LogitsLength is up to {lengths.max(initial=0)} and LabelLength up to "
            f"{label_lengths.max(initial=0)}, but Logits is {list(logits.shape)}, Label {list(label.shape)}"
        )
    steps = Steps.through(np.zeros(count, np.int64), lengths)
    steps = replace(steps, rows=steps.rows * count + steps.owner())
    labels = np.where(np.arange(label.shape[1]) < label_lengths[:, None], label, blank).astype(np.int64)
    rows = logits.reshape(-1, logits.shape[2]).take(steps.rows, axis=0)
    return _Batch(rows, steps, lengths, labels, label_lengths)


@register
class Warpctc(OpDef):
    """``Loss``: per sequence ``-log`` of the probability that its steps spell Label, by ``softmax(Logits)``.

    A step gives a label or the ``blank``; equal neighbours count once, then blanks are removed. Logits are
    (T, classes) with LoD, or (longest, N, classes) with lengths. A Label too long for its steps costs 0.
    WarpCTCGrad is the gradient of the losses; with ``norm_by_times`` the gradient of Logits is divided by the
    number of steps.
    """

    type = "warpctc"
    inputs = ("Logits", "Label", "LogitsLength?", "LabelLength?")
    outputs = ("WarpCTCGrad", "Loss")
    attrs = {"blank": Int(0), "norm_by_times": Bool(False)}
    gradient = Gradient(
        "Loss@GRAD", "Logits", "LogitsLength", "WarpCTCGrad", outputs=("Logits@GRAD",), lod=OWN
    )

    @staticmethod
    def infer(
        logits: Spec, label: Spec, length: Spec | None, label_length: Spec | None, *, blank: int
    ) -> tuple[None, Spec]:
        if (length is None) != (label_length is None):
            raise ShapeError("warpctc: LogitsLength and LabelLength must be given together; one is missing")
        dims = 2 if length is None else 3
        if len(logits.shape) != dims:
            raise ShapeError(
                f"warpctc: Logits is {list(logits.shape)}, expected (T, classes) with LoD, or "
                "(longest, N, classes) with lengths"
            )
        if not 0 <= blank < logits.shape[-1]:
            raise ShapeError(f"warpctc: blank is {blank}, expected 0 .. {logits.shape[-1] - 1}")
        return None, Spec((-1, 1), logits.dtype)

    @staticmethod
    def forward(
        ctx: Context,
        logits: Array,
        label: Array,
        length: Array | None,
        label_length: Array | None,
        *,
        blank: int,
    ) -> tuple[Array, Array]:
        if length is None or label_length is None:
            batch = _read_lod_batch(ctx, logits, label, blank)
        else:
            batch = _read_padded_batch(logits, length, label, label_length, blank)
        if batch.labels.size and not 0 <= batch.labels.min() <= batch.labels.max() < logits.shape[-1]:
            raise EnforceNotMet(
                f"warpctc: Label holds {batch.labels.min()} to {batch.labels.max()}, Logits have "
                f"{logits.shape[-1]} classes, the blank {blank} among them"
            )
        loss, d_rows = _compute_loss(batch, blank)
        time = int(batch.lengths.max(initial=0)) if length is None else len(logits)
        d_logits = np.zeros((time, len(batch.lengths), logits.shape[-1]), logits.dtype)
        d_logits[index_sequences(np.array(batch.steps.bounds)), batch.steps.owner()] = d_rows
        return d_logits, loss[:, None]

    @staticmethod
    def backward(
        ctx: Context,
        d_loss: Array,
        logits: Array,
        length: Array | None,
        d_logits: Array,
        *,
        norm_by_times: bool,
    ) -> Array:
        if length is None:
            lengths = np.diff(read_last_level(ctx, "Logits", len(logits)))
            which = np.repeat(np.arange(len(lengths)), lengths)
            d_x = d_logits[expand_ranges(np.zeros_like(lengths), lengths), which]
        else:
            lengths = length.reshape(-1)
            which = np.arange(len(lengths))
            d_x = d_logits.copy()
        scale = d_loss.reshape(-1)
        if norm_by_times:
            scale = scale / lengths.astype(scale.dtype)
        d_x *= scale[which][:, None]
        return d_x


def _compute_loss(batch: _Batch, blank: int) -> tuple[Array, Array]:
    """Return the loss of each sequence, and its gradient by row, in batch order.

    A path goes through the states blank, label, blank, label, ..., blank of a sequence; from one step to
    the next it stays, advances by one state, or skips a blank between two different labels.
    """
    steps, owner = batch.steps, batch.steps.owner()
    states = np.full((len(batch.labels), 2 * batch.labels.shape[1] + 1), blank)
    states[:, 1::2] = batch.labels
    may_skip = np.zeros(states.shape, bool)
    may_skip[:, 2:] = (states[:, 2:] != blank) & (states[:, 2:] != states[:, :-2])
    ends = 2 * batch.label_lengths
    log_p = _log_softmax(batch.rows)
    emitted = np.take_along_axis(log_p, states[owner], axis=1)
    alpha = _alpha(steps, emitted, may_skip)
    beta = _beta(steps, emitted, may_skip, ends)
    first = steps.order[: steps.first]
    start = np.logaddexp.reduce(alpha[: steps.first] + beta[: steps.first], axis=1)
    log_chance = np.zeros(len(states), log_p.dtype)
    log_chance[first] = start
    possible = log_chance != _NEVER
    path = alpha + beta
    path -= np.where(possible, log_chance, 0)[owner][:, None]
    d_rows = np.exp(log_p)
    at = (np.arange(len(d_rows))[:, None] * d_rows.shape[1] + states[owner]).reshape(-1)
    np.subtract.at(d_rows.reshape(-1), at, np.exp(path).reshape(-1))
    d_rows[~possible[owner]] = 0
    return np.where(possible, -log_chance, 0).astype(log_p.dtype), d_rows


def _log_softmax(rows: Array) -> Array:
    """Return the logarithms of the softmax, at least the logarithm of the smallest normal number, as in
    Fluid.
    """
    out = rows - rows.max(1, keepdims=True, initial=_NEVER)
    out -= np.log(np.exp(out).sum(1, keepdims=True))
    return np.maximum(out, np.log(np.finfo(out.dtype).tiny))


def _alpha(steps: Steps, emitted: Array, may_skip: Array) -> Array:
    """Return the log probability of reaching each state, by row."""
    alpha = np.full_like(emitted, _NEVER)
    for begin, end, before in steps.spans:
        now = alpha[begin:end]
        if before < 0:
            now[:, :2] = emitted[begin:end, :2]
            continue
        last = alpha[before : before + end - begin]
        now[...] = last
        np.logaddexp(now[:, 1:], last[:, :-1], out=now[:, 1:])
        skipped = np.where(may_skip[steps.order[: end - begin], 2:], last[:, :-2], _NEVER)
        np.logaddexp(now[:, 2:], skipped, out=now[:, 2:])
        now += emitted[begin:end]
    return alpha


def _beta(steps: Steps, emitted: Array, may_skip: Array, ends: Array) -> Array:
    """Return the log probability of getting from each state to the end, by row."""
    beta = np.full_like(emitted, _NEVER)
    done = 0  # sequences that go on after the step
    for begin, end, before in reversed(steps.spans):
        n = end - begin
        ending = np.arange(begin + done, end)
        last_state = ends[steps.order[done:n]]
        beta[ending, last_state] = 0
        beta[ending, np.maximum(last_state - 1, 0)] = 0
        done = n
        if before < 0:
            continue
        after = beta[begin:end] + emitted[begin:end]
        now = beta[before : before + n]
        now[...] = after
        np.logaddexp(now[:, :-1], after[:, 1:], out=now[:, :-1])
        skipped = np.where(may_skip[steps.order[:n], 2:], after[:, 2:], _NEVER)
        np.logaddexp(now[:, :-2], skipped, out=now[:, :-2])
    return beta


@register
class CtcAlign(OpDef):
    """``Output``: the classes of Input without repeats (``merge_repeated``) and without the ``blank``.

    Input and Output are (T, 1) with LoD; when nothing is left, Output is one -1. Or Input is (N, L) with
    InputLength (N, 1): then Output is filled up with ``padding_value``, and OutputLength (N, 1) holds the
    lengths.
    """

    type = "ctc_align"
    inputs = ("Input", "InputLength?")
    outputs = ("Output", "OutputLength?")
    attrs = {"blank": Int(0), "merge_repeated": Bool(True), "padding_value": Int(0)}

    @staticmethod
    def infer(x: Spec, length: Spec | None) -> tuple[Spec, Spec | None]:
        return Spec(x.shape, x.dtype), None if length is None else Spec((x.shape[0], 1), x.dtype)

    @staticmethod
    def forward(
        ctx: Context, x: Array, length: Array | None, *, blank: int, merge_repeated: bool, padding_value: int
    ) -> tuple[Array, Array | None]:
        if length is None or ctx.lod("Input"):
            length, offsets = None, read_last_level(ctx, "Input", len(x))
            flat, starts = x.reshape(-1)[: offsets[-1]], offsets[:-1][np.diff(offsets) > 0]
        else:
            offsets = np.arange(len(x) + 1) * x.shape[1]
            flat, starts = x.reshape(-1), offsets[:-1] if x.size else offsets[:0]
        kept = flat.astype(np.uint32).astype(np.int64) != blank  # as Fluid: by the lower half of an int64
        if merge_repeated:
            before = np.roll(flat, 1)
            before[starts] = -1
            kept &= flat != before
        if length is not None:
            kept &= (np.arange(x.shape[1]) < length.reshape(-1, 1)).reshape(-1)
        counts = np.diff(np.concatenate([[0], np.cumsum(kept)])[offsets])
        if length is None:
            ctx.set_lod("Output", [make_lod(counts)])
            found = flat[kept][:, None]
            return (found if len(found) else np.full((1, 1), -1, x.dtype)), None
        out = np.full(x.shape, padding_value, x.dtype)
        out.reshape(-1)[expand_ranges(offsets[:-1], counts)] = flat[kept]
        return out, counts[:, None].astype(x.dtype)


@register_kernel(
    "warprnnt",
    "input label input_lengths label_lengths -> loss warprnntgrad?",
    {"blank": Int(0), "fastemit_lambda": Float(0.0)},
)
def _transduce(logs: Array, label: Array, times: Array, counts: Array, *, blank: int) -> tuple[Array, None]:
    """The loss of a transducer: the negative log probability of the labels, over all alignments.

    ``logs`` (N, T, U + 1, C) are logarithms of probabilities, taken as they are. Graves 2012.
    """
    losses = np.empty(len(logs), logs.dtype)
    for i, (time, count) in enumerate(zip(times.reshape(-1), counts.reshape(-1), strict=True)):
        skips = logs[i, :time, : count + 1, blank]
        emits = logs[i, :time, np.arange(count), label[i, :count]].T
        above = np.full(count + 1, _NEVER)
        for t in range(time):
            row = above + skips[t - 1] if t else np.where(np.arange(count + 1) == 0, 0.0, _NEVER)
            for u in range(count):
                row[u + 1] = np.logaddexp(row[u + 1], row[u] + emits[t, u])
            above = row
        losses[i] = -(above[count] + skips[-1, count])
    return losses, None
