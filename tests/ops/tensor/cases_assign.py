"""Cases of assign."""

import numpy as np

from paddlelike.core.tensor import SelectedRows
from tests.ops.harness.contract import Case

X = np.random.default_rng(3).standard_normal((3, 2))

CASES = [
    Case("assign", {"X": X}, lambda X: X + 0),
    Case(
        "assign",
        {"X": SelectedRows([2, 0, 2], 5, X)},
        lambda X: SelectedRows([2, 0, 2], 5, X.array + 0),
        wrt=(),
        note="selected-rows",
    ),
]
