"""Initializers: moments and bounds of what they fill in, fans, and refusals."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import paddlelike as fluid
from paddlelike import initializer
from paddlelike.errors import GraphError
from paddlelike.framework import flags


def fill(one: Any, *shape: int, dtype: str = "float32", seed: int = 7) -> Any:
    """The first value of a parameter."""
    fluid.default_startup_program().random_seed = seed
    fluid.layers.create_parameter([*shape], dtype, name="p", default_initializer=one)
    fluid.Executor().run(fluid.default_startup_program())
    return np.array(fluid.global_scope().find_var("p").get_tensor())


def test_a_constant_fills_every_element() -> None:
    np.testing.assert_array_equal(fill(initializer.Constant(1.5), 2, 3), np.full((2, 3), 1.5, "float32"))


def test_uniform_values_are_within_bounds_and_spread() -> None:
    values = fill(initializer.Uniform(-2.0, 1.0), 20000)
    assert values.min() >= -2.0
    assert values.max() < 1.0
    np.testing.assert_allclose([values.mean(), values.var()], [-0.5, 9 / 12], atol=0.03)  # 5 standard errors


def test_normal_values_have_the_given_mean_and_deviation() -> None:
    values = fill(initializer.Normal(1.0, 2.0), 20000)
    np.testing.assert_allclose([values.mean(), values.std()], [1.0, 2.0], atol=0.08)  # 5 standard errors


def test_truncated_normal_values_stay_within_two_deviations() -> None:
    values = fill(initializer.TruncatedNormal(1.0, 2.0), 20000)
    assert np.abs(values - 1.0).max() <= 4.0
    np.testing.assert_allclose(values.mean(), 1.0, atol=0.08)  # 5 standard errors


@pytest.mark.parametrize(
    ("one", "variance"),
    [
        (initializer.Xavier(), 2 / (80 + 120)),
        (initializer.Xavier(uniform=False), 2 / (80 + 120)),
        (initializer.Xavier(fan_in=10, fan_out=30), 2 / (10 + 30)),
        (initializer.MSRA(), 2 / 80),
        (initializer.MSRA(uniform=False, fan_in=50), 2 / 50),
    ],
    ids=["xavier", "xavier-normal", "xavier-fans", "msra", "msra-normal"],
)
def test_the_variance_follows_from_the_fans(one: Any, variance: float) -> None:
    values = fill(one, 80, 120)
    np.testing.assert_allclose(values.var(), variance, rtol=0.08)  # 5 standard errors of 9,600 values


def test_the_fans_of_a_convolution_include_its_window_size() -> None:
    values = fill(initializer.Xavier(), 16, 8, 5, 5)
    np.testing.assert_allclose(values.var(), 2 / ((8 + 16) * 25), rtol=0.1)  # of 3,200 values


def test_the_same_seed_gives_the_same_bits() -> None:
    one = fill(initializer.Normal(), 50)
    with fluid.program_guard(fluid.Program(), fluid.Program()), fluid.scope_guard(fluid.core.Scope()):
        np.testing.assert_array_equal(fill(initializer.Normal(), 50), one)
    with fluid.program_guard(fluid.Program(), fluid.Program()), fluid.scope_guard(fluid.core.Scope()):
        assert not np.array_equal(fill(initializer.Normal(), 50, seed=8), one)


def test_bilinear_initializers_give_interpolation_weights(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(flags, "_flags", {"FLAGS_fluid_quirks": False})
    weight = fill(initializer.Bilinear(), 2, 1, 4, 4)
    profile = np.array([0.25, 0.75, 0.75, 0.25])
    np.testing.assert_allclose(weight[1, 0], np.outer(profile, profile))
    with pytest.raises(GraphError, match=r"Bilinear: 'q' has shape \[3, 3\], expected \[C, 1, K, K\]"):
        fluid.layers.create_parameter([3, 3], "float32", name="q", default_initializer=initializer.Bilinear())


def test_numpy_array_initializer_sets_the_values_of_the_array() -> None:
    array = np.arange(6, dtype="float32").reshape(2, 3)
    np.testing.assert_array_equal(fill(initializer.NumpyArrayInitializer(array), 2, 3), array)
    with pytest.raises(GraphError, match="value must be a numpy array, got 3"):
        initializer.NumpyArrayInitializer(3)


def test_bounds_in_the_wrong_order_are_refused() -> None:
    with pytest.raises(GraphError, match=r"low 2\.0 is above high 1\.0"):
        initializer.Uniform(2.0, 1.0)
