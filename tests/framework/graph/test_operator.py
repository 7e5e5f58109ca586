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
