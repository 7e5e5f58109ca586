"""Operators: the line that created them, slots, attributes."""

from __future__ import annotations

import pytest

import paddlelike as fluid
from paddlelike.errors import EnforceNotMet

L = fluid.layers


def test_an_operator_knows_the_line_that_created_it() -> None:
    x = L.relu(fluid.data("x", [None, 4]))
    assert x.op.line.startswith(f"{__file__}:")
    assert x.op.line.endswith("in test_an_operator_knows_the_line_that_created_it")


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


def test_a_description_is_asked_by_calls() -> None:
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
