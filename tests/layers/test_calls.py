"""Layers build what real Fluid 1.8.5 builds, and refuse what it refuses, also beyond the zoo."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

import paddlelike as fluid
from paddlelike.errors import PaddlelikeError
from tests.helpers.canonical import assert_same_program, canonical, differences
from tests.helpers.fresh import fresh_programs
from tests.layers import calls
from tests.layers.detection import box_calls, region_calls
from tests.zoo.test_layers import facts

HERE = Path(__file__).parent
DETECTION = {**box_calls.CALLS, **region_calls.CALLS}
CALLS = calls.CALLS | DETECTION
GOLDEN: dict[str, Any] = {}
for _path in (HERE / "golden.json.gz", HERE / "detection/boxes.json.gz", HERE / "detection/regions.json.gz"):
    with gzip.open(_path) as _file:
        GOLDEN.update(json.load(_file))

#: What we build otherwise, on purpose; each must go on being different.
DIFFERENT = {
    "fused_elemwise_activation": "the real one names a gradient of the intermediate value that nothing reads",
    "expand_as": "the real one declares dims of 0 until the program runs",
    "label_smooth_prior": "the real one declares a dtype that the value does not have",
    "load": "the real one forgets the output",
    "merge_selected_rows": "the real one declares a dense tensor",
    "pad2d_variable": "the real one declares the dims without their unknown margins",
}

REFUSED = {name: record["error"] for name, record in GOLDEN.items() if "error" in record}
BUILT = sorted(set(GOLDEN) - set(REFUSED))


def test_the_table_of_cases_is_complete() -> None:
    assert sorted([*calls.CALLS, *DETECTION]) == sorted(GOLDEN)
    assert set(BUILT) >= set(DIFFERENT)


@pytest.mark.filterwarnings("ignore:fluid.evaluator:DeprecationWarning")
@pytest.mark.parametrize("name", [name for name in BUILT if name not in DIFFERENT])
def test_layers_build_the_programs_of_fluid(name: str) -> None:
    golden = GOLDEN[name]
    with fresh_programs() as (main, startup):
        out = CALLS[name](fluid)
        assert_same_program(canonical(main), golden["main"])
        assert_same_program(canonical(startup), golden["startup"])
        if out is not None:
            found = facts(main, out)
            if name in DETECTION:  # Fluid creates the variables of gradients in the order of a hash table
                assert sorted(found.pop("python_vars")) == sorted(golden["python_vars"])
            assert found == {key: golden[key] for key in found}


@pytest.mark.parametrize("name", DIFFERENT)
def test_recorded_differences_of_programs_still_exist(name: str) -> None:
    with fresh_programs() as (main, _):
        CALLS[name](fluid)
        assert list(differences(canonical(main), GOLDEN[name]["main"]))


@pytest.mark.parametrize("name", REFUSED)
def test_calls_that_fluid_refuses_are_refused(name: str) -> None:
    """TypeErrors and ValueErrors are caught by scripts; other kinds become errors of our tree."""
    kind = {"TypeError": TypeError, "ValueError": ValueError}.get(REFUSED[name][0], PaddlelikeError)
    with fresh_programs(), pytest.raises(kind):
        CALLS[name](fluid)
