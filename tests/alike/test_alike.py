"""Small scripts end here as they end in real Fluid 1.8.5: what is built, returned, refused."""

from __future__ import annotations

import gzip
import json
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import paddlelike as fluid
from tests.alike.cases import CASES
from tests.alike.different import DIFFERENT
from tests.alike.recording import record
from tests.helpers.canonical import canonical, differences
from tests.helpers.fresh import fresh_programs

with gzip.open(Path(__file__).parent / "golden.json.gz") as file:
    GOLDEN: dict[str, Any] = json.load(file)


@pytest.fixture(autouse=True)
def two_copies(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CPU_NUM", "2")


def outcome(name: str) -> Any:
    with fresh_programs(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return json.loads(json.dumps(record(fluid, canonical, CASES[name])))


def test_the_table_of_cases_is_complete() -> None:
    assert sorted(CASES) == sorted(GOLDEN)
    assert set(GOLDEN) >= set(DIFFERENT)


@pytest.mark.parametrize("name", [name for name in GOLDEN if name not in DIFFERENT])
def test_scripts_end_as_in_fluid_1_8(name: str) -> None:
    lines = list(unlike(outcome(name), GOLDEN[name]))
    assert not lines, "\n  ".join(["another outcome:", *lines[:12]])


@pytest.mark.parametrize("name", DIFFERENT)
def test_recorded_differences_from_fluid_still_exist(name: str) -> None:
    assert list(unlike(outcome(name), GOLDEN[name]))


def unlike(got: Any, want: Any, where: str = "") -> Iterator[str]:
    """What differs between two outcomes, a line each."""
    if isinstance(want, dict) and isinstance(got, dict) and got.keys() == want.keys():
        if "program" in want:
            lines = differences(got["program"], want["program"])
            # The dims of a target of gradients(): the real one declares a bool.
            yield from (f"{where}: {line}" for line in lines if "_shape: dtype is INT32, wanted" not in line)
        elif "refused" in want:
            yield from _refusals_differ(got["refused"], want["refused"][0], where)
        elif "values" in want and "dtype" in want:
            yield from _arrays_differ(got, want, where)
        else:
            for key in want:
                yield from unlike(got[key], want[key], f"{where}.{key}")
    elif isinstance(want, list) and isinstance(got, list) and len(got) == len(want):
        for number, (mine, theirs) in enumerate(zip(got, want, strict=True)):
            yield from unlike(mine, theirs, f"{where}[{number}]")
    elif got != want:
        yield f"{where} is {_shown(got)}, wanted {_shown(want)}"


def _refusals_differ(got: list[str], want: str, where: str) -> Iterator[str]:
    """Scripts catch some kinds of errors; where the real one just stumbles, a kind of ours will do."""
    stumbles = {"AssertionError", "AttributeError", "IndexError", "RuntimeError"}
    ours = {"PaddlelikeError", "TypeError", "ValueError"}
    if want not in got and not (want in stumbles and ours.intersection(got)):
        yield f"{where} is refused with {got[0]}, wanted {want}"


def _arrays_differ(got: Any, want: Any, where: str) -> Iterator[str]:
    if (got["dtype"], got["shape"]) != (want["dtype"], want["shape"]):
        yield f"{where} is {got['dtype']}{got['shape']}, wanted {want['dtype']}{want['shape']}"
    # Another BLAS adds up in another order.
    elif not np.allclose(got["values"], want["values"], rtol=2e-6, atol=2e-6, equal_nan=True):
        yield f"{where} is {_shown(got['values'])}, wanted {_shown(want['values'])}"


def _shown(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) < 200 else text[:200] + "..."
