"""FTRL: a strong penalty, a rate of zero."""

from __future__ import annotations

from paddlelike import optimizer
from tests.optimizer.harness.training import follow

START = [0.5, -1.0, 2.0]
GRADIENTS = [[0.3, -0.2, 0.0], [-0.1, 0.4, 1.0], [0.2, 0.2, -0.5]]


def test_a_great_l1_makes_weights_zero() -> None:
    assert follow(optimizer.Ftrl(0.1, l1=100.0, l2=100.0), START, GRADIENTS)[-1].tolist() == [0, 0, 0]


def test_a_rate_of_zero_makes_weights_zero() -> None:
    """It divides zero by zero. Paddle 1.8.5 leaves the state at NaN and the weights at 0."""
    assert follow(optimizer.Ftrl(0.0), START, GRADIENTS)[-1].tolist() == [0, 0, 0]
