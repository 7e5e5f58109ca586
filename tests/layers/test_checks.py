"""Checks of arguments: what passes unchanged, and what errors say."""

from __future__ import annotations

import numpy as np
import pytest

import paddlelike as fluid
from paddlelike.core import VarType
from paddlelike.errors import GraphError
from paddlelike.layers import emit as checks


def test_a_variable_of_the_dtype_is_returned() -> None:
    x = fluid.data("x", [None, 3])
    assert checks.check_variable("fc", "input", x, checks.FLOATS) is x
    assert checks.check_variables("fc", "input", x) == [x]
    assert checks.check_variables("fc", "input", (x, x)) == [x, x]


def test_an_error_names_the_list_item() -> None:
    x = fluid.data("x", [None, 3])
    with pytest.raises(TypeError, match=r"layer 'fc': input\[1\] must be a variable, got 3 \(int\)"):
        checks.check_variables("fc", "input", [x, 3])


def test_another_dtype_is_a_type_error_with_a_hint() -> None:
    x = fluid.data("x", [None, 3], "int64")
    with pytest.raises(TypeError, match=r"dtype INT64 and shape \[-1, 3\]; expected FP32, FP64") as caught:
        checks.check_variable("fc", "input", x, checks.WIDE_FLOATS)
    assert "layers.cast" in str(caught.value)


def test_only_listed_choices_are_accepted() -> None:
    checks.check_choice("pool2d", "pool_type", "max", ("max", "avg"))
    with pytest.raises(GraphError, match="pool_type is 'min', expected one of 'max', 'avg'"):
        checks.check_choice("pool2d", "pool_type", "min", ("max", "avg"))


@pytest.mark.parametrize(
    ("value", "whole"), [(3, True), (np.int64(3), True), (True, False), (3.0, False), ("3", False)]
)
def test_whole_numbers_include_integers_but_not_bools(value: object, whole: bool) -> None:
    assert checks.is_whole(value) is whole


def test_arrays_are_described_by_their_shape() -> None:
    assert checks.describe(np.zeros((2, 3))) == "a numpy array of shape [2, 3]"
    assert checks.describe("x") == "'x' (str)"


def test_element_types_are_accepted_by_name() -> None:
    assert checks.tensor_dtype("cast", "int64") == VarType.INT64
    with pytest.raises(GraphError, match="layer 'cast'"):
        checks.tensor_dtype("cast", "int3")


def test_an_array_of_tensors_is_not_a_tensor() -> None:
    array = fluid.layers.create_array("float32")
    assert checks.check_array("array_read", array) is array
    with pytest.raises(TypeError, match="'x' is a LOD_TENSOR, expected an array"):
        checks.check_array("array_read", fluid.data("x", [1]))
