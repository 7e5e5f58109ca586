"""Executors: what they run on, and what a run refuses."""

from __future__ import annotations

import sys
from typing import Any

import pytest

import paddlelike as fluid
from paddlelike.errors import (
    UnsupportedError,
)
from tests.benchmarks.bench_memory import measure


def test_an_executor_refuses_a_gpu_that_is_not_there() -> None:
    with pytest.raises(
        UnsupportedError, match=r"CUDAPlace\(99\): JAX(, .* is not installed| sees (no|\d+) GPUs? here)"
    ):
        fluid.Executor(fluid.CUDAPlace(99))


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc/self/status")
def test_the_peak_memory_of_a_step_is_the_memory_of_its_live_variables() -> None:
    found = measure("gelu")  # 60 MB, of which the figure is 0.9; its formulas have several passes
    assert found["live"] > 40e6
    assert found["grown"] <= 1.1 * (found["persistable"] + found["live"])


@pytest.mark.parametrize("make", [fluid.BuildStrategy, fluid.ExecutionStrategy])
def test_every_option_can_be_set_and_read(make: Any) -> None:
    strategy = make()
    for name in vars(strategy):
        setattr(strategy, name, "a value")
    assert set(vars(strategy).values()) == {"a value"}
    assert "a value" not in vars(make()).values()


@pytest.mark.parametrize("make", [fluid.BuildStrategy, fluid.ExecutionStrategy])
def test_an_option_that_fluid_does_not_have_is_refused(make: Any) -> None:
    with pytest.raises(AttributeError, match=r"has no option 'num_thread'; it has .*, "):
        make().num_thread = 4


def test_gradients_are_averaged_unless_the_strategy_requests_a_sum() -> None:
    scaling = fluid.BuildStrategy.GradientScaleStrategy
    assert fluid.BuildStrategy().gradient_scale_strategy == scaling.CoeffNumDevice
    assert (scaling.CoeffNumDevice, scaling.One, scaling.Customized) == (0, 1, 2)
