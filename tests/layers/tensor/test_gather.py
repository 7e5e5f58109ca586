"""Gathering against numpy."""

from __future__ import annotations

import numpy as np

import paddlelike as fluid
from tests.helpers.small_networks import run

layers = fluid.layers


def test_nonzero_as_a_tuple_is_a_column_per_dim() -> None:
    a = np.array([[0, 1, 0], [2, 0, 3]], "float32")
    found = run(layers.nonzero(fluid.data("x", [2, 3]), as_tuple=True), x=a)
    np.testing.assert_array_equal(np.concatenate(found, 1), np.argwhere(a))
