"""Blocks: all-or-nothing changes, and errors with near names."""

from __future__ import annotations

from typing import Any

import pytest

import paddlelike as fluid
from paddlelike.errors import EnforceNotMet, GraphError, ShapeError

L = fluid.layers


@pytest.fixture
def block() -> Any:
    return fluid.default_main_program().global_block()


def snapshot() -> tuple[str, int]:
    program = fluid.default_main_program()
    return str(program), len(program.global_block().vars)


@pytest.mark.parametrize(
    ("operator", "words"),
    [
        ({"type": "reluu"}, r"'reluu' is not known here\n  hint: did you mean 'relu'"),
        ({"type": "relu", "inputs": {}}, "'relu' needs its input 'X'"),
        ({"type": "relu", "inputs": {"X": ["x", "y"]}}, "'relu' takes one variable in 'X', got 2"),
        ({"type": "relu", "inputs": {"X": "nobody"}}, "'nobody' is not in block 0"),
        ({"type": "relu", "inputs": {"X": 3}}, "a slot takes variables or their names, not 3"),
        ({"type": "relu", "outputs": {}}, "'relu' needs its output 'Out'"),
        ({"type": "scale", "attrs": {"scale": "two"}}, r"'scale' is 'two' \(str\), expected FLOAT"),
        ({"type": "mul", "inputs": {"X": "x", "Y": "y"}}, "mul"),
    ],
    ids=["type", "input", "many", "unknown", "number", "output", "attribute", "shapes"],
)
def test_a_refused_operator_changes_nothing(block: Any, operator: dict[str, Any], words: str) -> None:
    fluid.data("x", [None, 4])
    fluid.data("y", [5, 6])
    block.create_var(name="out", shape=[9], dtype="int64")
    before = snapshot()
    given = {"inputs": {"X": "x"}, "outputs": {"Out": "out"}, **operator}
    with pytest.raises((GraphError, EnforceNotMet, TypeError), match=words):
        block.append_op(**given)
    assert snapshot() == before


def test_an_error_names_shapes_that_do_not_fit(block: Any) -> None:
    x, y = fluid.data("x", [None, 4]), fluid.data("y", [5, 6])
    with pytest.raises(ShapeError, match=r"mul.*4.*5"):
        L.mul(x, y)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"shape": [None, 5]}, r"with shape \(-1, 5\); it has \(-1, 4\)"),
        ({"dtype": "float64"}, "with dtype"),
        ({"lod_level": 1}, "with lod_level 1; it has 0"),
    ],
    ids=["shape", "dtype", "lod"],
)
def test_redeclaring_a_variable_with_another_type_or_shape_is_refused(
    changes: dict[str, Any], words: str
) -> None:
    given = {"name": "x", "shape": [None, 4], "dtype": "float32", "lod_level": 0}
    fluid.data(**given)
    fluid.data(**given)
    before = snapshot()
    with pytest.raises(GraphError, match=words) as caught:
        fluid.data(**{**given, **changes})
    assert "unique_name.guard" in caught.value.hint
    assert snapshot() == before


def test_every_change_to_variables_or_operators_invalidates_plans(block: Any) -> None:
    plans, x = block.program.plans, block.create_var(name="x", shape=[2], dtype="float32")
    for change in (
        lambda: block.create_var(name="y", shape=[2], dtype="float32"),
        lambda: block.append_op("relu", {"X": [x]}, {"Out": [block.var("y")]}),
        lambda: block._rename_var("y", "z"),
        lambda: block._remove_op(0),
        lambda: block._remove_var("z"),
    ):
        plans[()] = object()
        change()
        assert not plans


def test_the_error_for_a_missing_variable_suggests_near_names(block: Any) -> None:
    L.fc(fluid.data("x", [None, 4]), 3)
    with pytest.raises(ValueError, match=r"has no variable 'fc_0\.w_1'") as caught:
        block.var("fc_0.w_1")
    assert caught.value.hint.startswith("did you mean 'fc_0.w_0'")


def test_parameters_are_declared_in_the_outermost_block(block: Any) -> None:
    program = fluid.default_main_program()
    inner = program._create_block()
    weight = inner.create_parameter(name="w", shape=[2], dtype="float32")
    program._rollback()
    assert weight.block is block
    assert inner._var_recursive("w") is weight
    assert not inner.has_var("w")
    assert program.num_blocks == 2
    assert program.current_block() is block
    with pytest.raises(IndexError):
        program.block(2)


def test_a_renamed_variable_is_renamed_in_every_operator(block: Any) -> None:
    x = fluid.data("x", [None, 4])
    y = L.relu(x)
    L.elementwise_add(y, y)
    block._rename_var(y.name, "hidden")
    assert y.name == "hidden"
    assert [op.input_arg_names for op in block.ops] == [["x"], ["hidden", "hidden"]]
    assert block.ops[0].output_arg_names == ["hidden"]
    assert list(block.vars) == ["x", "hidden", "elementwise_add_0.tmp_0"]
    with pytest.raises(GraphError, match="already has"):
        block._rename_var("hidden", "x")


def test_an_operator_may_stop_the_gradients_of_its_outputs() -> None:
    block = fluid.Program().global_block()
    for name in ("x", "y", "z"):
        block.create_var(name=name, shape=[1], dtype="float32")
    block.append_op("scale", {"X": "x"}, {"Out": "y"}, stop_gradient=True)
    block.append_op("scale", {"X": "x"}, {"Out": "z"})
    assert (block.var("y").stop_gradient, block.var("z").stop_gradient) == (True, False)
