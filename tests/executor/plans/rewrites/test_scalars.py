"""Values whose shape alone is read, and LoDs that are passed on."""

from __future__ import annotations

from typing import Any

import numpy as np

import paddlelike as fluid
from paddlelike.executor.plans.rewrites.scalars import make_lod_sharer
from paddlelike.framework.opdef import registry
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


LOD = [[0, 2, 3]]


def sharer(op: Any) -> Any:
    """The function for an operator whose variables have the positions 0, 1, ... in order of first use."""
    positions: dict[str, int] = {}
    names = [*op.input_arg_names, *op.output_arg_names]
    for name in names:
        positions.setdefault(name, len(positions))
    return make_lod_sharer(registry.find(op.type), op, positions.__getitem__)


def test_an_elementwise_operator_passes_the_lod_on() -> None:
    share = sharer(fluid.layers.relu(fluid.data("x", [None, 4], lod_level=1)).op)
    lods = {0: LOD}
    share(lods, np.ones((3, 4)))
    assert lods == {0: LOD, 1: LOD}


def test_a_result_with_a_different_number_of_rows_gets_no_lod() -> None:
    share = sharer(fluid.layers.relu(fluid.data("x", [None, 4], lod_level=1)).op)
    lods = {0: LOD, 1: [[0, 9]]}
    share(lods, np.ones((6, 2)))
    assert lods == {0: LOD}


def test_outputs_get_the_lod_before_the_kernel_runs() -> None:
    share = sharer(fluid.layers.relu(fluid.data("x", [None, 4], lod_level=1)).op)
    lods = {0: LOD}
    share(lods, None)
    assert lods[1] == LOD


def test_an_output_loses_its_old_lod_if_the_input_has_none() -> None:
    share = sharer(fluid.layers.relu(fluid.data("x", [None, 4], lod_level=1)).op)
    lods: dict[int, Any] = {1: LOD}
    share(lods, np.ones((3, 4)))
    assert lods == {}


def test_operators_that_declare_no_lod_need_no_function() -> None:
    assert sharer(fluid.layers.mean(fluid.data("x", [None, 4])).op) is None
