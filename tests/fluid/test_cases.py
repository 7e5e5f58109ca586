"""What scripts compute with the modules of fluid/ is what Fluid 1.8.5 computed (golden.json)."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import paddlelike.fluid as fluid
from tests.fluid.dump_cases import CASES, run

GOLDEN = json.loads((Path(__file__).parent / "golden.json").read_text())


def equal(ours: Any, theirs: Any) -> Any:
    """``theirs`` with floats that compare approximately: float32 sums in another order differ by some ulp."""
    if isinstance(theirs, list):
        assert len(ours) == len(theirs)
        return [equal(a, b) for a, b in zip(ours, theirs, strict=True)]
    return pytest.approx(theirs, rel=2e-6, abs=1e-7) if isinstance(theirs, float) else theirs


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
def test_a_recorded_case_gives_the_values_of_fluid(case: Callable[[Any], Any]) -> None:
    ours = json.loads(json.dumps(run(case, fluid)))
    assert ours == equal(ours, GOLDEN[case.__name__])
