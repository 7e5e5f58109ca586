"""Random values inside compiled programs are those that numpy's kernels draw."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import pytest

pytest.importorskip("jax", reason="the extra `jax` is not installed", exc_type=ImportError)

import paddlelike as fluid
from tests.compiled.harness.nets import build, train

pytestmark = pytest.mark.slow

L = fluid.layers


def sgd() -> Any:
    return fluid.optimizer.SGD(0.1)


def noise() -> Any:
    """Return the loss of inputs with noise, of sampled classes and a dropout between two layers."""
    x, label = fluid.data("x", [4, 6]), fluid.data("y", [4, 1], "int64")
    moved = x + L.gaussian_random([4, 6], std=0.1) + L.uniform_random([4, 6], min=-0.1, max=0.1)
    moved = moved + L.gaussian_random_batch_size_like(x, [-1, 6], std=0.1)
    cost = L.nce(L.fc(moved, 5), label, 20, num_neg_samples=3, sampler="log_uniform")
    start = L.fill_constant([2, 4, 3], "float32", 0.1)
    out, _, _ = L.lstm(L.reshape(moved, [1, 4, 6]), start, start, 1, 3, 2, dropout_prob=0.4)
    return L.mean(cost) + L.mean(L.square(out))


def test_compiled_random_draws_match_numpy() -> None:
    rng = np.random.default_rng(5)
    feeds = [
        {"x": rng.standard_normal((4, 6)).astype("float32"), "y": rng.integers(0, 20, (4, 1))}
        for _ in range(4)
    ]
    net, other = build(noise, sgd), build(noise, sgd)
    # Another order of float32 sums.
    np.testing.assert_allclose(train(net, feeds), train(other, feeds, "numpy"), rtol=1e-5)
    engine = next(v for key, v in net.main.plans.items() if key[0] == "engine")
    assert engine.refused == {}
    assert len(engine.pieces) == 1
    assert net.scope.generator.state == other.scope.generator.state


def test_the_first_compiled_run_does_not_change_the_random_generator_of_scripts() -> None:
    script = """
import numpy as np, paddlelike as fluid
np.random.seed(3)
out = fluid.layers.scale(fluid.data("x", [None, 2]), 2.0)
fluid.set_flags({"FLAGS_backend": "jax"})
fluid.Executor().run(feed={"x": np.ones((1, 2), "float32")}, fetch_list=[out])
print(np.random.randint(1 << 30))
"""
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert int(run.stdout) == np.random.RandomState(3).randint(1 << 30)
