"""Losses of pairs against their formulas in numpy."""

from __future__ import annotations

import numpy as np

import paddlelike as fluid
from tests.helpers.small_networks import RNG, random_input, run, softmax

layers = fluid.layers


def test_mse_loss_is_the_mean_of_squares() -> None:
    (x, a), (y, b) = random_input("x", 3, 5), random_input("y", 3, 5)
    np.testing.assert_allclose(run(layers.mse_loss(x, y), x=a, y=b), [np.mean((a - b) ** 2)], rtol=1e-6)


def test_npair_loss_follows_its_formula() -> None:
    a, p = (RNG.normal(size=(4, 3)).astype("float32") for _ in range(2))
    ids = np.array([1, 2, 1, 3], "float32")
    anchor, positive = (fluid.data(name, [4, 3]) for name in "ap")
    loss = layers.npair_loss(anchor, positive, fluid.data("l", [4]), l2_reg=0.01)
    same = (ids[:, None] == ids).astype("float64")
    same /= same.sum(1, keepdims=True)
    cost = -(same * np.log(softmax(a @ p.T))).sum(1, keepdims=True)
    penalty = 0.25 * 0.01 * ((a * a).sum(1).mean() + (p * p).sum(1).mean())
    # The sum over rows, not columns, is Fluid's.
    wanted = penalty + (same * cost).sum(0).mean()
    # As in Fluid the labels are reshaped in place, and must be fed as columns.
    np.testing.assert_allclose(run(loss, a=a, p=p, l=ids[:, None]), [wanted], rtol=1e-5)
