"""Persistables with the same value for good are one input of XLA, and still variables of their own."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("jax", reason="the extra `jax` is not installed", exc_type=ImportError)

import paddlelike as fluid
from tests.compiled.harness.nets import Net, batches, build, regression, train

pytestmark = pytest.mark.slow

# One order of float32 sums or another.
CLOSE = {"rtol": 1e-4, "atol": 1e-6}
POWERS = tuple(f"fc_{i}.{kind}_0_beta1_pow_acc_0" for i in (0, 1) for kind in "wb")
OPTIMIZERS = {
    "adam": lambda: fluid.optimizer.Adam(0.01, beta1=0.8),
    "adamax": lambda: fluid.optimizer.Adamax(0.01, beta1=0.8),
}


def power(net: Net, name: str) -> Any:
    return net.scope.find_var(name).get_tensor()


def count_arrays(net: Net) -> int:
    return len({id(power(net, name).find_on_device()) for name in POWERS})


@pytest.mark.parametrize("optimizer", OPTIMIZERS.values(), ids=OPTIMIZERS)
def test_the_powers_of_beta_are_one_array(optimizer: Callable[[], Any]) -> None:
    net = build(regression, optimizer)
    train(net, batches(3))
    assert count_arrays(net) == 1
    for name in POWERS:
        np.testing.assert_allclose(np.array(power(net, name)), 0.8**4, rtol=1e-6)


@pytest.mark.parametrize("optimizer", OPTIMIZERS.values(), ids=OPTIMIZERS)
def test_setting_a_power_of_beta_separates_it_from_the_shared_array(optimizer: Callable[[], Any]) -> None:
    losses = {}
    for by in ("jax", "numpy"):
        net = build(regression, optimizer)
        losses[by] = train(net, batches(2), by)
        power(net, POWERS[1]).set(np.full(1, 0.3, "float32"))
        losses[by] += train(net, batches(3), by)
        assert by == "numpy" or count_arrays(net) == 2
        found = [float(np.array(power(net, name))[0]) for name in POWERS]
        np.testing.assert_allclose(found, [0.8**6, 0.3 * 0.8**3, 0.8**6, 0.8**6], rtol=1e-6)
    np.testing.assert_allclose(np.ravel(losses["jax"]), np.ravel(losses["numpy"]), **CLOSE)


def test_a_load_shares_the_powers_of_beta_again_with_the_same_bits(tmp_path: Path) -> None:
    net = build(regression, OPTIMIZERS["adam"])
    train(net, batches(2))
    with fluid.scope_guard(net.scope):
        fluid.io.save_persistables(net.exe, str(tmp_path), net.main)
    state = net.scope.generator.state
    first = train(net, batches(3))
    power(net, POWERS[1]).set(np.full(1, 0.3, "float32"))
    train(net, batches(1))
    with fluid.scope_guard(net.scope):
        fluid.io.load_persistables(net.exe, str(tmp_path), net.main)
    net.scope.generator.state = state
    assert np.ravel(train(net, batches(3))).tobytes() == np.ravel(first).tobytes()
    assert count_arrays(net) == 1


def test_parameters_with_equal_initial_values_stay_separate() -> None:
    def make() -> Any:
        x = fluid.data("x", [None, 6])
        parts = [fluid.layers.fc(x, 8, act=act) for act in ("tanh", "sigmoid")]
        return fluid.layers.mean(fluid.layers.square(fluid.layers.sums(parts) - 0.3))

    feeds = [{"x": feed["x"]} for feed in batches(3)]
    net, other = (build(make, OPTIMIZERS["adam"]) for _ in range(2))
    np.testing.assert_allclose(np.ravel(train(net, feeds)), np.ravel(train(other, feeds, "numpy")), **CLOSE)
    piece = next(v for key, v in net.main.plans.items() if key[0] == "engine").pieces[0]
    assert piece.compilations == 1
    biases = [np.array(net.scope.find_var(f"fc_{i}.b_0").get_tensor()) for i in (0, 1)]
    assert np.abs(biases[0] - biases[1]).max() > 1e-4
