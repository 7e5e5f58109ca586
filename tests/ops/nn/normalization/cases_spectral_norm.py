"""Cases of spectral_norm: with the singular vectors given, and found by the power iteration."""

import numpy as np

from tests.ops.harness.contract import Case

_rng = np.random.default_rng(13)
W = _rng.standard_normal((4, 3, 2))
U, V = _rng.standard_normal(4), _rng.standard_normal(6)


def _given(Weight, U, V):
    return Weight / np.einsum("i,ij,j", U, Weight.reshape(4, 6), V)


def _largest(Weight):
    rows = Weight.transpose(1, 0, 2).reshape(3, 8)
    return Weight / np.linalg.svd(rows, compute_uv=False)[0]


CASES = [
    Case("spectral_norm", {"Weight": W, "U": U, "V": V}, _given, {"power_iters": 0}),
    Case(
        "spectral_norm",
        {"Weight": W, "U": _rng.standard_normal(3), "V": _rng.standard_normal(8)},
        _largest,
        {"power_iters": 200, "dim": 1},
        note="converged",
    ),
    Case(
        "spectral_norm",
        {"Weight": W, "U": U / 3, "V": V},
        lambda Weight, U, V: _given(Weight, *_steps(Weight.reshape(4, 6), U, 2)),
        {"power_iters": 2},
        wrt=(),  # the vectors count as constants
        note="two-steps",
    ),
]


def _steps(matrix, u, count):
    for _ in range(count):
        v = matrix.T @ u / np.linalg.norm(matrix.T @ u)
        u = matrix @ v / np.linalg.norm(matrix @ v)
    return u, v
