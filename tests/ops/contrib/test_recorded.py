"""Operators of fluid.contrib give what real Fluid 1.8.5 gives: values, LoD, declared shapes, gradients."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.helpers.golden_data import table
from tests.ops.contrib.recorded_cases import CASES
from tests.ops.harness.replay import Replay, decode

GOLDEN: dict[str, Any] = table("contrib")


def test_every_case_is_recorded() -> None:
    assert sorted(CASES) == sorted(GOLDEN)


@pytest.mark.parametrize("name", CASES)
def test_values_and_lod(name: str) -> None:
    replay = Replay(name, CASES[name])
    replay.run()
    for slot, record in GOLDEN[name]["out"].items():
        got = replay.values[slot + "_out"]
        if record is None:  # the real one does not hand out an array without rows
            assert not got.size, slot
            continue
        want = decode(record[0])
        assert (got.shape, got.dtype) == (want.shape, want.dtype), slot
        np.testing.assert_array_equal(got, want, err_msg=slot)
        assert replay.lods.get(slot + "_out", []) == record[1], slot


@pytest.mark.parametrize("name", CASES)
def test_shapes_declared_when_the_program_is_built(name: str) -> None:
    for slot, spec in Replay(name, CASES[name]).specs().items():
        shape, level, dtype = GOLDEN[name]["built"][slot]
        assert (list(spec.shape), spec.lod_level, int(spec.dtype)) == (shape, level, dtype), slot


@pytest.mark.parametrize("name", [name for name, record in GOLDEN.items() if "grad" in record])
def test_gradients(name: str) -> None:
    replay = Replay(name, CASES[name])
    replay.run()
    got = replay.gradients()
    for variable, record in GOLDEN[name]["grad"].items():
        want = decode(record)
        assert (got[variable].shape, got[variable].dtype) == (want.shape, want.dtype), variable
        np.testing.assert_array_equal(got[variable], want, err_msg=variable)
