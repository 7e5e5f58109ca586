"""Programs of trainers and servers beside those of real Fluid 1.8.5, in jobs drawn at random."""

from __future__ import annotations

import warnings
from pathlib import Path

import pytest

import paddlelike as fluid
from paddlelike.framework.graph.guards import reset_name_scope
from tests.distributed.transpiler.masking import mask_program
from tests.distributed.transpiler.networks import overview, programs
from tests.distributed.transpiler.random_cases import draw_case
from tests.distributed.transpiler.real import ask
from tests.helpers.canonical import differences
from tests.interop.real import FLUID185

pytestmark = FLUID185.needed

JOBS = 30


@pytest.mark.parametrize("first", [0, 1000])
def test_random_jobs_are_transpiled_as_by_fluid(first: int, tmp_path: Path) -> None:
    cases = {str(seed): draw_case(seed) for seed in range(first, first + JOBS)}
    assert FLUID185.python is not None
    records = ask(FLUID185.python, cases, tmp_path)
    assert [record["error"] for record in records.values() if "error" in record] == []
    unequal = {name: _differences(cases[name], record)[:3] for name, record in records.items()}
    assert {name: lines for name, lines in unequal.items() if lines} == {}


def _differences(case: dict[str, object], record: dict[str, object]) -> list[str]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # set_gradient_clip is deprecated; some servers keep nothing
        made = programs(fluid, case, reset_name_scope)
        table = overview(fluid, case, reset_name_scope)
    lines = [
        f"{role}: {line}"
        for role, pair in record["programs"].items()
        for got, want in zip(made[role], pair, strict=True)
        for line in differences(mask_program(got), want)
    ]
    return lines + [f"table: {row}" for row in table if row not in record["overview"]]
