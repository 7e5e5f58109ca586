"""Every optimizer and schedule builds the programs of real Fluid 1.8.5 and gives its numbers."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

import paddlelike as fluid
from tests.helpers.canonical import assert_same_program, canonical
from tests.helpers.fresh import fresh_programs
from tests.helpers.golden_data import table
from tests.zoo.optimizers import OPTIMIZERS, net

pytestmark = pytest.mark.filterwarnings("ignore:Ftrl")  # its l2 is l1's, as in Fluid

GOLDEN = table("optimizers")

#: Entries whose values cannot be compared, and why.
RANDOM = {"Dpsgd": "adds noise of the system's own generator"}


@contextmanager
def minimized(name: str) -> Iterator[tuple[Any, Any, Any]]:
    with fresh_programs(seed=13) as (main, startup):
        loss = net()
        OPTIMIZERS[name](loss)
        yield main, startup, loss


def test_the_table_of_cases_is_complete() -> None:
    assert sorted(OPTIMIZERS) == sorted(GOLDEN)
    assert set(GOLDEN) >= set(RANDOM)


@pytest.mark.parametrize("name", GOLDEN)
def test_programs_of_optimizers_match_fluid(name: str) -> None:
    golden = GOLDEN[name]
    with minimized(name) as (main, startup, loss):
        assert_same_program(canonical(main), golden["main"])
        assert_same_program(canonical(startup), golden["startup"])
        assert loss.name == golden["loss"]
        assert {
            v.name: {
                "shape": list(v.shape),
                "dtype": v.dtype.name,
                "kind": "Parameter" if fluid.io.is_parameter(v) else "Variable",
                "belongs_to_optimizer": bool(fluid.io.is_belong_to_optimizer(v)),
            }
            for v in main.list_vars()
            if fluid.io.is_persistable(v)
        } == golden["persistables"]


@pytest.mark.parametrize("name", [name for name in GOLDEN if name not in RANDOM])
def test_values_after_some_steps_match_fluid(name: str) -> None:
    golden = GOLDEN[name]
    features = np.random.RandomState(5).uniform(-1, 1, (3, 2, 4)).astype("float32")
    targets = features.sum(-1, keepdims=True).astype("float32")
    with minimized(name) as (main, startup, loss):
        exe = fluid.Executor()
        exe.run(startup)
        assert values(main) == golden["values_after_startup"]
        losses = [
            exe.run(main, feed={"x": x, "y": y}, fetch_list=[loss])[0][0]
            for x, y in zip(features, targets, strict=True)
        ]
        np.testing.assert_allclose(losses, golden["losses"], rtol=1e-5)  # float32, three steps
        got, want = values(main), golden["values_after_3_steps"]
        for key in want:
            np.testing.assert_allclose(got[key], want[key], rtol=1e-5, atol=1e-6, err_msg=key)


def values(main: Any) -> dict[str, list[float]]:
    scope = fluid.global_scope()
    return {
        v.name: np.array(scope.find_var(v.name).get_tensor()).astype("float64").ravel().tolist()
        for v in main.list_vars()
        if fluid.io.is_persistable(v)
    }
