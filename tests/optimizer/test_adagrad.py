"""Adagrad, DecayedAdagrad and Adadelta against their formulas."""

from __future__ import annotations

import numpy as np

from paddlelike import optimizer
from tests.optimizer.harness.training import follow

START = [0.5, -1.0, 2.0]
GRADIENTS = [[0.3, -0.2, 0.0], [-0.1, 0.4, 1.0], [0.2, 0.2, -0.5]]


def test_adagrad_divides_by_the_root_of_the_sum_of_squares() -> None:
    p, m = np.array(START), np.full(3, 0.1)
    tool = optimizer.Adagrad(0.1, epsilon=1e-6, initial_accumulator_value=0.1)
    for gradient, found in zip(GRADIENTS, follow(tool, START, GRADIENTS), strict=True):
        g = np.array(gradient)
        m = m + g * g
        p = p - 0.1 * g / (np.sqrt(m) + 1e-6)
        np.testing.assert_allclose(found, p, rtol=1e-5)  # float32


def test_decayed_adagrad_forgets_old_squares() -> None:
    p, m = np.array(START), np.zeros(3)
    tool = optimizer.DecayedAdagrad(0.1, decay=0.9, epsilon=1e-6)
    for gradient, found in zip(GRADIENTS, follow(tool, START, GRADIENTS), strict=True):
        g = np.array(gradient)
        m = 0.9 * m + 0.1 * g * g
        p = p - 0.1 * g / (np.sqrt(m) + 1e-6)
        np.testing.assert_allclose(found, p, rtol=1e-5)  # float32


def test_adadelta_scales_by_past_steps_whatever_the_rate() -> None:
    p, squares, steps = np.array(START), np.zeros(3), np.zeros(3)
    tool = optimizer.Adadelta(123.0, epsilon=1e-3, rho=0.9)
    for gradient, found in zip(GRADIENTS, follow(tool, START, GRADIENTS), strict=True):
        g = np.array(gradient)
        squares = 0.9 * squares + 0.1 * g * g
        ratio = (steps + 1e-3) / (squares + 1e-3)
        steps = 0.9 * steps + 0.1 * ratio * g * g
        p = p - np.sqrt((steps + 1e-3) / (squares + 1e-3)) * g  # by the new average, as in Paddle
        np.testing.assert_allclose(found, p, rtol=1e-5)  # float32
