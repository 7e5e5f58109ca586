"""Mathematical operators give what real Fluid 1.8.5 gives: values, shapes, LoD, gradients, in float32."""

from __future__ import annotations

from typing import Any

import pytest

from paddlelike.framework.opdef import registry
from tests.helpers.golden_data import table
from tests.ops.harness.recorded import Case
from tests.ops.harness.replay import Replay, compare
from tests.ops.math_cases import CASES, weights

GOLDEN = table("math")
#: Two float32 kernels that add in another order; sums of many terms cancel.
CLOSE = (2e-6, 2e-6)


def make_replay(name: str, *, with_lod: bool = False) -> Replay:
    """Return a case with its variables named as in the recording.

    ``with_lod``: the inputs have one level, but for parameters, which have no rows.
    """
    type, given, attrs, wrt = CASES[name]
    outputs = {slot.name: "float32" for slot in registry.find(type).output_slots}
    inputs: dict[str, Any] = {}
    for slot, items in given.items():
        items = items if isinstance(items, list) else [items]
        has_rows = with_lod and slot not in ("Weight", "Bias")
        inputs[slot] = [(array, [[0, len(array)]]) if has_rows else array for array in items]
    return Replay(name, Case(type, inputs, attrs, outputs, list(wrt), ["Out"], ()))


@pytest.mark.parametrize("name", CASES)
def test_shapes_lod_levels_values_and_gradients_match_fluid(name: str) -> None:
    golden, replay = GOLDEN[name], make_replay(name)
    assert {slot: list(spec.shape) for slot, spec in replay.specs().items()} == golden["shape"]
    levels = {slot: spec.lod_level for slot, spec in make_replay(name, with_lod=True).specs().items()}
    assert levels == golden["lod"]
    replay.run()
    for slot, record in golden["out"].items():
        compare(replay.out(slot)[0], record, CLOSE, slot)
    if "grad" in golden:
        got = replay.gradients(lambda case, _, out: weights(case, out))
        for variable, record in golden["grad"].items():
            compare(got[variable], record, CLOSE, variable)
