"""Learning rates and accumulators: whose they are, and what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import paddlelike as fluid
from paddlelike import optimizer
from paddlelike.errors import GraphError
from tests.optimizer.harness.cases import dense
from tests.optimizer.harness.training import PLAIN, make


def test_one_optimizer_may_serve_two_programs() -> None:
    tool = optimizer.SGD(0.1)
    for _ in range(2):
        main, startup = fluid.Program(), fluid.Program()
        with fluid.program_guard(main, startup):
            tool.minimize(dense(fluid))
        rates = [n for n in main.global_block().vars if n.startswith("learning_rate")]
        assert len(rates) == 1
        assert startup.global_block().has_var(rates[0])


def test_a_schedule_of_another_program_is_refused() -> None:
    rate = fluid.layers.exponential_decay(0.1, 10, 0.5)
    tool = optimizer.SGD(rate)
    with fluid.program_guard(fluid.Program(), fluid.Program()):
        loss = dense(fluid)
        with pytest.raises(GraphError, match="belongs to another program"):
            tool.minimize(loss)


@pytest.mark.parametrize("rate", [1, "0.1", np.float32(0.1), None])
def test_a_learning_rate_of_another_kind_is_refused(rate: Any) -> None:
    with pytest.raises(TypeError, match="learning_rate must be a float or a variable"):
        optimizer.SGD(rate)


@pytest.mark.parametrize("name", sorted(set(PLAIN) - {"SGD", "Dpsgd"}))
def test_a_second_minimize_is_refused_before_anything_changes(name: str) -> None:
    tool, loss = make(name), dense(fluid)
    tool.minimize(loss)
    block = fluid.default_main_program().global_block()
    before = len(block.ops), len(block.vars)
    with pytest.raises(GraphError, match="accumulators already") as refused:
        tool.minimize(loss)
    assert "make a new optimizer" in str(refused.value)
    assert (len(block.ops), len(block.vars)) == before
