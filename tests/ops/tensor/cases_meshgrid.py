"""The case of meshgrid."""

import numpy as np

from tests.ops.harness.contract import Case

_rng = np.random.default_rng(9)
A, B = _rng.standard_normal(3), _rng.standard_normal(4)

CASES = [
    Case(
        "meshgrid",
        {"X": [A, B]},
        lambda X: {"Out": [np.outer(X[0], np.ones(4)), np.outer(np.ones(3), X[1])]},
    ),
]
