"""Proposals of files for variables without one: what is known by its name only."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import paddlelike as fluid
from paddlelike import layers

#: Learning rates that each have a variable of another name.
RATES: dict[str, Callable[[], Any]] = {
    "constant": lambda: 0.1,
    "piecewise": lambda: layers.piecewise_decay([1, 2], [0.1, 0.2, 0.3]),
    "warmup": lambda: layers.linear_lr_warmup(0.5, 10, 0.0, 0.5),
    "own": lambda: layers.create_global_var([1], 0.25, "float32", persistable=True),
}


def build(rate: Callable[[], Any]) -> fluid.Program:
    """A trained network, and its startup program run in the scope of the test."""
    main, startup = fluid.Program(), fluid.Program()
    with fluid.program_guard(main, startup), fluid.unique_name.guard():
        loss = layers.mean(layers.fc(fluid.data("x", [None, 4]), 3))
        fluid.optimizer.Momentum(rate(), 0.9).minimize(loss)
    fluid.Executor().run(startup)
    return main


@pytest.mark.parametrize("saved", RATES)
@pytest.mark.parametrize("wanted", RATES)
def test_the_learning_rate_of_another_schedule_is_not_proposed(
    tmp_path: Path, saved: str, wanted: str
) -> None:
    with fluid.scope_guard(fluid.core.Scope()):
        fluid.io.save_persistables(fluid.Executor(), str(tmp_path), build(RATES[saved]))
    plan = fluid.io.plan_load(str(tmp_path), build(RATES[wanted]))
    assert list(plan.proposals) == []
