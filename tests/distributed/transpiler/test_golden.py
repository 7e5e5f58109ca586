"""Transpiled programs equal those of real Fluid 1.8.5, for trainers and servers."""

from __future__ import annotations

import pytest

import paddlelike as fluid
from paddlelike.framework.graph.guards import reset_name_scope
from tests.distributed.transpiler.cases import CASES
from tests.distributed.transpiler.golden import records
from tests.distributed.transpiler.masking import mask_program
from tests.distributed.transpiler.networks import overview, programs
from tests.helpers.canonical import assert_same_program

pytestmark = [
    pytest.mark.filterwarnings("ignore:server .* keeps nothing"),  # more servers than blocks: as in Fluid
    pytest.mark.filterwarnings("ignore:.*set_gradient_clip"),  # deprecated; what Fluid 1.8.5 can transpile
]


def test_the_golden_file_holds_every_case() -> None:
    assert sorted(records()) == sorted(CASES)


@pytest.mark.parametrize("name", CASES)
def test_trainer_and_server_programs_and_slices_match_fluid(name: str) -> None:
    wanted = records()[name]["programs"]
    made = programs(fluid, CASES[name], reset_name_scope)
    assert sorted(made) == sorted(wanted)
    for role, pair in made.items():
        for got, want in zip(pair, wanted[role], strict=True):
            assert_same_program(mask_program(got), want)
    assert overview(fluid, CASES[name], reset_name_scope) == records()[name]["overview"]
