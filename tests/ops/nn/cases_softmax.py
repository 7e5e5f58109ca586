"""Cases of softmax and maxout."""

import numpy as np

from tests.ops.harness.contract import Case

_rng = np.random.default_rng(4)
X = _rng.standard_normal((3, 4, 5))
IMAGES = _rng.standard_normal((2, 6, 3, 2))
SIGNED = IMAGES + np.sign(IMAGES) * 0.1  # away from 0


def _softmax(axis: int):
    def formula(X):
        return np.apply_along_axis(lambda row: np.exp(row) / sum(np.exp(row)), axis, X)

    return formula


CASES = [
    Case("softmax", {"X": X}, _softmax(-1)),
    Case("softmax", {"X": X[0]}, _softmax(1), {"axis": 1}, note="matrix"),
    Case("softmax", {"X": X}, _softmax(1), {"axis": 1}, note="middle-axis"),
    Case("softmax", {"X": X[0, 0]}, _softmax(0), {"axis": 0}, note="vector"),
    Case(
        "maxout",
        {"X": IMAGES},
        lambda X: np.stack([X[:, 3 * c : 3 * c + 3].max(1) for c in range(2)], 1),
        {"groups": 3},
    ),
    Case(
        "maxout",
        {"X": IMAGES},
        lambda X: X.max(3, keepdims=True),
        {"groups": 2, "axis": -1},
        note="last-axis",
    ),
]
