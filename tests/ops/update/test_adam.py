"""Sparse gradients of adam beside dense ones."""

from __future__ import annotations

import numpy as np
import pytest

from paddlelike.core.tensor import SelectedRows
from paddlelike.ops.update.adam import Adam, AdamAttrs


@pytest.mark.parametrize("share", [0.02, 0.2, 0.9])
def test_adam_updates_every_row_that_has_moments_or_a_sparse_gradient(share: float) -> None:
    rng = np.random.default_rng(7)
    height, width = 40_000, 4
    moving = rng.random(height) < share
    m1, m2 = (np.where(moving[:, None], rng.random((height, width)), 0).astype("f4") for _ in range(2))
    rows = rng.permutation(height)[:300]
    values = rng.standard_normal((300, width)).astype("f4")
    dense = np.zeros((height, width), "f4")
    dense[rows] = values
    found = []
    for grad in (SelectedRows(rows, height, values), dense):
        arrays = [np.ones((height, width), "f4"), m1.copy(), m2.copy()]
        powers = [np.float32([0.9]), np.float32([0.999])]
        if grad is dense:  # as in Fluid, a sparse gradient is corrected by the powers of the next step
            powers = [power * power for power in powers]
        Adam.forward(arrays[0], grad, np.float32([0.1]), *arrays[1:], *powers, None, None, attrs=AdamAttrs())
        found.append(arrays)
    for sparse, whole in zip(*found, strict=True):
        assert sparse.tobytes() == whole.tobytes()
