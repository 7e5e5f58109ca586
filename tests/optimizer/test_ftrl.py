"""FTRL: zeros, and the option that Fluid ignores."""

from __future__ import annotations

import pytest

from paddlelike import optimizer
from tests.optimizer.training import follow

START = [0.5, -1.0, 2.0]
GRADIENTS = [[0.3, -0.2, 0.0], [-0.1, 0.4, 1.0], [0.2, 0.2, -0.5]]


def test_a_great_l1_makes_weights_zero() -> None:
    with pytest.warns(UserWarning, match="l2 takes the value of l1"):
        tool = optimizer.Ftrl(0.1, l1=100.0)
    assert follow(tool, START, GRADIENTS)[-1].tolist() == [0, 0, 0]


def test_an_l2_that_fluid_ignores_is_a_warning() -> None:
    with pytest.warns(UserWarning, match=r"l2 takes the value of l1: 0.1 instead of 0.2"):
        optimizer.Ftrl(0.1, l1=0.1, l2=0.2)
