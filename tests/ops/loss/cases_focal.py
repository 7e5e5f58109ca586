"""Cases of the focal loss."""

from typing import Any

import numpy as np

from tests.ops.harness.contract import Case

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

CASES = [
    Case("sigmoid_focal_loss", FOCAL, _focal),
    Case("sigmoid_focal_loss", FOCAL, _focal, {"gamma": 0.5, "alpha": 0.75}, note="other"),
]
