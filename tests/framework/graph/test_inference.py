"""Shape inference when an operator is appended."""

from __future__ import annotations

import pytest

import paddlelike as fluid
from paddlelike.core import VarType
from paddlelike.errors import ShapeError

L = fluid.layers


def test_outputs_get_shape_dtype_and_lod_level() -> None:
    x = fluid.data("x", [None, 4], "float64", lod_level=2)
    block = x.block
    out = block.create_var(name="out")
    block.append_op(type="relu", inputs={"X": x}, outputs={"Out": out})
    assert (out.shape, out.dtype, out.lod_level) == ((-1, 4), VarType.FP64, 2)


def test_an_operator_that_drops_the_lod_gives_level_zero() -> None:
    out = L.mean(fluid.data("x", [None, 4], lod_level=1))
    assert (out.shape, out.lod_level) == ((1,), 0)


def test_a_gradient_has_the_shape_of_its_variable() -> None:
    x = fluid.data("x", [None, 4])
    weight = L.create_parameter([4, 3], "float64", name="w")
    (pair,) = fluid.backward.append_backward(L.mean(L.mul(L.cast(x, "float64"), weight)))
    assert (pair[1].name, pair[1].shape, pair[1].dtype) == ("w@GRAD", (4, 3), VarType.FP64)


def test_the_error_of_a_shape_rule_names_the_operator_and_the_shapes() -> None:
    x = fluid.data("x", [None, 4])
    block = x.block
    out = block.create_var(name="out", shape=[9])
    with pytest.raises(ShapeError, match=r"transpose.*\b4\b"):
        block.append_op(type="transpose2", inputs={"X": x}, outputs={"Out": out, "XShape": "y"},
                        attrs={"axis": [0, 1, 5]})  # fmt: skip
    assert out.shape == (9,)
    assert block.ops == []


def test_changing_a_parameter_updates_the_shapes_computed_from_it() -> None:
    image = fluid.data("image", [None, 3, 8, 8])
    out = L.fc(L.conv2d(image, 8, 3, param_attr="w"), 5, num_flatten_dims=2)
    block = image.block
    block.var("w").desc.set_shape([6, 3, 5, 5])
    conv = block.ops[0]
    conv.desc.infer_shape(block.desc)
    assert block.var(conv.output("Output")[0]).shape == (-1, 6, 4, 4)
    assert out.shape == (-1, 8, 5)  # each operator is asked for its own


def test_shapes_that_no_longer_fit_are_an_error_and_change_nothing() -> None:
    image = fluid.data("image", [None, 3, 8, 8])
    out = L.conv2d(image, 8, 3, param_attr="w")
    image.block.var("w").desc.set_shape([8, 4, 3, 3])
    with pytest.raises(ShapeError, match="conv2d"):
        image.block.ops[0].infer_shape(image.block)
    assert out.shape == (-1, 8, 6, 6)
