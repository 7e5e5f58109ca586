"""Random training programs give the same bits on every path of the executor, and numbers near them with JAX."""

from __future__ import annotations

import warnings
from typing import Any

import pytest

import paddlelike as fluid
from tests.fuzz.training.case import make_case, make_feed
from tests.fuzz.training.compare import find_differences
from tests.fuzz.training.paths import TOLERANCES
from tests.fuzz.training.scenario import run_scenario


def compare(seed: int, *paths: str) -> list[str]:
    records = run_scenario(seed, ["plan", *paths])
    return [
        f"{path}: {line}"
        for path, record in records.items()
        for line in find_differences(records["plan"], record, TOLERANCES[path])
    ]


@pytest.mark.parametrize("seed", range(5))
def test_optimisations_of_plans_change_no_result(seed: int) -> None:
    assert compare(seed, "plain", "eager", "unrolled", "profiled") == []


@pytest.mark.slow
@pytest.mark.parametrize("first", range(1000, 1040, 10))
def test_optimisations_change_no_result_of_many_programs(first: int) -> None:
    found = {
        seed: compare(seed, "plain", "eager", "unrolled", "single", "profiled")
        for seed in range(first, first + 10)
    }
    assert {seed: lines for seed, lines in found.items() if lines} == {}


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2000, 2002))
def test_compiled_programs_give_numbers_near_numpy(seed: int) -> None:
    pytest.importorskip("jax", reason="the extra `jax` is not installed", exc_type=ImportError)
    assert compare(seed, "jax") == []


@pytest.mark.parametrize("seed", range(20, 26))
def test_every_program_can_be_explained(seed: int) -> None:
    exe = fluid.Executor()
    with fluid.scope_guard(fluid.Scope()), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of programs that train nothing
        case = make_case(seed)
        exe.run(case.startup)
        explained: Any = exe.explain(case.main, make_feed(case.fed, seed, 3), case.losses, repeat=1)
    assert "multiply-adds" in str(explained)
