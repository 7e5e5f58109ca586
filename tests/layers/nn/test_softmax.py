"""Softmax along an axis against numpy."""

from __future__ import annotations

import numpy as np

import paddlelike as fluid
from tests.helpers.small_networks import random_input, run, softmax

layers = fluid.layers


def test_log_softmax_subtracts_the_logsumexp() -> None:
    x, a = random_input("x", 3, 5)
    soft, total = run([layers.log_softmax(x), layers.logsumexp(x, 1, keepdim=True)], x=a)
    np.testing.assert_allclose(soft, np.log(softmax(a)), atol=1e-6)
    np.testing.assert_allclose(a - soft, np.broadcast_to(total, a.shape), atol=1e-5)
