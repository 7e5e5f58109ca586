"""Checks of an operator at a recorded point (see recorded.py), for tests over many cases."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.ops.harness.recorded import Case
from tests.ops.harness.replay import Replay, decode

__all__ = ["check_declared", "check_gradients", "check_values"]

#: Sums of many float32 products, added in another order.
CLOSE = {"rtol": 1e-5, "atol": 1e-6}


def check_values(name: str, case: Case, golden: Any) -> None:
    """Values, dtypes and LoDs of the outputs are the recorded ones."""
    replay = Replay(name, case)
    replay.run()
    for slot, record in golden["out"].items():
        if slot in case.ignore:
            continue
        got, lod = replay.out(slot)
        if record is None:
            assert got is None or got.size == 0, slot
            continue
        want = decode(record[0])
        assert (got.shape, got.dtype, lod) == (want.shape, want.dtype, record[1]), slot
        np.testing.assert_allclose(got, want, **CLOSE, err_msg=slot)


def check_declared(name: str, case: Case, golden: Any) -> None:
    """Shapes, LoD levels and dtypes that the shape rule declares are the recorded ones."""
    for slot, spec in Replay(name, case).specs().items():
        if slot in golden["built"]:
            assert [list(spec.shape), spec.lod_level, int(spec.dtype)] == golden["built"][slot], slot


def check_gradients(name: str, case: Case, golden: Any) -> None:
    """Gradients of the inputs are the recorded ones."""
    replay = Replay(name, case)
    replay.run()
    got = replay.gradients()
    for variable, record in golden["grad"].items():
        want = decode(record)
        assert (got[variable].shape, got[variable].dtype) == (want.shape, want.dtype), variable
        np.testing.assert_allclose(got[variable], want, **CLOSE, err_msg=variable)
