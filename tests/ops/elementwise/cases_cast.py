"""Cases of cast."""

import math

import numpy as np

from paddlelike.core import VarType
from tests.ops.harness.contract import Case

X = np.random.default_rng(12).standard_normal((3, 4))

CASES = [
    Case(
        "cast",
        {"X": X},
        lambda X: X,
        {"in_dtype": VarType.FP64, "out_dtype": VarType.FP64},
    ),
    Case(
        "cast",
        {"X": X * 3},
        lambda X: np.array([[math.trunc(x) for x in row] for row in X]),
        {"in_dtype": VarType.FP64, "out_dtype": VarType.INT64},
        wrt=(),
        note="to-integers",
    ),
    Case(
        "cast",
        {"X": np.array([0, 1, -2])},
        lambda: np.array([False, True, True]),
        {"in_dtype": VarType.INT64, "out_dtype": VarType.BOOL},
        wrt=(),
        note="to-bool",
    ),
]
