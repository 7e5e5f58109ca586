"""Operators: the line that created them, slots, attributes."""

from __future__ import annotations

import pytest

import paddlelike as fluid
from paddlelike.errors import EnforceNotMet

L = fluid.layers


def test_an_operator_records_the_line_that_created_it() -> None:
    x = L.relu(fluid.data("x", [None, 4]))
    assert x.op.line.startswith(f"{__file__}:")
    assert x.op.line.endswith("in test_an_operator_records_the_line_that_created_it")


def test_an_operator_returns_its_slots_and_attributes() -> None:
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


def test_op_desc_has_methods_for_slots_and_attributes() -> None:
    """As Fluid's OpDesc, whose answers these are in 1.8.5; the operator itself has attributes for most."""
    x = fluid.data("x", [None, 4])
    y = fluid.layers.fc(x, 2, param_attr="w")
    op = fluid.default_main_program().global_block().ops[0]
    desc = op.desc
    assert (desc.type(), op.type) == ("mul", "mul")
    assert (desc.input_arg_names(), op.input_arg_names) == (["x", "w"], ["x", "w"])
    assert desc.output_arg_names() == [y.name.replace("tmp_1", "tmp_0")]
    assert (sorted(desc.input_names()), desc.output_names()) == (["X", "Y"], ["Out"])
    assert (desc.input("Y"), desc.attr("x_num_col_dims"), desc.has_attr("nothing")) == (["w"], 1, False)
    assert "y_num_col_dims" in desc.attr_names()
    desc.set_is_target(True)
    assert desc.is_target()
    assert (x.desc.need_check_feed(), y.desc.need_check_feed()) == (True, False)


def test_attributes_hold_float32_values() -> None:
    op = L.scale(fluid.data("x", [None, 4]), 0.1).op
    assert op.attr("scale") == 0.10000000149011612
    op._set_attr("scale", 0.2)
    assert op.attr("scale") == 0.20000000298023224
    with pytest.raises(EnforceNotMet, match="expected FLOAT"):
        op._set_attr("scale", "x")
    with pytest.raises(EnforceNotMet, match="expected INT"):
        L.mean(fluid.data("y", [1])).op._set_attr("op_role", 1.5)


def test_guards_restore_the_previous_programs_even_after_an_error() -> None:
    before = fluid.default_main_program(), fluid.default_startup_program()
    with pytest.raises(KeyError), fluid.program_guard(fluid.Program(), fluid.Program()):
        raise KeyError
    with (
        pytest.raises(KeyError),
        fluid.unique_name.guard("p_"),
        fluid.name_scope("s"),
        fluid.device_guard("cpu"),
    ):
        raise KeyError
    x = L.relu(fluid.data("x", [None, 4]))
    assert x.name == "relu_0.tmp_0"
    op = x.op
    assert (op.attr("op_namescope"), op.attr("op_device")) == ("/", "")
    assert (fluid.default_main_program(), fluid.default_startup_program()) == before


def test_a_program_guard_accepts_only_programs() -> None:
    for programs in ((None,), ("main",), (fluid.Program(), "startup")):
        with pytest.raises(TypeError, match="expected a Program"), fluid.program_guard(*programs):
            pass


def test_control_variables_get_new_names() -> None:
    """They begin as in Fluid 1.8.5, and a random number follows."""
    names = {fluid.framework.generate_control_dev_var_name() for _ in range(9)}
    assert len(names) == 9
    assert all(name.startswith("__control_var@") for name in names)
