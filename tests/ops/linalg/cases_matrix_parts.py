"""Cases of trace and tril_triu."""

import numpy as np

from tests.ops.harness.contract import Case

X = np.random.default_rng(11).standard_normal((3, 4, 5))

CASES = [
    Case("trace", {"Input": X}, lambda Input: np.einsum("bii->b", Input[..., :4])),
    Case(
        "trace",
        {"Input": X[0]},
        lambda Input: np.array([sum(Input[i, i + 2] for i in range(3))]),
        {"offset": 2},
        note="matrix",
    ),
    Case(
        "trace",
        {"Input": X},
        lambda Input: np.einsum("ibi->b", Input[1:, :, :2]),
        {"offset": -1, "dim1": 2, "dim2": 0},
        note="rows-in-the-lower-dim",
    ),
    Case(
        "trace",
        {"Input": X},
        lambda Input: np.zeros(3),
        {"offset": 9},
        note="outside",
    ),
    *(
        Case(
            "tril_triu",
            {"X": X},
            lambda X, diagonal, lower: (
                X * [[j - i <= diagonal if lower else j - i >= diagonal for j in range(5)] for i in range(4)]
            ),
            {"lower": lower, "diagonal": diagonal},
            note=f"{'lower' if lower else 'upper'}{diagonal}",
        )
        for lower in (True, False)
        for diagonal in (-1, 0, 2)
    ),
]
