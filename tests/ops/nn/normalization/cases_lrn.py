"""Cases of lrn, one channel at a time."""

import numpy as np

from tests.ops.harness.contract import Case

_rng = np.random.default_rng(14)
_normal = lambda *shape: _rng.standard_normal(shape)
X = _normal(2, 8, 4, 6)
LAST = np.ascontiguousarray(np.moveaxis(X, 1, -1))


def _lrn(X, n, k, alpha, beta, data_format):
    if data_format == "NHWC":
        out = _lrn(np.moveaxis(X, -1, 1), n, k, alpha, beta, "NCHW")
        return {slot: np.moveaxis(value, 1, -1) for slot, value in out.items()}
    near = lambda c: X[:, max(0, c - n // 2) : c + n // 2 + 1]
    mid = np.stack([k + alpha * (near(c) ** 2).sum(1) for c in range(X.shape[1])], 1)
    return {"Out": X / mid**beta, "MidOut": mid}


CASES = [
    Case("lrn", {"X": X}, _lrn, {"alpha": 0.3}, through=["Out"]),
    Case(
        "lrn",
        {"X": LAST},
        _lrn,
        {"alpha": 0.3, "n": 3, "k": 1.0, "beta": 0.5, "data_format": "NHWC"},
        through=["Out"],
        note="channels-last",
    ),
    Case("lrn", {"X": X[:, :2]}, _lrn, {"alpha": 0.3, "n": 7}, through=["Out"], note="wide"),
]
