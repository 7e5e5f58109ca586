"""Operators on sequences give what real Fluid 1.8.5 gives: values, LoD, declared shapes, gradients."""

from __future__ import annotations

import numpy as np
import pytest

from paddlelike.framework.opdef import OWN
from tests.helpers.golden_data import table
from tests.ops.harness.replay import Replay, decode
from tests.ops.sequence_cases import CASES

GOLDEN = table("sequences")
#: Two float32 kernels that add in another order; a CTC loss adds up logarithms over all steps.
CLOSE = {"rtol": 2e-6, "atol": 2e-6}
CLOSE_CTC = {"rtol": 1e-5, "atol": 5e-6}
#: LoD of arrays in batch order says how they were ordered; here nothing needs to know.
INTERNAL = ("BatchGate", "BatchHidden")


def tolerance(name: str) -> dict[str, float]:
    return CLOSE_CTC if name.startswith("warpctc") else CLOSE


@pytest.mark.parametrize("name", CASES)
def test_values_and_lod(name: str) -> None:
    replay = Replay(name, CASES[name])
    replay.run()
    for slot, record in GOLDEN[name]["out"].items():
        if record is None or slot in replay.case.ignore:
            continue
        want, got = decode(record[0]), replay.values[slot + "_out"]
        assert (got.shape, got.dtype) == (want.shape, want.dtype), slot
        np.testing.assert_allclose(got, want, **tolerance(name), err_msg=slot)
        if slot not in INTERNAL:
            assert replay.lods.get(slot + "_out", []) == record[1], slot


@pytest.mark.parametrize("name", CASES)
def test_shapes_declared_when_the_program_is_built(name: str) -> None:
    built = GOLDEN[name]["built"]
    for slot, spec in Replay(name, CASES[name]).specs().items():
        if slot not in CASES[name].outputs:
            continue
        shape, level, dtype = built[slot]
        if slot == "MaxIndex":  # the operator leaves the dtype alone; the layer declares that of X
            dtype = int(spec.dtype)
        assert (list(spec.shape), spec.lod_level, int(spec.dtype)) == (shape, level, dtype), slot


@pytest.mark.parametrize("name", [name for name, record in GOLDEN.items() if "grad" in record])
def test_gradients(name: str) -> None:
    replay = Replay(name, CASES[name])
    replay.run()
    got = replay.gradients()
    for variable, record in GOLDEN[name]["grad"].items():
        want = decode(record)
        assert (got[variable].shape, got[variable].dtype) == (want.shape, want.dtype), variable
        np.testing.assert_allclose(got[variable], want, **tolerance(name), err_msg=variable)


def levels_of_gradients() -> list[str]:
    """LoD levels of gradients; that of sequence_reverse, its own gradient, has the level of its input."""
    return [name for name, record in GOLDEN.items() if "levels" in record and name != "sequence_reverse"]


@pytest.mark.parametrize("name", levels_of_gradients())
def test_declared_levels_of_gradients(name: str) -> None:
    replay = Replay(name, CASES[name])
    gradient = replay.op.gradient
    for variable, level in GOLDEN[name]["levels"].items():
        own = gradient is not None and gradient.lod == OWN
        assert level == (len(replay.lods.get(variable, [])) if own else 0), variable
