"""Fed with sequences, the layers pass the LoD on where real Fluid 1.8.5 does, forward and backward."""

from __future__ import annotations

import pytest

import paddlelike as fluid
from tests.helpers.fresh import fresh_programs
from tests.helpers.golden_data import table
from tests.zoo.layers import LAYERS
from tests.zoo.sequences import build

GOLDEN = table("lods")


def test_the_table_of_cases_is_complete() -> None:
    assert sorted(GOLDEN) == sorted(LAYERS)


@pytest.mark.parametrize("name", [name for name, levels in GOLDEN.items() if levels is not None])
def test_variables_have_the_lod_levels_of_fluid(name: str) -> None:
    with fresh_programs() as (main, _):
        build(fluid, name)
        assert {v.name: v.lod_level for v in main.list_vars() if v.lod_level} == GOLDEN[name]
