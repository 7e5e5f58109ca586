"""Optimizers around another."""

from __future__ import annotations

import numpy as np
import pytest

import paddlelike as fluid
from paddlelike import optimizer
from paddlelike.errors import GraphError
from tests.optimizer.harness.cases import dense
from tests.optimizer.harness.training import follow, train

START = [0.5, -1.0, 2.0]
GRADIENTS = [[0.3, -0.2, 0.0], [-0.1, 0.4, 1.0], [0.2, 0.2, -0.5]]


def test_lookahead_updates_slow_weights_every_k_steps() -> None:
    fast = slow = np.array(START)
    tool = optimizer.LookaheadOptimizer(optimizer.SGD(0.1), alpha=0.25, k=2)
    for t, (gradient, found) in enumerate(zip(GRADIENTS, follow(tool, START, GRADIENTS), strict=True), 1):
        fast = fast - 0.1 * np.array(gradient)
        if t % 2 == 0:
            fast = slow = slow + 0.25 * (fast - slow)
        np.testing.assert_allclose(found, fast, rtol=1e-5)  # float32


def test_lookahead_checks_its_arguments() -> None:
    inner = optimizer.SGD(0.1)
    for options in ({"alpha": 1.5}, {"k": 0}, {"k": 1.5}):
        with pytest.raises(GraphError, match="LookaheadOptimizer"):
            optimizer.LookaheadOptimizer(inner, **options)  # type: ignore[arg-type]
    with pytest.raises(GraphError, match="inner_optimizer"):
        optimizer.LookaheadOptimizer(None)  # type: ignore[arg-type]


def test_recompute_gives_the_updates_of_its_inner_optimizer() -> None:
    fluid.default_startup_program().random_seed = 5
    loss = dense(fluid)
    tool = optimizer.RecomputeOptimizer(optimizer.Momentum(0.1, 0.9))
    with pytest.raises(GraphError, match="no checkpoints"):
        tool.minimize(loss)
    tool._set_checkpoints([fluid.default_main_program().global_block().var("fc_0.tmp_2")])
    updates, pairs = tool.minimize(loss)
    assert [op.type for op in updates] == ["momentum"] * 3
    assert len(pairs) == 3
    losses = train(loss)
    assert losses[-1] < losses[0]
