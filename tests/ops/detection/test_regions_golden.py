"""Operators on regions give what real Fluid 1.8.5 gives: values, LoD, declared shapes, gradients."""

from __future__ import annotations

import numpy as np
import pytest

from tests.helpers.golden_data import table
from tests.ops.detection.recorded_cases import CASES
from tests.ops.replay import Replay, decode

GOLDEN = table("regions")
#: Means of many float32 products, added in another order.
CLOSE = {"rtol": 1e-5, "atol": 1e-6}


@pytest.mark.parametrize("name", CASES)
def test_values_and_lod(name: str) -> None:
    replay = Replay(name, CASES[name])
    replay.run()
    for slot, record in GOLDEN[name]["out"].items():
        got, lod = replay.out(slot)
        if record is None:
            assert got is None or got.size == 0, slot
            continue
        want = decode(record[0])
        assert (got.shape, got.dtype, lod) == (want.shape, want.dtype, record[1]), slot
        np.testing.assert_allclose(got, want, **CLOSE, err_msg=slot)


@pytest.mark.parametrize("name", CASES)
def test_shapes_declared_when_the_program_is_built(name: str) -> None:
    for slot, spec in Replay(name, CASES[name]).specs().items():
        assert [list(spec.shape), spec.lod_level, int(spec.dtype)] == GOLDEN[name]["built"][slot], slot


@pytest.mark.parametrize("name", [name for name, record in GOLDEN.items() if "grad" in record])
def test_gradients(name: str) -> None:
    replay = Replay(name, CASES[name])
    replay.run()
    got = replay.gradients()
    for variable, record in GOLDEN[name]["grad"].items():
        want = decode(record)
        assert (got[variable].shape, got[variable].dtype) == (want.shape, want.dtype), variable
        np.testing.assert_allclose(got[variable], want, **CLOSE, err_msg=variable)
