"""Blocks, variables, operators: all-or-nothing changes, and errors with both sides and near names."""

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
        ({"type": "reluu"}, r"'reluu' is not known here\n  hint: near names: relu"),
        ({"type": "relu", "inputs": {}}, "'relu' needs its input 'X'"),
        ({"type": "relu", "inputs": {"X": ["x", "y"]}}, "'relu' takes one variable in 'X', got 2"),
        ({"type": "relu", "inputs": {"X": "nobody"}}, "'nobody' is not in block 0"),
        ({"type": "relu", "inputs": {"X": 3}}, "a slot takes variables or their names, not 3"),
        ({"type": "relu", "outputs": {}}, "'relu' needs its output 'Out'"),
        ({"type": "scale", "attrs": {"scale": "two"}}, r"'scale' is 'two' \(str\), Paddle wants FLOAT"),
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


def test_shapes_that_do_not_fit_are_named(block: Any) -> None:
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
def test_a_name_is_declared_again_only_as_what_it_is(changes: dict[str, Any], words: str) -> None:
    given = {"name": "x", "shape": [None, 4], "dtype": "float32", "lod_level": 0}
    fluid.data(**given)
    fluid.data(**given)
    before = snapshot()
    with pytest.raises(GraphError, match=words) as caught:
        fluid.data(**{**given, **changes})
    assert "unique_name.guard" in caught.value.hint
    assert snapshot() == before


def test_a_missing_variable_has_near_names(block: Any) -> None:
    L.fc(fluid.data("x", [None, 4]), 3)
    with pytest.raises(ValueError, match=r"has no variable 'fc_0\.w_1'") as caught:
        block.var("fc_0.w_1")
    assert caught.value.hint.startswith("near names: fc_0.w_0, ")


def test_parameters_stand_in_the_outermost_block(block: Any) -> None:
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


def test_a_parameter_stays_persistable(block: Any) -> None:
    weight = block.create_parameter(name="w", shape=[2], dtype="float32")
    with pytest.raises(GraphError, match="must stay persistable"):
        weight.persistable = False
    with pytest.raises(GraphError, match="must stay persistable"):
        weight.desc.set_persistable(False)
    assert weight.persistable is True


@pytest.mark.parametrize("shape", [[], [2, -1], [2, 0], None])
def test_a_parameter_has_positive_dims(block: Any, shape: Any) -> None:
    with pytest.raises(GraphError, match="cannot have shape"):
        block.create_parameter(name="w", shape=shape, dtype="float32")
    assert not block.has_var("w")


def test_an_operator_tells_where_it_was_made() -> None:
    x = L.relu(fluid.data("x", [None, 4]))
    assert x.op.line.startswith(f"{__file__}:")
    assert x.op.line.endswith("in test_an_operator_tells_where_it_was_made")


def test_an_operator_answers_for_slots_and_attributes() -> None:
    out = L.fc(fluid.data("x", [None, 4]), 3)
    op = out.op
    assert op.type == "elementwise_add"
    assert op.input("X") == ["fc_0.tmp_0"]
    assert op.input("nobody") == op.output("nobody") == []
    assert (op.idx, op.attr("axis"), op.has_attr("nobody")) == (1, 1, False)
    with pytest.raises(EnforceNotMet, match="no attribute 'nobody'"):
        op.attr("nobody")
    attrs = op.all_attrs()
    attrs["axis"] = 9
    assert op.attr("axis") == 1


def test_attributes_hold_float32_values() -> None:
    op = L.scale(fluid.data("x", [None, 4]), 0.1).op
    assert op.attr("scale") == 0.10000000149011612
    op._set_attr("scale", 0.2)
    assert op.attr("scale") == 0.20000000298023224
    with pytest.raises(EnforceNotMet, match="wants FLOAT"):
        op._set_attr("scale", "x")
    with pytest.raises(EnforceNotMet, match="wants INT"):
        L.mean(fluid.data("y", [1])).op._set_attr("op_role", 1.5)


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


def test_variables_are_compared_by_what_they_are_in_containers() -> None:
    x, y = fluid.data("x", [1]), fluid.data("y", [1])
    assert len({x, y, x}) == 2
    assert {x: 1}[x] == 1


def test_a_variable_prints_in_one_line(block: Any) -> None:
    weight = block.create_parameter(name="w", shape=[2, 3], dtype="float32")
    assert repr(weight) == "<parameter w: fp32[2, 3]>"
    assert repr(fluid.data("x", [None, 4], "int64")) == "<temporary x: int64[-1, 4]>"
