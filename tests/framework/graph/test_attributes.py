"""Attributes are converted to their declared types."""

from __future__ import annotations

import pytest

import paddlelike as fluid
from paddlelike.errors import EnforceNotMet

L = fluid.layers


def test_attributes_hold_float32_values() -> None:
    op = L.scale(fluid.data("x", [None, 4]), 0.1).op
    assert op.attr("scale") == 0.10000000149011612
    op._set_attr("scale", 0.2)
    assert op.attr("scale") == 0.20000000298023224
    with pytest.raises(EnforceNotMet, match="expected FLOAT"):
        op._set_attr("scale", "x")
    with pytest.raises(EnforceNotMet, match="expected INT"):
        L.mean(fluid.data("y", [1])).op._set_attr("op_role", 1.5)
