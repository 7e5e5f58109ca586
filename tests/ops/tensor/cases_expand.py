"""Cases of the operators that repeat an array or change the order along its dims."""

import numpy as np

from tests.ops.harness.contract import Case

X = np.random.default_rng(12).standard_normal((2, 1, 3))
_int = lambda *n: np.array(n, np.int32)

CASES = [
    Case("expand", {"X": X}, lambda X: np.tile(X, (2, 3, 1)), {"expand_times": [2, 3, 1]}),
    Case(
        "expand",
        {"X": X, "ExpandTimes": _int(1, 2, 2)},
        lambda X: np.tile(X, (1, 2, 2)),
        note="tensor",
    ),
    Case(
        "expand",
        {"X": X, "expand_times_tensor": [_int(1), _int(2), _int(2)]},
        lambda X: np.tile(X, (1, 2, 2)),
        {"expand_times": [1, -1, -1]},
        note="tensors",
    ),
    Case(
        "expand_as",
        {"X": X, "target_tensor": np.zeros((2, 4, 6))},
        lambda X: np.tile(X, (1, 4, 2)),
        wrt=["X"],
    ),
    Case("reverse", {"X": X}, lambda X: X[::-1, :, ::-1], {"axis": [0, 2]}),
    Case("flip", {"X": X}, lambda X: X[:, :, ::-1], {"dims": [-1]}),
    Case("roll", {"X": X}, lambda X: X[..., [1, 2, 0]], {"shifts": [2], "dims": [2]}),
    Case(
        "roll",
        {"X": X},
        lambda X: X.ravel()[[5, 0, 1, 2, 3, 4]].reshape(X.shape),
        {"shifts": [1]},
        note="as-one-row",
    ),
]
