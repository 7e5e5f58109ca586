"""Operators of detection give what real Fluid 1.8.5 gives: values, LoD, declared shapes, gradients."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.helpers.golden_data import table
from tests.ops.detection import recorded_boxes, recorded_suppression, recorded_yolo
from tests.ops.harness.replay import Replay, decode

PARTS = {
    "detection_boxes": recorded_boxes.CASES,
    "detection_suppression": recorded_suppression.CASES,
    "detection_yolo": recorded_yolo.CASES,
}
GOLDEN: dict[str, Any] = {name: found for part in PARTS for name, found in table(part).items()}
CASES = {name: case for cases in PARTS.values() for name, case in cases.items()}

#: exp and log of two libraries differ in the last bit of a float32; everything else is equal.
CLOSE = {"rtol": 1e-6, "atol": 1e-6}


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
        np.testing.assert_allclose(got, want, **CLOSE, err_msg=slot)
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
        np.testing.assert_allclose(got[variable], want, **CLOSE, err_msg=variable)
