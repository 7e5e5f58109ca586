"""Slots become arguments, and results go to variables, by one rule."""

from __future__ import annotations

from paddlelike.core.dtypes import VarType
from paddlelike.framework.opdef import EMPTY, Slot, Spec, make_arguments, name_results

SLOTS = [Slot.parse(text) for text in ("X", "Many*", "Bias?", "More*?")]


def test_a_slot_is_read_from_its_text() -> None:
    assert [
        Slot("X"),
        Slot("Many", several=True),
        Slot("Bias", optional=True),
        Slot("More", several=True, optional=True),
    ] == SLOTS


def test_one_argument_per_slot() -> None:
    names = {"X": ["x"], "Many": ["a", EMPTY, "b"]}
    assert make_arguments(SLOTS, names, str.upper) == ["X", ["A", None, "B"], None, []]
    assert make_arguments(SLOTS, names | {"X": [EMPTY]}, len, -1) == [-1, [1, -1, 1], -1, []]


def test_results_go_to_the_variables_of_their_slots() -> None:
    two = SLOTS[:2]
    names = {"X": ["x"], "Many": ["a", "b", "c"]}
    found = [(slot.name, name, one) for slot, name, one in name_results(two, names, (1, [2, None, 3]))]
    assert found == [("X", "x", 1), ("Many", "a", 2), ("Many", "c", 3)]
    assert [one for *_, one in name_results(SLOTS[:1], names, [7])] == [[7]], "a list may be one value"
    assert list(name_results(two, names, (None, None))) == []


def test_one_spec_in_a_slot_for_several_variables_is_the_first_ones() -> None:
    spec = Spec((1,), VarType.FP32)
    assert list(name_results([SLOTS[1]], {"Many": ["a", "b"]}, spec)) == [(SLOTS[1], "a", spec)]
