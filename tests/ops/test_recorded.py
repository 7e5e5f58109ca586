"""Operators give what real Fluid 1.8.5 gives at recorded points: values, LoD, declared shapes, gradients."""

from __future__ import annotations

import pytest

from paddlelike.framework.opdef import OWN
from tests.helpers.golden_data import table
from tests.ops.harness.points import GOLDEN, PARTS, POINTS, get_tolerance
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
def test_recorded_values_and_lods_are_computed(name: str) -> None:
    replay = Replay(name, POINTS[name])
    replay.run()
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


@pytest.mark.parametrize("name", POINTS)
def test_declared_shapes_match_the_recorded_ones(name: str) -> None:
    built = GOLDEN[name]["built"]
    for slot, spec in Replay(name, POINTS[name]).specs().items():
        if slot not in built:
            continue
        compared = 2 if slot == "MaxIndex" else 3  # the layer declares the dtype of MaxIndex, as that of X
        declared = [list(spec.shape), spec.lod_level, int(spec.dtype)]
        assert declared[:compared] == built[slot][:compared], slot


@pytest.mark.parametrize("name", [name for name, record in GOLDEN.items() if "grad" in record])
def test_recorded_gradients_are_computed(name: str) -> None:
    replay = Replay(name, POINTS[name])
    replay.run()
    got = replay.gradients()
    for variable, record in GOLDEN[name]["grad"].items():
        compare(got[variable], record, get_tolerance(name), variable)


def levels_of_gradients() -> list[str]:
    """LoD levels of gradients; that of sequence_reverse, its own gradient, has the level of its input."""
    return [name for name, record in GOLDEN.items() if "levels" in record and name != "sequence_reverse"]


@pytest.mark.parametrize("name", levels_of_gradients())
def test_declared_lod_levels_of_gradients_match_the_recorded_ones(name: str) -> None:
    replay = Replay(name, POINTS[name])
    gradient = replay.op.gradient
    for variable, level in GOLDEN[name]["levels"].items():
        own = gradient is not None and gradient.lod == OWN
        assert level == (len(replay.lods.get(variable, [])) if own else 0), variable
