"""Operators are imported at the first look-up, once."""

from __future__ import annotations

import subprocess
import sys
import threading
import time

import pytest

from paddlelike.core import VarType
from paddlelike.errors import EnforceNotMet, GraphError
from paddlelike.framework.opdef import (
    EMPTY,
    Array,
    Int,
    OpDef,
    Slot,
    Spec,
    make_arguments,
    name_results,
    registry,
)
from paddlelike.framework.opdef.operator_table import OperatorTable


def test_the_import_of_the_package_registers_no_operator() -> None:
    code = """
import sys
import paddlelike
print(sorted(name for name in sys.modules if name.startswith("paddlelike.ops.elementwise")))
from paddlelike.framework.opdef import registry
print(registry.find("relu").type, "paddlelike.ops.elementwise.activation" in sys.modules)
"""
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert shown.splitlines() == ["[]", "relu True"]


def test_threads_that_look_up_at_once_wait_for_one_load() -> None:
    table: OperatorTable[str] = OperatorTable()
    calls, finished = [], []

    def load() -> None:
        calls.append(1)
        table.register("first", "entry")
        assert table.get("first") == "entry"  # while loading: it neither loads again nor waits for itself
        time.sleep(0.05)
        finished.append(1)

    table.provide(load)
    seen = []
    threads = [
        threading.Thread(target=lambda: seen.append((table.get("first"), len(finished)))) for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (calls, seen) == ([1], [("entry", 1)] * 4)


def test_a_load_that_fails_is_tried_again() -> None:
    table: OperatorTable[str] = OperatorTable()
    calls = []

    def load() -> None:
        calls.append(1)
        if len(calls) == 1:
            raise ImportError("not now")

    table.provide(load)
    with pytest.raises(ImportError, match="not now"):
        table.get("first")
    table.get("first")
    table.all()
    assert len(calls) == 2


def test_an_unknown_operator_is_named() -> None:
    assert registry.find_or_none("no_such_operator") is None
    with pytest.raises(EnforceNotMet, match="operator 'no_such_operator' is not known here"):
        registry.find("no_such_operator")


def test_an_operator_is_registered_once() -> None:
    class Relu(OpDef):
        type = registry.find("relu").type

    with pytest.raises(GraphError, match="operator 'relu' is registered twice"):
        registry.register(Relu)


def test_a_function_takes_one_array_per_slot() -> None:
    class TwoSlots(OpDef):
        type = "two_slots"
        inputs = ("X", "Y")

        @staticmethod
        def forward(x: Array) -> Array:
            return x

    with pytest.raises(GraphError, match="forward takes 1 positional arguments, but its slots need 2"):
        registry.register(TwoSlots)


def test_reading_an_undeclared_attribute_is_refused() -> None:
    class Undeclared(OpDef):
        type = "undeclared"
        attrs = {"axis": Int(0)}

        @staticmethod
        def infer(x: Spec, *, axes: int) -> Spec:
            return x

    with pytest.raises(GraphError, match=r"infer needs the unknown attributes \['axes'\]"):
        registry.register(Undeclared)


SLOTS = [Slot.parse(text) for text in ("X", "Many*", "Bias?", "More*?")]


def test_a_slot_is_parsed_from_its_text() -> None:
    assert [
        Slot("X"),
        Slot("Many", several=True),
        Slot("Bias", optional=True),
        Slot("More", several=True, optional=True),
    ] == SLOTS


def test_kernels_get_one_argument_per_slot() -> None:
    names = {"X": ["x"], "Many": ["a", EMPTY, "b"]}
    assert make_arguments(SLOTS, names, str.upper) == ["X", ["A", None, "B"], None, []]
    assert make_arguments(SLOTS, names | {"X": [EMPTY]}, len, -1) == [-1, [1, -1, 1], -1, []]


def test_results_are_stored_in_the_variables_of_their_slots() -> None:
    two = SLOTS[:2]
    names = {"X": ["x"], "Many": ["a", "b", "c"]}
    found = [(slot.name, name, one) for slot, name, one in name_results(two, names, (1, [2, None, 3]))]
    assert found == [("X", "x", 1), ("Many", "a", 2), ("Many", "c", 3)]
    assert [one for *_, one in name_results(SLOTS[:1], names, [7])] == [[7]], "a list may be one value"
    assert list(name_results(two, names, (None, None))) == []


def test_a_single_spec_for_a_slot_of_several_variables_describes_the_first() -> None:
    spec = Spec((1,), VarType.FP32)
    assert list(name_results([SLOTS[1]], {"Many": ["a", "b"]}, spec)) == [(SLOTS[1], "a", spec)]
