"""Gradients at the kinks of max pools, ReLUs and dropout, where equal values leave a choice."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytest.importorskip("jax", reason="the extra `jax` is not installed", exc_type=ImportError)

import paddlelike as fluid
from tests.compiled.harness.nets import build, train

pytestmark = pytest.mark.slow

L = fluid.layers


def squeeze_and_expand() -> Any:
    """Return the loss of fire modules between max pools, with windows that reach beyond the data."""
    x = fluid.data("x", [None, 3, 23, 23], "float64")
    y = fluid.data("y", [None, 1], "int64")
    x = L.pool2d(x, 3, "max", 2, 1, ceil_mode=True)
    x = L.conv2d(x, 8, 3, act="relu")
    for ceil_mode in (False, True):
        squeezed = L.conv2d(x, 4, 1, act="relu")
        x = L.concat([L.conv2d(squeezed, 6, 1, act="relu"), L.conv2d(squeezed, 6, 3, 1, 1, act="relu")], 1)
        x = L.pool2d(x, 3, "max", 2, ceil_mode=ceil_mode)
    x = L.conv2d(L.dropout(x, 0.5), 5, 1, act="relu")
    x = L.flatten(L.pool2d(x, pool_type="avg", global_pooling=True))
    return L.mean(L.softmax_with_cross_entropy(x, y))


def test_pools_over_equal_values_train_as_with_numpy() -> None:
    """In float64, where no rounding moves a value across a kink."""
    rng = np.random.default_rng(6)
    # Few different numbers: nearly every window has several maxima.
    feeds = [
        {"x": rng.integers(0, 3, (4, 3, 23, 23)) - 1.0, "y": rng.integers(0, 5, (4, 1))} for _ in range(4)
    ]
    found = []
    for backend in ("numpy", "jax"):
        net = build(squeeze_and_expand, lambda: fluid.optimizer.Momentum(0.1, 0.9))
        losses = train(net, feeds, backend)
        kept = [v.name for v in net.main.list_vars() if v.persistable and v.name.find("velocity") > 0]
        assert len(kept) == 16
        values = [np.array(net.scope.find_var(name).get_tensor()) for name in kept]
        found.append([np.ravel(losses), *values])
    for one, other in zip(*found, strict=True):
        np.testing.assert_allclose(one, other, rtol=0, atol=1e-12 * np.abs(one).max())
