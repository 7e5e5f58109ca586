"""Losses of classes."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.ops.harness.contract import Case

_rng = np.random.default_rng(5)
LOGITS = _rng.standard_normal((4, 3))
P = np.exp(LOGITS) / np.exp(LOGITS).sum(1, keepdims=True)
SOFT = _rng.dirichlet([1.0, 2.0, 3.0], 4)
LABEL = np.array([[1], [0], [2], [0]])
SOME = np.array([[1], [-100], [2], [-100]])


def _soft(label: np.ndarray, classes: int = 3) -> np.ndarray:
    """Hard labels as distributions; ignored ones as zeros."""
    return (label == np.arange(classes)).astype(float)


def _entropy(p: np.ndarray, label: np.ndarray) -> np.ndarray:
    return -np.einsum("nc,nc->n", label, np.log(p))[:, None]


def _softmax_entropy(logits: np.ndarray, label: np.ndarray) -> dict[str, np.ndarray]:
    p = np.exp(logits) / np.exp(logits).sum(1, keepdims=True)
    return {"Softmax": p, "Loss": _entropy(p, label)}


CASES = [
    Case("cross_entropy", {"X": P, "Label": LABEL}, lambda X, Label: _entropy(X, _soft(Label))),
    Case(
        "cross_entropy",
        {"X": P, "Label": SOME},
        lambda X, Label: _entropy(X, _soft(Label)),
        note="ignored",
    ),
    Case(
        "cross_entropy",
        {"X": P, "Label": LABEL[:, 0]},
        lambda X, Label: -np.log([X[0, 1], X[1, 0], X[2, 2], X[3, 0]]),
        note="flat-label",
    ),
    Case(
        "cross_entropy",
        {"X": P, "Label": SOFT},
        lambda X, Label: _entropy(X, Label),
        {"soft_label": True},
        wrt=["X"],
        note="soft",
    ),
    Case(
        "cross_entropy",
        {"X": P.reshape(2, 2, 3), "Label": LABEL.reshape(2, 2, 1)},
        lambda X, Label: _entropy(X.reshape(4, 3), _soft(Label.reshape(4, 1))).reshape(2, 2, 1),
        note="3-d",
    ),
    *(
        Case(
            "cross_entropy2",
            {"X": P, "Label": label},
            lambda X, Label: {
                "Y": _entropy(X, _soft(Label)),
                "XShape": np.empty((4, 3, 0)),
                "MatchX": (X * _soft(Label)).sum(1, keepdims=True),
            },
            note=note,
        )
        for label, note in ((LABEL, ""), (SOME, "ignored"))
    ),
    Case(
        "softmax_with_cross_entropy",
        {"Logits": LOGITS, "Label": LABEL},
        lambda Logits, Label: _softmax_entropy(Logits, _soft(Label)),
        through=["Loss"],
    ),
    Case(
        "softmax_with_cross_entropy",
        {"Logits": LOGITS, "Label": SOME},
        lambda Logits, Label: _softmax_entropy(Logits, _soft(Label)),
        through=["Loss"],
        note="ignored",
    ),
    Case(
        "softmax_with_cross_entropy",
        {"Logits": LOGITS, "Label": SOFT},
        lambda Logits, Label: _softmax_entropy(Logits, Label),
        {"soft_label": True, "numeric_stable_mode": False},
        wrt=["Logits"],
        through=["Loss"],
        note="soft",
    ),
    Case(
        "softmax_with_cross_entropy",
        {"Logits": LOGITS.T.copy(), "Label": LABEL.T.copy()},
        lambda Logits, Label: {k: v.T for k, v in _softmax_entropy(Logits.T, _soft(Label.T)).items()},
        {"axis": 0},
        through=["Loss"],
        note="axis-0",
    ),
]


_rng = np.random.default_rng(15)
X = _rng.standard_normal((4, 3))
IMAGES = _rng.standard_normal((2, 3, 2, 2))
IMAGE_LABEL = _rng.integers(0, 3, (2, 2, 2))
LABEL = np.array([[1], [0], [2], [1]])
SOME = np.array([1, -100, 2, 1])
WEIGHT = np.array([0.5, 2.0, 3.0])
CENTERS = _rng.standard_normal((3, 3))


def _bpr(X, Label):
    rows = []
    for x, (label,) in zip(X, Label, strict=True):
        rows.append([np.mean([np.log1p(np.exp(v - x[label])) for j, v in enumerate(x) if j != label])])
    return np.array(rows)


def _nll(X, Label, reduction, Weight=None):
    weight = np.ones(3) if Weight is None else Weight
    rows = X.reshape(len(X), 3, -1).transpose(0, 2, 1).reshape(-1, 3)
    picked = [
        (-weight[k] * row[k], weight[k]) if k >= 0 else (0.0, 0.0)
        for row, k in zip(rows, Label.ravel(), strict=True)
    ]
    loss, used = np.array(picked).T
    total = np.array([used.sum()])
    if reduction == "none":
        return {"Out": loss.reshape(Label.shape), "Total_weight": np.zeros(1)}
    out = loss.sum(keepdims=True)
    return {"Out": out / total if reduction == "mean" else out, "Total_weight": total}


def _center(X, Label, Centers, CenterUpdateRate, need_update):
    centers = Centers.copy()
    for k in range(3):
        mine = [x - Centers[k] for x, (label,) in zip(X, Label, strict=True) if label == k]
        if need_update and mine:
            centers[k] += CenterUpdateRate[0] * sum(mine) / (1 + len(mine))
    diff = X - Centers[Label[:, 0]]
    loss = 0.5 * np.einsum("ij,ij->i", diff, diff)[:, None]
    return {"CentersOut": centers, "SampleCenterDiff": diff, "Loss": loss}


CASES += [
    Case("bpr_loss", {"X": X, "Label": LABEL}, _bpr),
    *(
        Case(
            "nll_loss",
            {"X": X, "Label": SOME, **({"Weight": WEIGHT} if weighted else {})},
            _nll,
            {"reduction": reduction},
            wrt=["X"],
            through=["Out"],
            note=f"{reduction}{'-weighted' if weighted else ''}",
        )
        for reduction in ("none", "mean", "sum")
        for weighted in (False, True)
    ),
    *(
        Case(
            "nll_loss",
            {"X": IMAGES, "Label": IMAGE_LABEL},
            _nll,
            {"reduction": reduction},
            through=["Out"],
            note=f"images-{reduction}",
        )
        for reduction in ("none", "mean")
    ),
    *(
        Case(
            "center_loss",
            {"X": X, "Label": LABEL, "Centers": CENTERS, "CenterUpdateRate": np.array([0.3])},
            _center,
            {"cluster_num": 3, "need_update": need_update},
            wrt=["X"],
            through=["Loss"],
            note="update" if need_update else "fixed",
        )
        for need_update in (True, False)
    ),
]


_rng = np.random.default_rng(9)


def _focal(X: Any, Label: Any, FgNum: Any, gamma: float, alpha: float) -> Any:
    out = np.zeros_like(X)
    for i, c in np.ndindex(*X.shape):
        p = 1 / (1 + np.exp(-X[i, c]))
        if Label[i, 0] == c + 1:
            out[i, c] = -alpha * (1 - p) ** gamma * np.log(p)
        elif Label[i, 0] != -1:
            out[i, c] = -(1 - alpha) * p**gamma * np.log(1 - p)
    return out / max(int(FgNum[0]), 1)


FOCAL = {
    "X": _rng.standard_normal((4, 3)),
    "Label": np.array([[1], [0], [3], [-1]], "int32"),
    "FgNum": np.array([2], "int32"),
}

CASES += [
    Case("sigmoid_focal_loss", FOCAL, _focal),
    Case("sigmoid_focal_loss", FOCAL, _focal, {"gamma": 0.5, "alpha": 0.75}, note="other"),
]
