"""Cases of grids and what they sample, one point at a time."""

import numpy as np

from tests.ops.harness.contract import Case

_rng = np.random.default_rng(16)
THETA = _rng.standard_normal((2, 2, 3))
X = _rng.standard_normal((2, 3, 4, 5))
GRID = _rng.uniform(-1.4, 1.4, (2, 4, 5, 2))


def _grid(theta, height, width):
    out = np.empty((len(theta), height, width, 2))
    for n, h, w in np.ndindex(*out.shape[:3]):
        out[n, h, w] = theta[n] @ [2 * w / (width - 1) - 1, 2 * h / (height - 1) - 1, 1]
    return out


def _sample(X, Grid):
    height, width = X.shape[2:]
    out = np.zeros(X.shape)
    for n, h, w in np.ndindex(len(X), height, width):
        x, y = (Grid[n, h, w] + 1) / 2 * (width - 1, height - 1)
        for i, j in np.ndindex(height, width):
            out[n, :, h, w] += max(0, 1 - abs(y - i)) * max(0, 1 - abs(x - j)) * X[n, :, i, j]
    return out


CASES = [
    Case("affine_grid", {"Theta": THETA}, lambda Theta: _grid(Theta, 3, 4), {"output_shape": [2, 1, 3, 4]}),
    Case(
        "affine_grid",
        {"Theta": THETA, "OutputShape": np.array([2, 1, 2, 5], np.int32)},
        lambda Theta: _grid(Theta, 2, 5),
        note="shape-tensor",
    ),
    Case("grid_sampler", {"X": X, "Grid": GRID}, _sample),
]
