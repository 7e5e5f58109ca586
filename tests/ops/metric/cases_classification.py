"""Cases of the metrics of classifiers; numbers marked so are Paddle 1.8.5's own."""

import numpy as np

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
