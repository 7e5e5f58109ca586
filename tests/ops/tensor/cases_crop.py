"""Cases of crop and crop_tensor."""

import numpy as np

from tests.ops.harness.contract import Case

X = np.random.default_rng(10).standard_normal((4, 5, 3))
_int = lambda *n: np.array(n, np.int32)

CASES = [
    Case("crop", {"X": X}, lambda X: X[1:3, :4, 1:], {"offsets": [1, 0, 1], "shape": [2, 4, 2]}),
    Case(
        "crop",
        {"X": X, "Y": X[:2, :2, :2], "Offsets": _int(1, 3, 0)},
        lambda X: X[1:3, 3:5, :2],
        wrt=["X"],
        note="tensors",
    ),
    Case(
        "crop_tensor",
        {"X": X},
        lambda X: X[1:3, 2:, 1:],
        {"offsets": [1, 2, 1], "shape": [2, -1, -1]},
    ),
    Case(
        "crop_tensor",
        {"X": X, "Shape": _int(2, 2, -1), "Offsets": _int(1, 3, 0)},
        lambda X: X[1:3, 3:5],
        note="tensors",
    ),
    Case(
        "crop_tensor",
        {
            "X": X,
            "ShapeTensor": [_int(2), _int(2), _int(3)],
            "OffsetsTensor": [_int(0), _int(2), _int(0)],
        },
        lambda X: X[:2, 2:4],
        {"shape": [-1, 2, -1], "offsets": [-1, -1, 0]},
        note="tensor-lists",
    ),
]
