"""ConditionalBlock: when it runs, what it reads and writes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import paddlelike as fluid
from paddlelike.errors import OperatorError
from paddlelike.layers.control.sub_blocks import ConditionalBlock
from tests.helpers.small_networks import run

layers = fluid.layers


def chosen(value: float) -> Any:
    return layers.fill_constant([1], "float32", value)


@pytest.mark.parametrize(("rows", "wanted"), [(2, 1.0), (0, -1.0)])
def test_a_block_without_a_scalar_condition_runs_when_nothing_is_empty(rows: int, wanted: float) -> None:
    x = fluid.data("x", [None, 3], "float32")
    out = layers.create_global_var([1], -1.0, "float32", persistable=True, name="out")
    with ConditionalBlock([x]).block():
        layers.assign(chosen(1.0), out)
    assert run(out, x=np.zeros((rows, 3), "float32")) == [wanted]


def test_the_operator_names_what_goes_in_and_out() -> None:
    x = fluid.data("x", [1], "float32")
    out = layers.create_global_var([1], 0.0, "float32", persistable=True, name="out")
    with layers.Switch() as switch, switch.case(x < 5.0):
        doubled = x * 2.0
        layers.assign(doubled + out, out)
    op = fluid.default_main_program().global_block().ops[-1]
    assert op.type == "conditional_block"
    assert op.input("Input") == ["x", "out"]
    assert op.output("Out") == ["out"]
    assert op.sub_blocks() == [1]


def test_a_conditional_block_may_hold_another() -> None:
    x = fluid.data("x", [1], "float32")
    out = layers.create_global_var([1], 0.0, "float32", persistable=True, name="out")
    with layers.Switch() as outer, outer.case(x < 5.0), layers.Switch() as inner, inner.case(x < 3.0):
        layers.assign(x * 2.0, out)
    op = fluid.default_main_program().global_block().ops[-1]
    assert (op.input("Input"), op.output("Out")) == (["x"], ["out"])
    assert run(out, x=np.array([2], "float32")) == [4.0]
    assert run(out, x=np.array([4], "float32")) == [0.0]


def test_a_condition_is_one_bool() -> None:
    x = fluid.data("x", [2], "float32")
    with layers.Switch() as switch, switch.case(x < 1.0):
        layers.assign(x, layers.create_global_var([2], 0.0, "float32", name="out"))
    with pytest.raises(OperatorError, match="condition is one bool"):
        run("out", x=np.zeros(2, "float32"))
