"""Functions of each element against numpy."""

from __future__ import annotations

import numpy as np

import paddlelike as fluid
from tests.helpers.small_networks import random_input, run

layers = fluid.layers


def test_pow_takes_its_exponent_from_a_variable() -> None:
    x, a = random_input("x", 3, 5)
    cubed = layers.pow(x, layers.fill_constant([1], "float32", 3.0))
    np.testing.assert_allclose(run(cubed, x=a), a * a * a, rtol=1e-5)  # two roundings of float32 more
