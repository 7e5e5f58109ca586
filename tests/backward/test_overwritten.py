"""Loops that overwrite tensors, and loops in them: programs and gradients as in real Fluid 1.8.5."""

from __future__ import annotations

import gzip
import json
from typing import Any

import numpy as np
import pytest

import paddlelike as fluid
from tests.backward import overwritten_cases
from tests.helpers.golden_data import GOLDEN

with gzip.open(GOLDEN / "overwritten.json.gz") as file:
    RECORDS: list[list[Any]] = json.load(file)

pytestmark = pytest.mark.filterwarnings("ignore::paddlelike.errors.QuirkWarning")


@pytest.mark.parametrize("part", range(8))
def test_nested_loops_that_overwrite_tensors_have_the_gradients_recorded_from_fluid(part: int) -> None:
    for plan, digest, exists, values in RECORDS[part::8]:
        found = overwritten_cases.answer(fluid, plan)
        assert found[:2] == [digest, exists], plan
        np.testing.assert_allclose(found[2], values, 1e-5, 1e-6, err_msg=str(plan))


def compile_by_jax(program: Any) -> Any:
    return fluid.CompiledProgram(program).with_backend("jax")


@pytest.mark.slow
def test_compiled_loops_that_overwrite_tensors_have_the_gradients_recorded_from_fluid() -> None:
    pytest.importorskip("jax", reason="the extra `jax` is not installed", exc_type=ImportError)
    for plan, _, _, values in RECORDS[::6]:
        found = overwritten_cases.answer(fluid, plan, compile_by_jax)[2]
        np.testing.assert_allclose(found, values, 1e-5, 1e-6, err_msg=str(plan))


def test_the_recorded_programs_overwrite_outer_tensors_in_inner_loops() -> None:
    def reaches(statements: list[Any], depth: int) -> bool:
        return any(
            reaches(rest, depth + 1) if kind == "while" else kind == "set" and what in "ab" and depth > 1
            for kind, what, rest in statements
        )

    assert sum(reaches(plan["body"], 0) for plan, *_ in RECORDS) >= 30
