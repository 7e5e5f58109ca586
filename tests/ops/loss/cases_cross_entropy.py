"""Cases of the cross entropies."""

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
