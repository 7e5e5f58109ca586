"""Layers of one operator: names, dtypes, outputs."""

from __future__ import annotations

import paddlelike as fluid
from paddlelike.core.dtypes import VarType
from paddlelike.layers.emit import emit, emit_all


def test_the_output_has_the_dtype_of_the_first_input_that_is_given() -> None:
    x = fluid.data("x", [None, 3], "float64")
    out = emit("clip", {"Min": None, "X": x}, {"min": 0.0, "max": 1.0}, layer="limit")
    op = fluid.default_main_program().global_block().ops[-1]
    assert (out.dtype, out.name) == (VarType.FP64, "limit_0.tmp_0")
    assert (op.input("X"), op.input("Min")) == (["x"], [])  # absent inputs are left out
    assert op.attr("max") == 1.0


def test_the_output_may_be_given_and_activated() -> None:
    x = fluid.data("x", [None, 3])
    target = fluid.layers.create_tensor("float32")
    assert emit("relu", {"X": x}, out=target) is target
    assert emit("scale", {"X": x}, {"scale": 2.0}, act="tanh").op.type == "tanh"


def test_a_constant_stops_gradients() -> None:
    assert emit("shape", {"Input": fluid.data("x", [None, 3])}, dtype="int32", constant=True).stop_gradient


def test_several_outputs_come_in_the_order_of_their_slots() -> None:
    x = fluid.data("x", [None, 3])
    values, indices = emit_all("top_k", {"X": x}, {"Out": "float32", "Indices": "int64"}, {"k": 1})
    op = fluid.default_main_program().global_block().ops[-1]
    assert (op.output("Out"), op.output("Indices")) == ([values.name], [indices.name])
    assert (values.dtype, indices.dtype) == (VarType.FP32, VarType.INT64)
