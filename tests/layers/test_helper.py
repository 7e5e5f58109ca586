"""LayerHelper: names, parameters shared by name, biases, activations."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import paddlelike as fluid
from paddlelike.errors import GraphError
from paddlelike.layer_helper import LayerHelper  # Fluid's name of the module


def test_calls_are_counted_unless_they_are_named() -> None:
    assert [LayerHelper("fc").name, LayerHelper("fc").name, LayerHelper("fc", name="last").name] == [
        "fc_0", "fc_1", "last",
    ]  # fmt: skip


def test_a_layer_of_a_script_has_parameters_bias_and_activation() -> None:
    x = fluid.data("x", [None, 3])
    helper = LayerHelper("mine", input=x, act="relu", param_attr=None, bias_attr=None)
    weight = helper.create_parameter(helper.param_attr, [3, 2], helper.input_dtype())
    out = helper.create_variable_for_type_inference("float32")
    helper.append_op(type="mul", inputs={"X": helper.input(), "Y": weight}, outputs={"Out": out})
    result = helper.append_activation(helper.append_bias_op(out))
    ops = fluid.default_main_program().global_block().ops
    assert [op.type for op in ops] == ["mul", "elementwise_add", "relu"]
    assert [p.name for p in fluid.default_main_program().all_parameters()] == ["mine_0.w_0", "mine_0.b_0"]
    assert result.shape == (-1, 2)
    assert len(fluid.default_startup_program().global_block().ops) == 2


def test_without_bias_and_activation_the_variable_is_returned() -> None:
    x = fluid.data("x", [None, 3])
    helper = LayerHelper("mine", bias_attr=False)
    assert helper.append_activation(helper.append_bias_op(x)) is x


def test_a_parameter_is_shared_by_name_if_its_shape_is_the_same() -> None:
    helper = LayerHelper("mine")
    first = helper.create_parameter(fluid.ParamAttr(name="w"), [3, 2], "float32")
    again = helper.create_parameter(fluid.ParamAttr(name="w"), [3, 2], "float32")
    assert (again.name, again.shape) == (first.name, first.shape)
    assert [p.name for p in fluid.default_main_program().all_parameters()] == ["w"]
    with pytest.raises(GraphError, match="'w'"):
        helper.create_parameter(fluid.ParamAttr(name="w"), [2, 3], "float32")
    assert helper.get_parameter("w").name == "w"
    fluid.data("x", [1])
    with pytest.raises(GraphError, match="'x' is not a parameter"):
        helper.get_parameter("x")


def test_inputs_share_a_dtype_and_their_attributes_are_as_many() -> None:
    x, ids = fluid.data("x", [None, 3]), fluid.data("ids", [None, 1], "int64")
    with pytest.raises(GraphError, match="its inputs differ in dtype"):
        LayerHelper("mine", input=[x, ids]).input_dtype()
    with pytest.raises(GraphError, match="takes one input, got 2"):
        LayerHelper("mine", input=[x, x]).input()
    with pytest.raises(GraphError, match="has 3 inputs and 2 param_attr"):
        LayerHelper("mine", param_attr=["a", "b"]).multiple_param_attr(3)


@pytest.mark.parametrize(
    ("build", "words"),
    [
        (lambda: fluid.layers.fc(fluid.data("x", [None, 3]), "10"), r"'fc': .*\[3, '10'\]: '10' is a str"),
        (
            lambda: fluid.layers.embedding(fluid.data("x", [None, 1], "int64"), ["10", 3]),
            r"'embedding': .*\['10', 3\]",
        ),
        (
            lambda: fluid.layers.conv2d(fluid.data("x", [None, 3, 8, 8]), "4", 3),
            "num_filters is '4' ",
        ),
        (lambda: fluid.layers.fc(fluid.data("x", [None, 3]), None), r"None is a NoneType, expected an int"),
    ],
    ids=["fc", "embedding", "conv2d", "none"],
)
def test_a_size_that_is_no_number_is_a_type_error(build: Callable[[], Any], words: str) -> None:
    with pytest.raises(TypeError, match=words):
        build()
