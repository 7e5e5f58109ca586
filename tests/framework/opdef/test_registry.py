"""Operators are imported at the first look-up, once."""

from __future__ import annotations

import subprocess
import sys
import threading
import time

import pytest

from paddlelike.errors import EnforceNotMet, GraphError
from paddlelike.framework.opdef import Array, Int, OpDef, Spec, registry
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

    with pytest.raises(GraphError, match="forward takes 1 positional arguments, its slots ask for 2"):
        registry.register(TwoSlots)


def test_a_function_asks_for_declared_attributes_only() -> None:
    class Undeclared(OpDef):
        type = "undeclared"
        attrs = {"axis": Int(0)}

        @staticmethod
        def infer(x: Spec, *, axes: int) -> Spec:
            return x

    with pytest.raises(GraphError, match=r"infer asks for attributes \['axes'\]"):
        registry.register(Undeclared)
