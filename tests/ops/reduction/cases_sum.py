"""Cases of the sum of several values."""

import numpy as np

from paddlelike.core import SelectedRows
from tests.ops.harness.contract import Case

_rng = np.random.default_rng(13)
A, B, C = _rng.standard_normal((3, 5, 2))
ROWS = SelectedRows([4, 1, 4], 5, A[:3])
MORE = SelectedRows([0, 1], 5, B[:2])
DENSE = np.stack([A[0] * 0, A[1], A[0] * 0, A[0] * 0, A[0] + A[2]])  # ROWS, written out

CASES = [
    Case("sum", {"X": [A, B]}, lambda: np.array([a + b for a, b in zip(A, B, strict=True)])),
    Case("sum", {"X": [A, B, C]}, lambda: np.stack([A, B, C]).sum(0), note="three"),
    Case("sum", {"X": [A]}, lambda: A, note="one"),
    Case(
        "sum",
        {"X": [A, B, A, ROWS]},
        lambda: 2 * A + B + DENSE,
        wrt=(),
        note="rows-among-tensors",
    ),
    Case("sum", {"X": [ROWS, C]}, lambda: C + DENSE, wrt=(), note="rows-first"),
    Case(
        "sum",
        {"X": [ROWS, MORE]},
        lambda: SelectedRows([0, 1, 4], 5, np.stack([B[0], A[1] + B[1], A[0] + A[2]])),
        wrt=(),
        note="rows-alone",
    ),
]
