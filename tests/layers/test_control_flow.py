"""Switch and ConditionalBlock: which block runs, and what it leaves behind."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import paddlelike as fluid
from paddlelike.errors import GraphError, OperatorError
from paddlelike.layers.control.sub_blocks import ConditionalBlock

layers = fluid.layers


def run(fetch: Any, **feed: Any) -> Any:
    exe = fluid.Executor(fluid.CPUPlace())
    if fluid.default_startup_program().global_block().ops:
        exe.run(fluid.default_startup_program())
    return exe.run(fluid.default_main_program(), feed=feed, fetch_list=[fetch])[0]


def chosen(value: float) -> Any:
    return layers.fill_constant([1], "float32", value)


@pytest.mark.parametrize(("step", "wanted"), [(0, 10.0), (4, 10.0), (5, 20.0), (9, 20.0), (10, 30.0)])
def test_the_first_case_that_holds_is_run(step: int, wanted: float) -> None:
    x = fluid.data("step", [1], "float32")
    out = layers.create_global_var([1], -1.0, "float32", persistable=True, name="out")
    with layers.Switch() as switch:
        with switch.case(x < 5.0):
            layers.assign(chosen(10.0), out)
        with switch.case(x < 10.0):
            layers.assign(chosen(20.0), out)
        with switch.default():
            layers.assign(chosen(30.0), out)
    assert run(out, step=np.array([step], "float32")) == [wanted]


def test_without_a_default_nothing_may_happen() -> None:
    x = fluid.data("step", [1], "float32")
    out = layers.create_global_var([1], -1.0, "float32", persistable=True, name="out")
    with layers.Switch() as switch, switch.case(x < 5.0):
        layers.assign(chosen(10.0), out)
    assert run(out, step=np.array([7], "float32")) == [-1.0]


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


def test_a_block_in_a_block() -> None:
    x = fluid.data("x", [1], "float32")
    out = layers.create_global_var([1], 0.0, "float32", persistable=True, name="out")
    with layers.Switch() as outer, outer.case(x < 5.0), layers.Switch() as inner, inner.case(x < 3.0):
        layers.assign(x * 2.0, out)
    op = fluid.default_main_program().global_block().ops[-1]
    assert (op.input("Input"), op.output("Out")) == (["x"], ["out"])
    assert run(out, x=np.array([2], "float32")) == [4.0]
    assert run(out, x=np.array([4], "float32")) == [0.0]


def test_misuse_is_refused() -> None:
    x = fluid.data("x", [1], "float32")
    with pytest.raises(GraphError, match="inside"), layers.Switch().case(x < 1.0):
        pass
    with layers.Switch() as switch:
        with pytest.raises(GraphError, match="after at least one case"), switch.default():
            pass
        with pytest.raises(TypeError, match="BOOL"), switch.case(x):
            pass


def test_a_condition_is_one_bool() -> None:
    x = fluid.data("x", [2], "float32")
    with layers.Switch() as switch, switch.case(x < 1.0):
        layers.assign(x, layers.create_global_var([2], 0.0, "float32", name="out"))
    with pytest.raises(OperatorError, match="condition is one bool"):
        run("out", x=np.zeros(2, "float32"))
