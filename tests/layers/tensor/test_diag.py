"""Diagonal matrices against numpy."""

from __future__ import annotations

import numpy as np

import paddlelike as fluid
from tests.helpers.small_networks import run

layers = fluid.layers


def test_eye_is_repeated_over_a_batch() -> None:
    found = run(layers.eye(2, 3, batch_shape=[4, 5]))
    np.testing.assert_array_equal(found, np.broadcast_to(np.eye(2, 3), (4, 5, 2, 3)))
