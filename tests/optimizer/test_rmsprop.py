"""RMSProp against its formula."""

from __future__ import annotations

import numpy as np
import pytest

from paddlelike import optimizer
from tests.optimizer.harness.training import follow

START = [0.5, -1.0, 2.0]
GRADIENTS = [[0.3, -0.2, 0.0], [-0.1, 0.4, 1.0], [0.2, 0.2, -0.5]]


@pytest.mark.parametrize("centered", [False, True], ids=["plain", "centered"])
def test_rmsprop_divides_by_a_moving_mean(centered: bool) -> None:
    p, square, mean, v = np.array(START), np.zeros(3), np.zeros(3), np.zeros(3)
    tool = optimizer.RMSProp(0.1, rho=0.9, epsilon=1e-3, momentum=0.5, centered=centered)
    for gradient, found in zip(GRADIENTS, follow(tool, START, GRADIENTS), strict=True):
        g = np.array(gradient)
        square, mean = 0.9 * square + 0.1 * g * g, 0.9 * mean + 0.1 * g
        spread = square - mean * mean if centered else square
        v = 0.5 * v + 0.1 * g / np.sqrt(spread + 1e-3)
        p = p - v
        np.testing.assert_allclose(found, p, rtol=1e-5)  # float32
