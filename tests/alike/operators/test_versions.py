"""Operators in programs of Paddle 2.6.2 and 3.3.1 give what each gave: see `dump_versions.py`."""

from __future__ import annotations

import json
import lzma
import warnings
from typing import Any

import pytest

from tests.alike.operators.comparing import differ
from tests.alike.operators.versions import GOLDEN, VERSIONS, ask

with lzma.open(GOLDEN) as file:
    CASES: list[Any] = json.load(file)


def test_the_record_holds_hundreds_of_cases_and_some_that_tell_the_versions_apart() -> None:
    assert len(CASES) >= 300
    assert len({case["type"] for case, _ in CASES}) > 150
    assert sum("grad" in wants["262"] for _, wants in CASES) > 100
    assert sum(differ(wants["262"], wants["331"], case["type"]) != "" for case, wants in CASES) >= 3


@pytest.mark.parametrize("version", VERSIONS)
def test_operators_give_the_outputs_and_gradients_of_the_programs_version(version: str) -> None:
    unlike = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for case, wants in CASES:
            want = wants[version]
            if text := differ(ask(case, VERSIONS[version], want), want, case["type"]):
                unlike.append(f"{case['name']}: {text}")
    assert unlike == []
