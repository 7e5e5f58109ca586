"""Operators on odd shapes, values, types and sequences give what real Fluid 1.8.5 gave: see `dump.py`."""

from __future__ import annotations

import json
import lzma
import re
import warnings
from typing import Any

import numpy as np
import pytest

import paddlelike as fluid
from tests.alike.operators.asking import ask, encode
from tests.alike.operators.comparing import DIFFERENT, differ, list_rows
from tests.alike.operators.generating import generate_cases, list_types

with lzma.open(__file__.replace("test_operators.py", "golden.json.xz")) as file:
    GOLDEN: list[Any] = json.load(file)
TYPES = sorted({case["type"] for case, _ in GOLDEN})


def test_the_record_holds_thousands_of_cases_of_most_operators() -> None:
    assert len(GOLDEN) >= 3000
    assert len(TYPES) > 250
    assert sum("refused" in want for _, want in GOLDEN) > 100


@pytest.mark.parametrize("type", TYPES)
def test_operators_give_the_outputs_recorded_from_fluid(type: str) -> None:
    unlike = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for case, want in GOLDEN:
            if case["type"] == type and (text := differ(ask(fluid, case), want, case["type"])):
                unlike.append(f"{case['name']}: {text}")
    assert unlike == []


def test_a_different_value_dtype_or_lod_counts_as_a_difference() -> None:
    def outcome(array: Any, lod: Any = ()) -> dict[str, Any]:
        return {"out": {"x": encode(np.array(array, "float32"), lod)}}

    want = outcome([1, np.nan, -np.inf], [[0, 2, 3]])
    assert differ(want, want) == ""
    assert "1 of 3 differ" in differ(outcome([1, 0, -np.inf], [[0, 2, 3]]), want)
    assert "LoD" in differ(outcome([1, np.nan, -np.inf]), want)
    assert "float32[1, 3]" in differ(outcome([[1, np.nan, -np.inf]]), want)
    assert "refused" in differ({"refused": "run", "why": "it does not fit"}, want)


def test_every_operator_that_gives_other_numbers_is_listed_with_its_source() -> None:
    left = {row.name: row.source for row in fluid.quirks() if not row.followed}
    of_programs = {"cut_model", "names_of_later_passes", "names_of_scales"}
    assert list_rows() | of_programs == left.keys()
    assert all(re.match("(?:python/)?paddle/(?:fluid|phi)/", source) for source in left.values())
    words = {why for _, _, why in DIFFERENT if " " in why}
    assert {why for why in words if not re.search("refused|beyond|no layer|cut from|Intel", why)} == {
        "1.8.5 reads one id of no elements",
        "1.8.5 reads rows of the next step for a sequence without rows that has an H0",
    }


def test_a_seed_gives_the_same_cases() -> None:
    (first, *_), (again, *_) = (list(generate_cases("softmax", 3, 7)) for _ in range(2))
    assert first == again
    assert len(list_types()) > 300
