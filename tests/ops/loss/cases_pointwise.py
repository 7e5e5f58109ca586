"""Losses of each element, and of pairs."""

from __future__ import annotations

import numpy as np

from tests.ops.harness.contract import Case

_rng = np.random.default_rng(13)
X = _rng.standard_normal((4, 3)) * 1.5
P = _rng.uniform(0.05, 0.95, (4, 3))
SOFT = _rng.uniform(0.05, 0.95, (4, 3))
SIDES = (X + _rng.standard_normal((4, 3)) > 0).astype(float)
SOME = np.where(P > 0.7, -100.0, SOFT)
COLUMN = np.array([[-3.0], [-0.4], [0.3], [2.5]])
SIDE = np.array([[1.0], [1.0], [1.0], [0.0]])
CLICKS = np.array([[-2.0], [-1.0], [0.4], [1.3], [0.2]])
SCORES = np.array([[0.5], [-0.3], [1.0], [2.0], [-0.7]])


def _entropy(p, label, epsilon=0.0):
    return -label * np.log(p + epsilon) - (1 - label) * np.log(1 - p + epsilon)


def _sigmoid_entropy(X, Label, normalize):
    kept = Label != -100
    out = np.where(kept, _entropy(1 / (1 + np.exp(-X)), np.where(kept, Label, 0.5)), 0)
    return out / kept.sum() if normalize else out


def _modified_huber(X, Y):
    margin = X * np.where(Y > 0, 1, -1)
    loss = [-4 * m if m < -1 else (1 - m) ** 2 if m < 1 else 0.0 for m in margin.ravel()]
    return {"IntermediateVal": margin, "Out": np.reshape(loss, X.shape)}


def _teacher_student(X, Label):
    def h(x, z):
        return np.log1p(np.exp(x)) - x * z

    return np.array(
        [
            [
                h(x, 0) if z < -1
                else h(x, 1) if z < 0
                else h(x, 0) + h(x, z) if z < 1
                else h(x, 1) + h(x, z - 1)
            ]
            for (x,), (z,) in zip(X, Label, strict=True)
        ]
    )  # fmt: skip


def _kldiv(X, Target, reduction):
    loss = np.zeros_like(X)
    for place in np.argwhere(Target > 0):
        x, t = X[tuple(place)], Target[tuple(place)]
        loss[tuple(place)] = t * np.log(t) - t * x
    total = {"mean": loss.mean(), "sum": loss.sum(), "batchmean": loss.sum() / len(X)}
    return loss if reduction == "none" else np.array([total[reduction]])


CASES = [
    *(
        Case(
            "sigmoid_cross_entropy_with_logits",
            {"X": X, "Label": SOME},
            _sigmoid_entropy,
            {"normalize": normalize},
            wrt=["X"],
            note=f"normalize-{normalize}",
        )
        for normalize in (False, True)
    ),
    Case("bce_loss", {"X": P, "Label": SOFT}, lambda X, Label: _entropy(X, Label), wrt=["X"]),
    Case(
        "bce_loss",
        {"X": np.array([[0.0, 1, 0, 1]]), "Label": np.array([[0.0, 1, 1, 0]])},
        lambda X, Label: np.array([[0.0, 0, 100, 100]]),
        wrt=(),
        note="certain",
    ),
    Case(
        "log_loss",
        {"Predicted": P[:, :1], "Labels": SIDE},
        lambda Predicted, Labels: _entropy(Predicted, Labels, 0.1),
        {"epsilon": 0.1},
        wrt=["Predicted"],
    ),
    Case(
        "hinge_loss",
        {"Logits": COLUMN, "Labels": SIDE},
        lambda Logits, Labels: np.array(
            [[max(0, 1 - x if y else 1 + x)] for (x,), (y,) in zip(Logits, Labels, strict=True)]
        ),
        wrt=["Logits"],
    ),
    Case("modified_huber_loss", {"X": COLUMN, "Y": SIDE}, _modified_huber, wrt=["X"], through=["Out"]),
    Case("teacher_student_sigmoid_loss", {"X": SCORES, "Label": CLICKS}, _teacher_student, wrt=["X"]),
    *(
        Case(
            "kldiv_loss",
            {"X": X, "Target": SOFT - 0.3},
            _kldiv,
            {"reduction": reduction},
            wrt=["X"],
            note=reduction,
        )
        for reduction in ("none", "mean", "sum", "batchmean")
    ),
    Case("label_smooth", {"X": SOFT}, lambda X: 0.875 * X + float(np.float32(0.125 / 3)), {"epsilon": 0.125}),
    Case(
        "label_smooth",
        {"X": SOFT, "PriorDist": np.array([[0.2, 0.3, 0.5]])},
        lambda X: X + 0.25 * (np.array([0.2, 0.3, 0.5]) - X),
        {"epsilon": 0.25},
        wrt=["X"],
        note="prior",
    ),
]


_rng = np.random.default_rng(14)
X, Y, INSIDE, OUTSIDE = _rng.standard_normal((4, 4, 3))
LEFT, RIGHT = _rng.standard_normal((2, 4, 1))
LABEL = np.array([[0.0], [1.0], [0.3], [0.8]])
SIGN = np.array([[1.0], [-1.0], [1.0], [-1.0]])


def _huber(X, Y, delta):
    loss = [r * r / 2 if abs(r) <= delta else delta * abs(r) - delta * delta / 2 for r in (Y - X).ravel()]
    return {"Residual": Y - X, "Out": np.reshape(loss, X.shape)}


def _smooth_l1(X, Y, sigma, InsideWeight, OutsideWeight):
    inside, outside = (np.ones(X.shape) if w is None else w for w in (InsideWeight, OutsideWeight))
    diff = inside * (X - Y)
    each = [(sigma * d) ** 2 / 2 if abs(d) < 1 / sigma**2 else abs(d) - 0.5 / sigma**2 for d in diff.ravel()]
    return {"Diff": diff, "Out": (outside * np.reshape(each, X.shape)).sum(1)[:, None]}


def _margin_rank(X1, X2, Label, margin):
    out = margin - Label * (X1 - X2)
    return {"Activated": out > 0, "Out": out * (out > 0)}


CASES += [
    Case("huber_loss", {"X": X[:, :1], "Y": Y[:, :1]}, _huber, {"delta": 0.75}, through=["Out"]),
    Case(
        "smooth_l1_loss",
        {"X": X, "Y": Y},
        _smooth_l1,
        {"sigma": 1.25},
        wrt=["X", "Y"],
        through=["Out"],
    ),
    Case(
        "smooth_l1_loss",
        {"X": X, "Y": Y, "InsideWeight": INSIDE, "OutsideWeight": OUTSIDE},
        _smooth_l1,
        wrt=["X", "Y"],
        through=["Out"],
        note="weights",
    ),
    Case(
        "rank_loss",
        {"Label": LABEL, "Left": LEFT, "Right": RIGHT},
        lambda Label, Left, Right: np.log(1 + np.exp(Left - Right)) - Label * (Left - Right),
        wrt=["Left", "Right"],
    ),
    Case(
        "margin_rank_loss",
        {"Label": SIGN, "X1": LEFT, "X2": RIGHT},
        _margin_rank,
        {"margin": 0.125},
        wrt=["X1", "X2"],
        through=["Out"],
    ),
]
