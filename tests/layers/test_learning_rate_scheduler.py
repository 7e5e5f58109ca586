"""Learning rate schedules against their formulas, step by step."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import paddlelike as fluid
from paddlelike.errors import GraphError

layers = fluid.layers
STEPS = 12


def polynomial(t: int, *, cycle: bool) -> float:
    length = 5 * max(math.ceil(t / 5), 1) if cycle else 5
    return (0.1 - 0.01) * (1 - min(t, length) / length) ** 2 + 0.01


SCHEDULES: dict[str, tuple[Callable[[], Any], Callable[[int], float]]] = {
    "noam": (
        lambda: layers.noam_decay(64, 4),
        lambda t: 64**-0.5 * min((t + 1) ** -0.5, (t + 1) * 4**-1.5),
    ),
    "exponential": (lambda: layers.exponential_decay(0.1, 5, 0.5), lambda t: 0.1 * 0.5 ** (t / 5)),
    "exponential staircase": (
        lambda: layers.exponential_decay(0.1, 5, 0.5, staircase=True),
        lambda t: 0.1 * 0.5 ** (t // 5),
    ),
    "natural exponential": (
        lambda: layers.natural_exp_decay(0.1, 5, 0.5),
        lambda t: 0.1 * math.exp(-0.5 * t / 5),
    ),
    "inverse time": (lambda: layers.inverse_time_decay(0.1, 5, 0.5), lambda t: 0.1 / (1 + 0.5 * t / 5)),
    "polynomial": (
        lambda: layers.polynomial_decay(0.1, 5, 0.01, 2.0),
        lambda t: polynomial(t, cycle=False),
    ),
    "polynomial cycle": (
        lambda: layers.polynomial_decay(0.1, 5, 0.01, 2.0, cycle=True),
        lambda t: polynomial(t, cycle=True),
    ),
    "piecewise": (
        lambda: layers.piecewise_decay([3, 6], [0.1, 0.05, 0.01]),
        lambda t: 0.1 if t < 3 else 0.05 if t < 6 else 0.01,
    ),
    "cosine": (
        lambda: layers.cosine_decay(0.1, 3, 4),
        lambda t: 0.1 / 2 * (1 + math.cos(math.pi * (t // 3) / 4)),
    ),
    "warm-up": (
        lambda: layers.linear_lr_warmup(0.1, 4, 0.01, 0.09),
        lambda t: 0.01 + (0.09 - 0.01) * t / 4 if t < 4 else 0.1,
    ),
}


@pytest.mark.parametrize("name", SCHEDULES)
def test_a_schedule_follows_its_formula(name: str) -> None:
    build, formula = SCHEDULES[name]
    rate = build()
    exe = fluid.Executor()
    exe.run(fluid.default_startup_program())
    found = [float(exe.run(fetch_list=[rate])[0][0]) for _ in range(STEPS)]
    np.testing.assert_allclose(found, [formula(t) for t in range(STEPS)], rtol=1e-5)  # float32


def test_piecewise_decay_requires_matching_boundaries_and_values() -> None:
    with pytest.raises(GraphError, match="2 boundaries go with 3 values, got 2"):
        layers.piecewise_decay([3, 6], [0.1, 0.05])
    with pytest.raises(TypeError, match="learning_rate must be a float or a variable, got 'a'"):
        layers.cosine_decay("a", 3, 4)
