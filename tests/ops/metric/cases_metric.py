"""Metrics."""

from __future__ import annotations

import itertools

import numpy as np

from paddlelike.core import LoDTensor
from tests.ops.harness.contract import Case

_rng = np.random.default_rng(8)
SCORE = _rng.random((40, 1))
PREDICT = np.hstack([1 - SCORE, SCORE])
LABEL = (SCORE + _rng.normal(0, 0.4, (40, 1)) > 0.5).astype(np.int64)
FOUND = np.array([[0], [1], [2], [1], [0], [3]], np.int32)
TRUE = np.array([[0], [2], [2], [1], [1], [0]], np.int32)
WEIGHTS = np.array([[0.5], [2.0], [1.0], [0.25], [3.0], [1.5]])
STATES = _rng.random((5, 4))


def _auc_of(score, label, num_thresholds):
    """The share of pairs (positive, negative) in the right order; half for the same bucket."""
    place = np.floor(score * num_thresholds)
    pos, neg = place[label == 1], place[label == 0]
    return np.mean((pos[:, None] > neg) + 0.5 * (pos[:, None] == neg))


def _counts(score, label, num_thresholds):
    place = (score * num_thresholds).astype(int)
    return [
        np.array([np.sum((place == i) & (label == kind)) for i in range(num_thresholds + 1)])
        for kind in (1, 0)
    ]


def _auc(Predict, Label, num_thresholds):
    score, label = Predict[:, 1], Label[:, 0]
    pos, neg = _counts(score, label, num_thresholds)
    return {
        "AUC": np.array([_auc_of(score, label, num_thresholds)]),
        "StatPosOut": pos[None],
        "StatNegOut": neg[None],
    }


_SLIDE = 9
_OLD = [_rng.integers(0, 4, (2, _SLIDE + 1)) for _ in range(2)]


def _table(steps, number):
    return np.concatenate([*steps, steps[0] + steps[1], [number]])


def _advance(Predict, Label):
    """Three steps were seen, so the new counts take the place of step 1."""
    new = _counts(Predict[:, 1], Label[:, 0], _SLIDE)
    pos, neg = (_table([old[0], count], 4) for old, count in zip(_OLD, new, strict=True))
    score = (
        np.repeat(np.arange(_SLIDE + 1), pos[20:30]),
        np.repeat(np.arange(_SLIDE + 1), neg[20:30]),
    )
    both = np.concatenate(score) / _SLIDE + 1e-9
    label = np.repeat([1, 0], [len(score[0]), len(score[1])])
    return {"AUC": np.array([_auc_of(both, label, _SLIDE)]), "StatPosOut": pos, "StatNegOut": neg}


def _states(found, true, weight, classes=5):
    out = np.zeros((classes, 4))
    for f, t, w in zip(found.ravel(), true.ravel(), weight.ravel(), strict=True):
        for c in range(classes):
            out[c, {(1, 1): 0, (1, 0): 1, (0, 0): 2, (0, 1): 3}[(int(c == f), int(c == t))]] += w
    return out


def _scores(states):
    tp, fp, _, fn = states.T
    with np.errstate(invalid="ignore"):
        p, r = (np.nan_to_num(tp / (tp + rest), nan=1.0).mean() for rest in (fp, fn))
    mp, mr = (tp.sum() / (tp + rest).sum() for rest in (fp, fn))
    return np.array([p, r, 2 * p * r / (p + r), mp, mr, 2 * mp * mr / (mp + mr)])


def _precision_recall(Indices, Labels, Weights=None, StatesInfo=None):
    batch = _states(Indices, Labels, np.ones(len(Indices)) if Weights is None else Weights)
    total = batch if StatesInfo is None else batch + StatesInfo
    return {
        "BatchMetrics": _scores(batch),
        "AccumMetrics": _scores(total),
        "AccumStatesInfo": total,
    }


CASES = [
    Case(
        "accuracy",
        {
            "Out": np.hstack([WEIGHTS] * 2),
            "Indices": np.hstack([FOUND, TRUE[::-1]]).astype(int),
            "Label": TRUE.astype(int),
        },
        lambda Indices, Label: {
            "Accuracy": np.float32([4 / 6]),
            "Correct": np.array([sum(t in row for row, (t,) in zip(Indices, Label, strict=True))]),
            "Total": np.array([6]),
        },
    ),
    Case(
        "auc",
        {
            "Predict": PREDICT,
            "Label": LABEL,
            "StatPos": np.zeros((1, 100), int),
            "StatNeg": np.zeros((1, 100), int),
        },
        _auc,
        {"num_thresholds": 99, "slide_steps": 0},
    ),
    Case(
        "auc",
        {
            "Predict": PREDICT,
            "Label": LABEL,
            "StatPos": _table(_OLD[0], 3),
            "StatNeg": _table(_OLD[1], 3),
        },
        _advance,
        {"num_thresholds": _SLIDE, "slide_steps": 2},
        note="slide",
    ),
    Case(
        "precision_recall",
        {"MaxProbs": WEIGHTS, "Indices": FOUND, "Labels": TRUE},
        _precision_recall,
        {"class_number": 5},
        check_shape=False,  # states are float64 here, as everything
    ),
    Case(
        "precision_recall",
        {
            "MaxProbs": WEIGHTS,
            "Indices": FOUND,
            "Labels": TRUE,
            "Weights": WEIGHTS,
            "StatesInfo": STATES,
        },
        _precision_recall,
        {"class_number": 5},
        check_shape=False,
        note="weighted",
    ),
    Case(
        "mean_iou",
        {
            "Predictions": np.array([[0, 1, 2], [1, 3, 3]], np.int32),
            "Labels": np.array([[0, 2, 2], [1, 1, 3]], np.int32),
        },
        lambda: {  # Paddle's
            "OutMeanIou": np.float32([0.5833333730697632]),
            "OutWrong": np.array([0, 2, 1, 1, 0]),
            "OutCorrect": np.array([1, 1, 1, 1, 0]),
        },
        {"num_classes": 5},
        rtol=2e-7,  # float32
    ),
    Case(
        "mean_iou",
        {
            "Predictions": np.array([[0, 1, 2], [1, 3, 3]], np.int32),
            "Labels": np.array([[0, 2, 2], [1, 1, 3]], np.int32),
            "InWrongs": [np.arange(5, dtype=np.int32)],
            "InCorrects": [np.arange(5, dtype=np.int32)],
            "InMeanIou": [np.float32([0.5])],
        },
        lambda: {  # Paddle's
            "OutMeanIou": np.float32([1.0800000429153442]),
            "OutWrong": np.array([0, 3, 3, 4, 4]),
            "OutCorrect": np.array([1, 2, 3, 4, 4]),
        },
        {"num_classes": 5},
        rtol=2e-7,  # float32
        note="accumulated",
    ),
]


_rng = np.random.default_rng(16)
HYPS, REFS = _rng.integers(0, 4, (9, 1)), _rng.integers(0, 4, (12, 1))
_HYP_ENDS, _REF_ENDS = [0, 4, 5, 9], [0, 3, 7, 12]
PADDED_HYPS, PADDED_REFS = _rng.integers(0, 3, (2, 3, 6))
LENGTHS = np.array([4, 6, 1]), np.array([6, 2, 3])


def _distance(a, b):
    if not a or not b:
        return len(a) + len(b)
    same = _distance(a[:-1], b[:-1]) + (a[-1] != b[-1])
    return min(same, _distance(a[:-1], b) + 1, _distance(a, b[:-1]) + 1)


def _distances(hyps, refs, normalized):
    found = [
        _distance(list(h), list(r)) / (len(r) if normalized else 1) for h, r in zip(hyps, refs, strict=True)
    ]
    return {"SequenceNum": np.array([len(found)]), "Out": np.float32(found)[:, None]}


def _cut(rows, ends):
    return [rows[a:b, 0] for a, b in itertools.pairwise(ends)]


_TAGS = {"plain": "", "IOB": "BI", "IOE": "IE", "IOBES": "BIES"}


def _chunks(sequence, scheme, types, excluded):
    """Chunks of one sequence by walking over it, one tag after the other."""
    chunks, start, names = set(), None, _TAGS[scheme] or "x"
    tags = [(int(t) // len(names), names[int(t) % len(names)]) for t in sequence]
    for i, (kind, tag) in enumerate([*tags, (types, "B")]):
        before = tags[i - 1] if i else (types, "E")
        border = kind != before[0] or tag in "BS" or before[1] in "ES"
        if start is not None and (border or i == len(tags)):
            if before[0] not in excluded:
                chunks.add((start, i, before[0]))
            start = None
        if start is None and kind != types and i < len(tags):
            start = i
    return chunks


def _chunk_eval(found, true, scheme, types, excluded):
    counts = np.zeros(3, int)
    for f, t in zip(found, true, strict=True):
        a, b = (_chunks(one, scheme, types, excluded) for one in (f, t))
        counts += len(a), len(b), len(a & b)
    infer, label, right = counts
    p, r = right / max(infer, 1), right / max(label, 1)
    shares = np.float32([p, r, 2 * p * r / (p + r) if right else 0])
    names = ["Precision", "Recall", "F1-Score", "NumInferChunks", "NumLabelChunks", "NumCorrectChunks"]
    return {name: np.array([v]) for name, v in zip(names, [*shares, *counts], strict=True)}


def _chunk_case(scheme, *, excluded=(), padded=False):
    types = 3
    last = types * max(len(_TAGS[scheme]), 1)
    true = _rng.integers(0, last + 1, (60, 1))
    found = np.where(_rng.random((60, 1)) < 0.8, true, _rng.integers(0, last + 1, (60, 1)))
    attrs = {
        "chunk_scheme": scheme,
        "num_chunk_types": types,
        "excluded_chunk_types": list(excluded),
    }
    if padded:
        lengths = np.array([20, 9, 15])
        found, true = found.reshape(3, 20), true.reshape(3, 20)
        inputs = {"Inference": found, "Label": true, "SeqLength": lengths}
        sequences = [[row[:n] for row, n in zip(rows, lengths, strict=True)] for rows in (found, true)]
    else:
        ends = [0, 7, 8, 31, 60]
        inputs = {name: LoDTensor(rows, [ends]) for name, rows in (("Inference", found), ("Label", true))}
        sequences = [_cut(rows, ends) for rows in (found, true)]
    note = scheme + ("-excluded" if excluded else "") + ("-padded" if padded else "")
    return Case(
        "chunk_eval",
        inputs,
        lambda: _chunk_eval(*sequences, scheme, types, excluded),
        attrs,
        note=note,
        rtol=4e-7,  # four roundings of float32 in F1
    )


CASES += [
    *(
        Case(
            "edit_distance",
            {"Hyps": LoDTensor(HYPS, [_HYP_ENDS]), "Refs": LoDTensor(REFS, [_REF_ENDS])},
            lambda normalized: _distances(_cut(HYPS, _HYP_ENDS), _cut(REFS, _REF_ENDS), normalized),
            {"normalized": normalized},
            note="normalized" if normalized else "",
            check_shape=False,  # declared as ids
        )
        for normalized in (False, True)
    ),
    Case(
        "edit_distance",
        {"Hyps": PADDED_HYPS, "Refs": PADDED_REFS, "HypsLength": LENGTHS[0], "RefsLength": LENGTHS[1]},
        lambda normalized: _distances(
            [row[:n] for row, n in zip(PADDED_HYPS, LENGTHS[0], strict=True)],
            [row[:n] for row, n in zip(PADDED_REFS, LENGTHS[1], strict=True)],
            normalized,
        ),
        note="padded",
        check_shape=False,
    ),
    *(_chunk_case(scheme) for scheme in _TAGS),
    _chunk_case("IOB", excluded=(1,)),
    _chunk_case("IOBES", padded=True),
]
