"""Operators give what real Fluid 1.8.5 gives at recorded points: values, LoD, declared shapes, gradients."""

from __future__ import annotations

import pytest

from paddlelike.framework.opdef import OWN
from tests.helpers.golden_data import table
from tests.ops.harness.points import GOLDEN, PARTS, POINTS, get_tolerance
from tests.ops.harness.recorded import add_level
from tests.ops.harness.replay import Replay, compare

#: LoD of arrays in batch order says how they were ordered; here nothing needs to know.
INTERNAL = ("BatchGate", "BatchHidden")


@pytest.mark.parametrize("part", PARTS)
def test_every_point_is_recorded(part: str) -> None:
    _, modules = PARTS[part]
    assert sorted(table(part)) == sorted(name for module in modules for name in module.CASES)


def test_recorded_points_have_unique_names() -> None:
    assert len(POINTS) == sum(len(table(part)) for part in PARTS)


@pytest.mark.parametrize("name", POINTS)
def test_values_lods_shapes_and_gradients_match_the_recorded_results(name: str) -> None:
    replay = Replay(name, POINTS[name])
    check_declared(name, replay)
    replay.run()
    check_values(name, replay)
    if "grad" in GOLDEN[name]:
        got = replay.gradients()
        for variable, record in GOLDEN[name]["grad"].items():
            compare(got[variable], record, get_tolerance(name), variable)
    if "levels" in GOLDEN[name] and name != "sequence_reverse":  # its own gradient has the level of its input
        check_levels_of_gradients(name, replay)


def check_declared(name: str, replay: Replay) -> None:
    built = GOLDEN[name]["built"]
    for slot, spec in replay.specs().items():
        if slot not in built:
            continue
        compared = 2 if slot == "MaxIndex" else 3  # the layer declares the dtype of MaxIndex, as that of X
        declared = [list(spec.shape), spec.lod_level, int(spec.dtype)]
        assert declared[:compared] == built[slot][:compared], slot
    if "leveled" in GOLDEN[name]:
        specs = Replay(name, add_level(POINTS[name])).specs()
        assert {slot: spec.lod_level for slot, spec in specs.items()} == GOLDEN[name]["leveled"]


def check_values(name: str, replay: Replay) -> None:
    for slot, record in GOLDEN[name]["out"].items():
        if slot in POINTS[name].ignore:
            continue
        got, lod = replay.out(slot)
        if record is None:  # the real one does not hand out an array without rows
            assert got is None or not got.size, slot
            continue
        compare(got, record[0], get_tolerance(name), slot)
        if slot not in INTERNAL:
            assert lod == record[1], slot


def check_levels_of_gradients(name: str, replay: Replay) -> None:
    gradient = replay.op.gradient
    for variable, level in GOLDEN[name]["levels"].items():
        own = gradient is not None and gradient.lod == OWN
        assert level == (len(replay.lods.get(variable, [])) if own else 0), variable
