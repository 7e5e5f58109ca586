"""Momentum and LarsMomentum against their formulas."""

from __future__ import annotations

import numpy as np
import pytest

from paddlelike import optimizer
from tests.optimizer.harness.training import follow

START = [0.5, -1.0, 2.0]
GRADIENTS = [[0.3, -0.2, 0.0], [-0.1, 0.4, 1.0], [0.2, 0.2, -0.5]]


@pytest.mark.parametrize("nesterov", [False, True], ids=["plain", "nesterov"])
def test_momentum_keeps_a_velocity(nesterov: bool) -> None:
    p, v = np.array(START), np.zeros(3)
    tool = optimizer.Momentum(0.1, 0.9, use_nesterov=nesterov)
    for gradient, found in zip(GRADIENTS, follow(tool, START, GRADIENTS), strict=True):
        g = np.array(gradient)
        v = 0.9 * v + g
        p = p - 0.1 * (g + 0.9 * v if nesterov else v)
        np.testing.assert_allclose(found, p, rtol=1e-5)  # float32


def test_lars_scales_the_rate_by_the_norms() -> None:
    p, v = np.array(START), np.zeros(3)
    tool = optimizer.LarsMomentum(0.1, 0.9, lars_coeff=0.01, lars_weight_decay=0.02)
    for gradient, found in zip(GRADIENTS, follow(tool, START, GRADIENTS), strict=True):
        g = np.array(gradient)
        norms = np.linalg.norm(p), np.linalg.norm(g)
        rate = 0.1 * 0.01 * norms[0] / (norms[1] + 0.02 * norms[0])
        v = 0.9 * v + rate * (g + 0.02 * p)
        p = p - v
        np.testing.assert_allclose(found, p, rtol=1e-5)  # float32
