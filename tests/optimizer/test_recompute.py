"""RecomputeOptimizer does what the optimizer inside does."""

from __future__ import annotations

import pytest

import paddlelike as fluid
from paddlelike import optimizer
from paddlelike.errors import GraphError
from tests.optimizer.harness.cases import dense
from tests.optimizer.harness.training import train


def test_recompute_does_what_the_optimizer_inside_does() -> None:
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
