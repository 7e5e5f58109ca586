"""Functions of each element against numpy."""

from __future__ import annotations

import numpy as np
import pytest

import paddlelike as fluid
from tests.helpers.small_networks import random_input, run

layers = fluid.layers


def test_addcmul_adds_a_scaled_product() -> None:
    (x, a), (y, b), (z, c) = random_input("x", 2, 3), random_input("y", 2, 3), random_input("z", 2, 3)
    np.testing.assert_allclose(run(layers.addcmul(x, y, z, 2.0), x=a, y=b, z=c), a + 2 * b * c, rtol=1e-5)


@pytest.mark.parametrize(("low", "high"), [(-0.25, None), (-0.25, 0.25)])
def test_clamp_without_an_upper_bound_limits_only_below(low: float, high: float | None) -> None:
    x, a = random_input("x", 4, 5)
    np.testing.assert_array_equal(run(layers.clamp(x, low, high), x=a), np.clip(a, low, high))


def test_pow_takes_its_exponent_from_a_variable() -> None:
    x, a = random_input("x", 3, 5)
    cubed = layers.pow(x, layers.fill_constant([1], "float32", 3.0))
    np.testing.assert_allclose(run(cubed, x=a), a * a * a, rtol=1e-5)  # two roundings of float32 more
