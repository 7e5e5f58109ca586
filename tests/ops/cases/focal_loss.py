"""Cases of meshgrid and the focal loss."""

from typing import Any

import numpy as np

from tests.ops.contract import Case

_rng = np.random.default_rng(9)
A, B = _rng.standard_normal(3), _rng.standard_normal(4)


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

CASES = [
    Case(
        "meshgrid",
        {"X": [A, B]},
        lambda X: {"Out": [np.outer(X[0], np.ones(4)), np.outer(np.ones(3), X[1])]},
    ),
    Case("sigmoid_focal_loss", FOCAL, _focal),
    Case("sigmoid_focal_loss", FOCAL, _focal, {"gamma": 0.5, "alpha": 0.75}, note="other"),
]
