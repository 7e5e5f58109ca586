"""Values that later operators need for their shapes alone take no memory, and results stay what they are."""

from __future__ import annotations

from typing import Any

import numpy as np

import paddlelike as fluid
from tests.helpers.fresh import fresh_programs

ROWS, WIDTH, LAYERS = 512, 256, 6


def build() -> Any:
    hidden = fluid.data("x", [None, WIDTH])
    for _ in range(LAYERS):
        hidden = fluid.layers.fc(hidden, WIDTH, act="relu")
    loss = fluid.layers.mean(hidden)
    fluid.optimizer.SGD(0.1).minimize(loss)
    return loss


def test_products_of_layers_are_released_before_the_backward_pass() -> None:
    with fresh_programs() as (main, startup):
        loss = build()
        exe = fluid.Executor()
        exe.run(startup)
        feed = {"x": np.ones((ROWS, WIDTH), "float32")}
        explained = exe.explain(main, feed, [loss], repeat=1)
    activation = 4 * ROWS * WIDTH
    # The feed, what relu gives in each layer, the gradient of the last one, and small values.
    assert explained.peak_bytes <= (LAYERS + 3) * activation
    assert explained.peak_bytes >= (LAYERS + 1) * activation


def test_gradients_of_sums_that_are_broadcast_have_their_shapes() -> None:
    with fresh_programs() as (main, _):
        x, y = fluid.data("x", [None, 64, 128]), fluid.data("y", [64])
        x.stop_gradient = y.stop_gradient = False
        total = fluid.layers.elementwise_add(fluid.layers.scale(x, 2.0), y, axis=1)
        loss = fluid.layers.mean(fluid.layers.square(total))
        grads = fluid.gradients(loss, [x, y])
        values = {"x": np.full((4, 64, 128), 0.5, "float32"), "y": np.arange(64, dtype="float32")}
        dx, dy = fluid.Executor().run(main, feed=values, fetch_list=grads)
    each = 2 * (1.0 + np.arange(64)) / (4 * 64 * 128)
    np.testing.assert_allclose(dx, np.broadcast_to(2 * each[:, None], (4, 64, 128)), rtol=1e-5)  # float32
    np.testing.assert_allclose(dy, each * 4 * 128, rtol=1e-5)
