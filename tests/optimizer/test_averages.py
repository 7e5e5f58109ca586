"""Means of the parameters over training."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import paddlelike as fluid
from paddlelike.framework import flags
from tests.optimizer.harness.training import W, network, steps, value


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
def test_without_restore_the_averaged_parameters_stay(kind: str, exe: fluid.Executor) -> None:
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


def test_an_error_inside_apply_restores_the_parameters(exe: fluid.Executor) -> None:
    network()
    average = fluid.optimizer.ModelAverage(0.5, min_average_window=2, max_average_window=3)
    list(steps(exe))
    trained = value()
    with pytest.raises(KeyError), average.apply(exe):
        raise KeyError("evaluation failed")
    np.testing.assert_array_equal(value(), trained)


def test_a_moving_average_is_corrected_for_its_start(
    exe: fluid.Executor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(flags, "_flags", {})
    fluid.set_flags({"FLAGS_fluid_quirks": False})  # Fluid stores the corrected average: test_quirks.py
    network()
    ema = fluid.optimizer.ExponentialMovingAverage(0.9)
    ema.update()
    expected, weights = 0.0, []
    for i in steps(exe):
        weights.append(value().astype(float))
        expected = 0.9 * expected + 0.1 * weights[-1]
        stored = value(f"{W}_ema_0")
        np.testing.assert_allclose(stored, expected, rtol=1e-6)
        with ema.apply(exe):
            np.testing.assert_allclose(value(), expected / (1 - 0.9 ** (i + 1)), rtol=1e-5)
        np.testing.assert_array_equal(value(), weights[-1].astype("float32"))
        np.testing.assert_array_equal(value(f"{W}_ema_0"), stored)


def test_the_decay_grows_with_the_steps(exe: fluid.Executor) -> None:
    network()
    count = fluid.layers.cast(fluid.layers.autoincreased_step_counter(), "float32")
    ema = fluid.optimizer.ExponentialMovingAverage(0.4, thres_steps=count)
    ema.update()
    rates = [float(value("scheduled_ema_decay_rate")[0]) for _ in steps(exe)]
    expected = [min(0.4, (t + 1) / (t + 10)) for t in range(1, 5)]
    np.testing.assert_allclose(rates, expected, rtol=1e-6)


def test_integer_steps_warn_that_they_have_no_effect() -> None:
    network()
    count = fluid.layers.autoincreased_step_counter()
    with pytest.warns(UserWarning, match="is an integer, so the decay stays at 0.4"):
        fluid.optimizer.ExponentialMovingAverage(0.4, thres_steps=count)
