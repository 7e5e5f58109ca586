"""Cases of data_norm. The gradients of its sums are defined, not derived; test_batch_norm.py checks those."""

import numpy as np

from tests.ops.harness.contract import Case

_rng = np.random.default_rng(12)
X = _rng.standard_normal((5, 6))
X[1, 0] = X[4, 3] = 0.0
SUMS = {
    "BatchSize": _rng.uniform(5, 9, 6),
    "BatchSum": _rng.standard_normal(6),
    "BatchSquareSum": _rng.uniform(5, 9, 6),
}
AFFINE = {"scale_w": _rng.standard_normal(6), "bias": _rng.standard_normal(6)}


def _plain(X, BatchSize, BatchSum, BatchSquareSum):
    means = BatchSum / BatchSize
    scales = (BatchSize / BatchSquareSum) ** 0.5
    return {"Y": (X - means) * scales, "Means": means, "Scales": scales}


def _affine(X, BatchSize, BatchSum, BatchSquareSum, scale_w, bias):
    out = _plain(X, BatchSize, BatchSum, BatchSquareSum)
    return out | {"Y": out["Y"] * scale_w + bias}


def _slots(X, BatchSize, BatchSum, BatchSquareSum, scale_w, bias):
    y = _affine(X, BatchSize, BatchSum, BatchSquareSum, scale_w, bias)["Y"]
    y[1, :3] = y[4, 3:] = 0
    return y


_SHIFTED = {"enable_scale_and_shift": True}

CASES = [
    Case("data_norm", {"X": X} | SUMS, _plain, wrt=["X"]),
    Case(
        "data_norm",
        {"X": X} | SUMS | AFFINE,
        _affine,
        _SHIFTED,
        wrt=["X", "scale_w", "bias"],
        through=["Y"],
        note="affine",
    ),
    Case(
        "data_norm",
        {"X": X} | SUMS | AFFINE,
        _slots,
        _SHIFTED | {"slot_dim": 3},
        wrt=["scale_w", "bias"],
        through=["Y"],
        note="slots",
    ),
]
