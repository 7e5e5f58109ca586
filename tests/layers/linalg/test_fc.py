"""Fully connected layers against numpy."""

from __future__ import annotations

import numpy as np

import paddlelike as fluid
from tests.helpers.small_networks import random_input, run

layers = fluid.layers


def test_fc_sums_the_products_of_several_inputs() -> None:
    (x, a), (y, b) = random_input("x", 3, 4), random_input("y", 3, 2, 5)
    out = layers.fc([x, y], 6, act="tanh", bias_attr=fluid.initializer.Constant(0.5))
    weights = [p.name for p in out.block.all_parameters()][:2]
    found, w, v = run([out, *weights], x=a, y=b)
    np.testing.assert_allclose(found, np.tanh(a @ w + b.reshape(3, 10) @ v + 0.5), atol=1e-6)
