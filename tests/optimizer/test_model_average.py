"""ModelAverage: what apply and restore write into the parameters."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import paddlelike as fluid
from tests.optimizer.harness.training import network, steps, value


def test_model_average_applies_the_mean_of_its_window(exe: fluid.Executor) -> None:
    network()
    average = fluid.optimizer.ModelAverage(0.5, min_average_window=2, max_average_window=3)
    # Of the real system: the first weight after each step, and while the average is applied.
    after = [-1.0941321849822998, -1.089508295059204, -1.0794373750686646, -1.0628225803375244]
    applied = [-1.0941321849822998, -1.091820240020752, -1.0876926183700562, -1.0711300373077393]
    for i in steps(exe):
        np.testing.assert_allclose(value()[0], after[i], rtol=1e-6)
        with average.apply(exe):
            np.testing.assert_allclose(value()[0], applied[i], rtol=1e-6)
        np.testing.assert_allclose(value()[0], after[i], rtol=1e-6)


@pytest.mark.parametrize("kind", ["model", "moving"])
def test_without_restore_the_average_stays(kind: str, exe: fluid.Executor) -> None:
    network()
    average: Any
    if kind == "model":
        average = fluid.optimizer.ModelAverage(0.5, min_average_window=2, max_average_window=3)
    else:
        average = fluid.optimizer.ExponentialMovingAverage(0.9)
        average.update()
    list(steps(exe))
    trained = value()
    with average.apply(exe, need_restore=False):
        applied = value()
    np.testing.assert_array_equal(value(), applied)
    assert not np.array_equal(applied, trained)
    average.restore(exe)
    np.testing.assert_array_equal(value(), trained)


def test_an_error_inside_restores_the_parameters(exe: fluid.Executor) -> None:
    network()
    average = fluid.optimizer.ModelAverage(0.5, min_average_window=2, max_average_window=3)
    list(steps(exe))
    trained = value()
    with pytest.raises(KeyError), average.apply(exe):
        raise KeyError("evaluation failed")
    np.testing.assert_array_equal(value(), trained)
