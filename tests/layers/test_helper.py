"""LayerHelper: names, parameters shared by name, biases, activations."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import pytest
from hypothesis import given, strategies as st

import paddlelike as fluid
from paddlelike.core import VarType
from paddlelike.errors import GraphError
from paddlelike.layer_helper import LayerHelper  # Fluid's name of the module
from paddlelike.layers import utils
from paddlelike.layers.emit import emit, emit_all
from paddlelike.layers.utils import flatten, have_same_structure, map_structure, pack_sequence_as


def test_unnamed_layers_are_numbered_and_named_ones_are_not() -> None:
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


def test_inputs_need_one_dtype_and_as_many_attributes() -> None:
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
        (
            lambda: fluid.layers.fc(fluid.data("x", [None, 3]), "10"),
            r"'fc': .*\[3, '10'\]: '10' is not a whole number",
        ),
        (
            lambda: fluid.layers.embedding(fluid.data("x", [None, 1], "int64"), ["10", 3]),
            r"'embedding': .*\['10', 3\]",
        ),
        (
            lambda: fluid.layers.conv2d(fluid.data("x", [None, 3, 8, 8]), "4", 3),
            "num_filters is '4' ",
        ),
        (lambda: fluid.layers.fc(fluid.data("x", [None, 3]), None), r"None is not a whole number"),
    ],
    ids=["fc", "embedding", "conv2d", "none"],
)
def test_a_size_that_is_not_a_number_raises_type_error(build: Callable[[], Any], words: str) -> None:
    with pytest.raises(TypeError, match=words):
        build()


def test_the_output_has_the_dtype_of_the_first_given_input() -> None:
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


class Pair(NamedTuple):
    """A structure with names."""

    left: Any
    right: Any


NESTED = st.recursive(
    st.integers(),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.tuples(inner, inner)
        | st.builds(Pair, inner, inner)
        | st.dictionaries(st.text(max_size=2), inner, max_size=3)
    ),
    max_leaves=10,
)


@given(NESTED)
def test_packing_the_leaves_gives_the_structure_again(nested: Any) -> None:
    packed = pack_sequence_as(nested, flatten(nested))
    assert packed == nested
    assert have_same_structure(packed, nested)


@given(NESTED)
def test_a_function_is_applied_to_every_leaf_in_order(nested: Any) -> None:
    assert flatten(map_structure(lambda leaf: leaf + 1, nested)) == [leaf + 1 for leaf in flatten(nested)]


def test_structures_are_mapped_together() -> None:
    left, right = Pair([1], {"b": 2, "a": 3}), Pair([10], {"a": 30, "b": 20})
    total = map_structure(lambda a, b: a + b, left, right)
    assert total == Pair([11], {"a": 33, "b": 22})
    assert isinstance(total, Pair)
    assert flatten(left) == [1, 3, 2]  # a dict by key


@pytest.mark.parametrize(
    ("first", "second", "same"),
    [
        ([1, (2, 3)], ([4], 5), False),
        ([1, (2, 3)], (4, [5, 6]), True),
        ({"a": 1}, {"a": [1]}, False),
        ({"a": 1}, {"b": 1}, False),
        ([], {}, False),
        (1, None, True),
    ],
)
def test_structures_are_compared_by_the_positions_of_their_leaves(
    first: Any, second: Any, same: bool
) -> None:
    assert have_same_structure(first, second) is same


def test_one_number_is_accepted_for_a_list_of_numbers() -> None:
    assert utils.convert_to_list(3, 2, "stride") == [3, 3]
    assert utils.convert_to_list((1, 2), 2, "stride") == [1, 2]
    for value, said in (([1], "length 2"), (["a", "b"], "2 of them"), (None, "2 of them")):
        with pytest.raises(ValueError, match=f"stride must .*{said}"):
            utils.convert_to_list(value, 2, "stride")


def test_structures_that_differ_are_an_error() -> None:
    utils.assert_same_structure([1, (2, 3)], [4, (5, 6)])
    utils.assert_same_structure([1, (2, 3)], [4, [5, 6]], check_types=False)
    with pytest.raises(TypeError, match="expected two tuple"):
        utils.assert_same_structure([1, (2, 3)], [4, [5, 6]])
    with pytest.raises(ValueError, match="same structure"):
        utils.assert_same_structure([1, 2], [4])
    assert utils.is_sequence((1, 2))
    assert not utils.is_sequence("text")


def test_paddings_before_and_after_are_compared() -> None:
    pads = [1, 2], [1, 1, 2, 2], [1, 2, 2, 2]
    assert [utils._is_symmetric_padding(pad, 2) for pad in pads] == [True, True, False]


def test_variables_inside_lists_are_found() -> None:
    x = fluid.data("x", [1])
    assert (utils._contain_var([1, x]), utils._contain_var((1, None))) == (True, False)
