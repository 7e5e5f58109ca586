"""Cases of stack, unstack and unbind."""

import numpy as np

from tests.ops.harness.contract import Case

_rng = np.random.default_rng(2)
A, C = _rng.standard_normal((2, 3, 4, 2))

CASES = [
    Case(
        "stack",
        {"X": [A, C]},
        lambda X: np.array(X).transpose(1, 2, 0, 3),
        {"axis": 2},
        note="axis-2",
    ),
    Case("stack", {"X": [A, C]}, lambda X: np.array(X), {"axis": -4}),
    Case("unstack", {"X": A}, lambda X: {"Y": [X[:, i] for i in range(4)]}, {"axis": 1, "num": 4}),
    Case("unbind", {"X": A}, lambda X: {"Out": [X[..., 0], X[..., 1]]}, {"axis": -1}),
]
