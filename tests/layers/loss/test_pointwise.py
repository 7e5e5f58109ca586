"""Losses against labels: formulas in numpy."""

from __future__ import annotations

import numpy as np

import paddlelike as fluid
from tests.helpers.small_networks import random_input, run

layers = fluid.layers


def test_dice_loss_measures_the_overlap() -> None:
    x, a = random_input("x", 4, 3, low=0.0)
    label = fluid.data("label", [None, 1], "int64")
    ids = np.array([[0], [2], [1], [2]])
    truth = np.eye(3)[ids[:, 0]]
    wanted = np.mean(1 - 2 * (a * truth).sum(1) / (a.sum(1) + 1 + 1e-5))
    np.testing.assert_allclose(run(layers.dice_loss(x, label), x=a, label=ids), [wanted], rtol=1e-6)
