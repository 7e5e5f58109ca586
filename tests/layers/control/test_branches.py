"""cond, case, switch_case and Switch: which block runs, and misuse."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import paddlelike as fluid
from paddlelike.errors import GraphError
from tests.helpers.small_networks import number, run, x

layers = fluid.layers


def chosen(value: float) -> Any:
    return layers.fill_constant([1], "float32", value)


@pytest.mark.parametrize(("step", "wanted"), [(0, 10.0), (4, 10.0), (5, 20.0), (9, 20.0), (10, 30.0)])
def test_the_first_case_that_holds_is_run(step: int, wanted: float) -> None:
    x = fluid.data("step", [1], "float32")
    out = layers.create_global_var([1], -1.0, "float32", persistable=True, name="out")
    with layers.Switch() as switch:
        with switch.case(x < 5.0):
            layers.assign(chosen(10.0), out)
        with switch.case(x < 10.0):
            layers.assign(chosen(20.0), out)
        with switch.default():
            layers.assign(chosen(30.0), out)
    assert run(out, step=np.array([step], "float32")) == [wanted]


def test_without_a_default_nothing_may_happen() -> None:
    x = fluid.data("step", [1], "float32")
    out = layers.create_global_var([1], -1.0, "float32", persistable=True, name="out")
    with layers.Switch() as switch, switch.case(x < 5.0):
        layers.assign(chosen(10.0), out)
    assert run(out, step=np.array([7], "float32")) == [-1.0]


def test_a_branch_without_results_writes_and_cond_returns_none() -> None:
    out = layers.create_global_var([1], 0.0, "float32", persistable=True, name="out")
    seven = layers.fill_constant([1], "float32", 7.0)

    def write() -> None:
        layers.assign(seven, out)

    assert layers.cond(number(1) < number(2), write) is None
    assert run([out])[0].tolist() == [7]


def test_a_loss_is_minimized_in_its_branch_or_not_at_all() -> None:
    hidden = layers.fc(x(2, 3), 3)
    losses = []

    def compute() -> Any:
        losses.append(layers.mean(hidden))
        return losses[-1]

    layers.cond(number(0) < number(1), compute, compute)
    with pytest.raises(GraphError, match="inside a block of control flow"):
        fluid.optimizer.SGD(0.1).minimize(losses[0])
    running = number(0) < number(1)
    with pytest.raises(GraphError, match="minimized inside of the loop"), layers.While(running).block():
        fluid.optimizer.SGD(0.1).minimize(layers.mean(hidden))


def test_misuse_is_refused() -> None:
    x = fluid.data("x", [1], "float32")
    with pytest.raises(GraphError, match="inside"), layers.Switch().case(x < 1.0):
        pass
    with layers.Switch() as switch:
        with pytest.raises(GraphError, match="after at least one case"), switch.default():
            pass
        with pytest.raises(TypeError, match="BOOL"), switch.case(x):
            pass
