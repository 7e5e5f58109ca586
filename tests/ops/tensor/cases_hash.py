"""The case of hash."""

import numpy as np

from tests.ops.harness.contract import Case

CASES = [
    Case(
        "hash",
        {"X": np.array([[5, 6, 7]], np.int32)},
        lambda: np.array([[[0], [18]]], np.int32),  # real Fluid 1.8.5
        {"num_hash": 2, "mod_by": 23},
    ),
]
