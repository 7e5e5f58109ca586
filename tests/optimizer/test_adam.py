"""Adam, Adamax and Lamb against their formulas."""

from __future__ import annotations

import numpy as np

import paddlelike as fluid
from paddlelike import optimizer
from tests.optimizer.harness.training import follow

START = [0.5, -1.0, 2.0]
GRADIENTS = [[0.3, -0.2, 0.0], [-0.1, 0.4, 1.0], [0.2, 0.2, -0.5]]


def test_adam_corrects_its_averages_for_their_start() -> None:
    p, m, v = np.array(START), np.zeros(3), np.zeros(3)
    tool = optimizer.Adam(0.1, beta1=0.8, beta2=0.9, epsilon=1e-8)
    for t, (gradient, found) in enumerate(zip(GRADIENTS, follow(tool, START, GRADIENTS), strict=True), 1):
        g = np.array(gradient)
        m, v = 0.8 * m + 0.2 * g, 0.9 * v + 0.1 * g * g
        rate = 0.1 * np.sqrt(1 - 0.9**t) / (1 - 0.8**t)
        p = p - rate * m / (np.sqrt(v) + 1e-8)
        np.testing.assert_allclose(found, p, rtol=1e-5)  # float32


def test_adamax_divides_by_the_greatest_gradient() -> None:
    p, m, u = np.array(START), np.zeros(3), np.zeros(3)
    tool = optimizer.Adamax(0.1, beta1=0.8, beta2=0.9, epsilon=1e-8)
    for t, (gradient, found) in enumerate(zip(GRADIENTS, follow(tool, START, GRADIENTS), strict=True), 1):
        g = np.array(gradient)
        m, u = 0.8 * m + 0.2 * g, np.maximum(np.abs(g), 0.9 * u + 1e-8)
        p = p - 0.1 / (1 - 0.8**t) * m / u
        np.testing.assert_allclose(found, p, rtol=1e-5)  # float32


def test_lamb_excludes_parameters_from_decay() -> None:
    free = follow(optimizer.Lamb(0.1, lamb_weight_decay=0.0), START, GRADIENTS[:1])[0]
    fluid.default_main_program().global_block()
    with fluid.program_guard(fluid.Program(), fluid.Program()), fluid.scope_guard(fluid.core.Scope()):
        tool = optimizer.Lamb(0.1, lamb_weight_decay=0.5, exclude_from_weight_decay_fn=lambda p: True)
        np.testing.assert_array_equal(follow(tool, START, GRADIENTS[:1])[0], free)
    with fluid.program_guard(fluid.Program(), fluid.Program()), fluid.scope_guard(fluid.core.Scope()):
        decayed = follow(optimizer.Lamb(0.1, lamb_weight_decay=0.5), START, GRADIENTS[:1])[0]
    assert not np.array_equal(decayed, free)
