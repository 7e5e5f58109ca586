"""Conditional random fields on chains: the cost of labels, and the best labels. Lafferty et al. 2001.

Transition is (D + 2, D) for D labels. Row 0 holds the weights of first labels, row 1 the weights of last
labels, row 2 + i the weights from label i to each label. Emission is (T, D) with LoD, or a padded batch (N,
L, D) with lengths. A step processes one row of every sequence of the batch.
"""

from __future__ import annotations

import math
from typing import Final, NamedTuple

import numpy as np

from paddlelike.core import VarType
from paddlelike.core.rows import sum_rows
from paddlelike.errors import EnforceNotMet, ShapeError
from paddlelike.framework.opdef import OWN, Array, Bool, Context, Gradient, Kernel, OpDef, Spec, register
from paddlelike.ops.kernels.fast import sequence as fast
from paddlelike.ops.kernels.lod import read_last_level
from paddlelike.ops.kernels.recurrent.steps import Steps
from paddlelike.ops.later import register_kernel
from paddlelike.ops.operands import can_be_equal

_FEW: Final = 34  # rows of Transition: with more labels, products for all sequences at once are faster

_TOGETHER: Final = 1 << 16  # scores of ways between labels that are computed at once


class _Chains(NamedTuple):
    """Sequences of emissions, in rows."""

    steps: Steps
    starts: Array
    lengths: Array

    @classmethod
    def of(cls, ctx: Context, emission: Array, length: Array | None) -> _Chains:
        if length is None:
            offsets = read_last_level(ctx, "Label" if ctx.lod("Label") else "Emission", len(emission))
            starts, lengths = offsets[:-1], np.diff(offsets)
        else:
            starts, lengths = np.arange(len(emission)) * emission.shape[1], length.reshape(-1)
            if lengths.size != len(emission) or lengths.max(initial=0) > emission.shape[1]:
                raise EnforceNotMet(
                    f"{ctx.op.type}: Length holds {lengths.size} lengths up to {lengths.max(initial=0)}, "
                    f"Emission is {list(emission.shape)}"
                )
        return cls(Steps.through(starts, lengths), starts, lengths)

    @property
    def cuts(self) -> tuple[Array, Array]:
        """The first row and the number of rows of each sequence, int64."""
        return tuple(np.ascontiguousarray(each, np.int64) for each in (self.starts, self.lengths))  # type: ignore[return-value]

    @property
    def full(self) -> Array:
        """The nonempty sequences, in the order of the steps."""
        return self.steps.order[: self.steps.first]

    @property
    def last(self) -> Array:
        """The index of the last row of each nonempty sequence in batch order."""
        bounds = np.array(self.steps.bounds)
        return bounds[self.lengths[self.full] - 1] + np.arange(self.steps.first)

    def labels(self, label: Array, op: str, count: int) -> Array:
        """Return the labels in batch order. Raises EnforceNotMet unless each is below ``count``."""
        labels = label.reshape(-1).take(self.steps.rows)
        if labels.size and not 0 <= labels.min() <= labels.max() < count:
            raise EnforceNotMet(
                f"{op}: Label holds {labels.min()} to {labels.max()}, but there are {count} labels"
            )
        return labels


def _check(op: str, emission: Spec, transition: Spec, length: Spec | None) -> None:
    dims = 2 if length is None else 3
    count = emission.shape[-1]
    fits = len(emission.shape) == dims and len(transition.shape) == 2
    if not fits or not (
        can_be_equal(transition.shape[1], count) and can_be_equal(transition.shape[0], count + 2)
    ):
        raise ShapeError(
            f"{op}: Emission is {list(emission.shape)}, Transition {list(transition.shape)}; expected "
            f"{'(T, D)' if dims == 2 else '(N, L, D)'} and (D + 2, D)",
            hint="give the lengths of padded batches, and none for sequences with LoD",
        )


@register
class LinearChainCrf(OpDef):
    """``LogLikelihood``: the cost of each sequence's Label, ``log(sum over all labels of e^score) - score``.

    The score is the sum of the labels' emissions and transitions. Alpha holds the normalized forward
    probabilities of the labels at each row; EmissionExps and TransitionExps are powers of e.
    """

    type = "linear_chain_crf"
    inputs = ("Emission", "Transition", "Label", "Length?")
    outputs = ("Alpha", "EmissionExps", "TransitionExps", "LogLikelihood")
    gradient = Gradient(
        "Emission", "Transition", "Label", "Length", "Alpha", "EmissionExps", "TransitionExps",
        "LogLikelihood@GRAD",
        outputs=("Emission@GRAD", "Transition@GRAD"),
        lod=OWN,
    )  # fmt: skip

    @staticmethod
    def infer(
        emission: Spec, transition: Spec, label: Spec, length: Spec | None
    ) -> tuple[Spec, Spec, Spec, Spec]:
        _check("linear_chain_crf", emission, transition, length)
        check_same_shape = Spec(emission.shape, emission.dtype)
        cost = Spec((emission.shape[0], 1), emission.dtype)
        return check_same_shape, check_same_shape, Spec(transition.shape, transition.dtype), cost

    @staticmethod
    def forward(
        ctx: Context, emission: Array, transition: Array, label: Array, length: Array | None
    ) -> tuple[Array, Array, Array, Array]:
        chains = _Chains.of(ctx, emission, length)
        steps = chains.steps
        work = emission.size if len(transition) <= _FEW else 0
        if (kernel := fast.sum_chains.choose(work, emission, transition)) is not None:
            return _sum_chains_fast(kernel, chains, emission, transition, label)
        x = emission.reshape(-1, emission.shape[-1]).take(steps.rows, axis=0)
        labels = chains.labels(label, "linear_chain_crf", x.shape[1])
        greatest = x.max(1, keepdims=True, initial=-math.inf)
        x_exps, w_exps = np.exp(x - greatest), np.exp(transition)
        alpha = np.empty_like(x)
        sums = np.empty((len(x), 1), x.dtype)
        between = w_exps[2:]
        for begin, end, before in steps.spans:
            now = alpha[begin:end]
            seen = w_exps[0] if before < 0 else np.dot(alpha[before : before + end - begin], between, out=now)
            np.multiply(x_exps[begin:end], seen, out=now)
            np.divide(now, np.add.reduce(now, 1, out=sums[begin:end], keepdims=True), out=now)
        first, last, previous = steps.first, chains.last, chains.steps.previous
        rows = (greatest + np.log(sums)).reshape(-1) - x[np.arange(len(x)), labels]
        rows[:first] -= transition[0, labels[:first]]
        rows[first:] -= transition[2 + labels[previous], labels[first:]]
        rows[last] += np.log(alpha[last] @ w_exps[1]) - transition[1, labels[last]]
        cost = sum_rows(chains.steps.owner(), rows[:, None], len(chains.lengths))
        return (
            _from_batch_order(emission, alpha, steps),
            _from_batch_order(emission, x_exps, steps),
            w_exps,
            cost,
        )

    @staticmethod
    def backward(
        ctx: Context,
        emission: Array,
        transition: Array,
        label: Array,
        length: Array | None,
        alpha: Array,
        x_exps: Array,
        w_exps: Array,
        d_cost: Array,
    ) -> tuple[Array, Array]:
        chains = _Chains.of(ctx, emission, length)
        work = emission.size if len(transition) <= _FEW else 0
        if (kernel := fast.sum_chains_back.choose(work, alpha, x_exps, w_exps, d_cost)) is not None:
            d_x, d_w = np.zeros_like(alpha), np.zeros_like(w_exps)
            chains.labels(label, "linear_chain_crf", alpha.shape[-1])  # checks them
            shares, powers, d_rows = (a.reshape(-1, a.shape[-1]) for a in (alpha, x_exps, d_x))
            labels = label.reshape(-1).astype(np.int64)
            kernel(shares, powers, w_exps, d_cost.reshape(-1), labels, *chains.cuts, d_rows, d_w)
            return d_x, d_w
        steps, first, previous = chains.steps, chains.steps.first, chains.steps.previous
        alpha, x_exps = (a.reshape(-1, a.shape[-1]).take(steps.rows, axis=0) for a in (alpha, x_exps))
        labels = chains.labels(label, "linear_chain_crf", alpha.shape[1])
        beta = np.empty_like(alpha)
        beta[chains.last] = w_exps[1]
        towards = w_exps[2:].T
        for begin, end, before in reversed(steps.spans):
            now = beta[begin:end]
            np.divide(now, np.add.reduce(now, 1, keepdims=True), out=now)
            if before >= 0:
                np.dot(x_exps[begin:end] * now, towards, out=beta[before : before + end - begin])
        shares = alpha * beta
        shares /= shares.sum(1, keepdims=True)
        scale = d_cost.reshape(-1, 1)[chains.steps.owner()].astype(alpha.dtype, copy=False)
        d_x = shares * scale
        d_x[np.arange(len(d_x)), labels] -= scale[:, 0]
        d_w = np.zeros_like(transition)
        d_w[0] = d_x[:first].sum(0)
        d_w[1] = d_x[chains.last].sum(0)
        ahead = x_exps[first:] * beta[first:]
        pairs = alpha[previous] @ w_exps[2:]
        weight = scale[first:] / np.einsum("td,td->t", pairs, ahead)[:, None]
        if len(ahead):  # else an infinite weight times 0 were NaN
            d_w[2:] = w_exps[2:] * (alpha[previous].T @ (ahead * weight))
        np.subtract.at(d_w, (2 + labels[previous], labels[first:]), scale[first:, 0])
        return _from_batch_order(emission, d_x, steps), d_w


def _sum_chains_fast(
    kernel: Kernel, chains: _Chains, emission: Array, transition: Array, label: Array
) -> tuple[Array, Array, Array, Array]:
    """Return the outputs of linear_chain_crf, by a compiled loop over the sequences."""
    x = emission.reshape(-1, emission.shape[-1])
    chains.labels(label, "linear_chain_crf", x.shape[1])  # checks them
    greatest = x.max(1, initial=-math.inf)
    x_exps, w_exps = np.exp(x - greatest[:, None]), np.exp(transition)
    if emission.ndim == 3:  # padding is 0
        inside = np.arange(emission.shape[1]) < chains.lengths[:, None]
        x_exps *= inside.reshape(-1, 1)
    alpha, cost = np.zeros_like(x), np.empty(len(chains.lengths), x.dtype)
    of_rows = label.reshape(-1).astype(np.int64)
    kernel(x, x_exps, greatest, transition, w_exps, of_rows, *chains.cuts, alpha, cost)
    return alpha.reshape(emission.shape), x_exps.reshape(emission.shape), w_exps, cost[:, None]


def _from_batch_order(emission: Array, rows: Array, steps: Steps) -> Array:
    """Return rows in batch order as an array like Emission; padding is 0."""
    out = np.zeros(emission.shape, rows.dtype)
    out.reshape(-1, emission.shape[-1])[steps.rows] = rows
    return out


@register
class CrfDecoding(OpDef):
    """``ViterbiPath``: the labels with the highest score, int64; with Label, whether each label is right (1
    or 0).

    Viterbi 1967. Padding gets label 0.
    """

    type = "crf_decoding"
    inputs = ("Emission", "Transition", "Label?", "Length?")
    outputs = ("ViterbiPath",)
    lod = "Emission"

    @staticmethod
    def infer(emission: Spec, transition: Spec, label: Spec | None, length: Spec | None) -> Spec:
        _check("crf_decoding", emission, transition, length)
        shape = (emission.shape[0], 1) if length is None else emission.shape[:2]
        return Spec(shape, VarType.INT64)

    @staticmethod
    def forward(
        ctx: Context, emission: Array, transition: Array, label: Array | None, length: Array | None
    ) -> Array:
        # NaN is never the greatest score.
        emission, transition = (np.fmax(x, x.dtype.type(-np.inf)) for x in (emission, transition))
        chains = _Chains.of(ctx, emission, length)
        out = np.zeros((len(emission), 1) if length is None else emission.shape[:2], np.int64)
        if (kernel := fast.find_best_labels.choose(emission.size, emission, transition)) is not None:
            kernel(emission.reshape(-1, emission.shape[-1]), transition, *chains.cuts, out.reshape(-1))
            return out if label is None else _mark_right(chains, out, label)
        steps = chains.steps
        x = emission.reshape(-1, emission.shape[-1]).take(steps.rows, axis=0)
        best = np.empty_like(x)
        between = _repeat_transitions(transition, steps.first)
        for begin, end, before in steps.spans:
            now = best[begin:end]
            if before >= 0:
                _find_best(best[before : before + end - begin], between, now)
            np.add(now if before >= 0 else transition[0], x[begin:end], out=now)
        path = np.zeros(len(x), np.int64)
        path[chains.last] = (best[chains.last] + transition[1]).argmax(1)
        towards = np.ascontiguousarray(transition[2:].T)
        for begin, end, before in reversed(steps.spans):
            if before >= 0:  # the previous label matters only along the path
                scores = towards.take(path[begin:end], axis=0)
                scores += best[before : before + end - begin]
                scores.argmax(1, path[before : before + end - begin])
        out.reshape(-1)[steps.rows] = path
        return out if label is None else _mark_right(chains, out, label)


def _repeat_transitions(transition: Array, sequences: int) -> Array:
    """Return the transitions from each label for several sequences side by side, (from, sequences * to)."""
    count = transition.shape[1]
    return np.tile(transition[2:], min(sequences, 1 + _TOGETHER // count**2))


def _find_best(last: Array, between: Array, out: Array) -> None:
    """Write the greatest score of a path to each label; ``last`` holds the scores of the previous step.

    ``between`` comes from :func:`_repeat_transitions`: a sum over one long row takes half the time of sums
    over many short rows.
    """
    count = last.shape[1]
    room = between.shape[1] // count
    for begin in range(0, len(last), room):
        part = last[begin : begin + room]
        scores = np.repeat(part.T, count).reshape(count, -1)
        scores += between[:, : scores.shape[1]]
        np.maximum.reduce(scores, 0, out=out[begin : begin + room].reshape(-1))


def _mark_right(chains: _Chains, path: Array, label: Array) -> Array:
    """Return 1 where a row has the label of the path, else 0; padding is 0."""
    rows, right = chains.steps.rows, np.zeros_like(path)
    right.reshape(-1)[rows] = path.reshape(-1)[rows] == label.reshape(-1)[rows]
    return right


@register_kernel(
    "viterbi_decode",
    "Input Transition Length -> Scores Path",
    {"include_bos_eos_tag": Bool(True)},
    ends_gradients=True,
)
def _viterbi(
    x: Array, transition: Array, lengths: Array, *, include_bos_eos_tag: bool
) -> tuple[Array, Array]:
    """The best sequences of tags (N, T) for scores (N, T, tags), and their scores.

    With ``include_bos_eos_tag`` the last tag but one is the start and the last tag the end of a sequence.
    """
    longest = int(lengths.max())
    path = np.zeros((len(x), longest), np.int64)
    best = np.zeros(len(x), x.dtype)
    for row, (steps, length) in enumerate(zip(x, lengths.reshape(-1), strict=True)):
        score = steps[0] + (transition[-1] if include_bos_eos_tag else 0)
        before = []
        for step in steps[1:length]:
            total = score[:, None] + transition
            before.append(total.argmax(0))
            score = total.max(0) + step
        score = score + (transition[-2] if include_bos_eos_tag else 0)
        tag = int(score.argmax())
        best[row] = score[tag]
        for t in range(length - 1, -1, -1):
            path[row, t] = tag
            tag = int(before[t - 1][tag]) if t else tag
    return best, path
