"""Python's operators on variables: the operators they append, and what these compute."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import paddlelike as fluid
from paddlelike.core import VarType
from paddlelike.errors import GraphError

A = np.array([[1.0, -2.0], [3.0, 4.0]], "float32")
B = np.array([[2.0, 2.0], [-1.0, 0.5]], "float32")
BINARY: dict[str, Callable[[Any, Any], Any]] = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "truediv": operator.truediv,
    "lt": operator.lt,
    "le": operator.le,
    "gt": operator.gt,
    "ge": operator.ge,
    "eq": operator.eq,
    "ne": operator.ne,
}


def run(out: Any, **feed: Any) -> Any:
    return fluid.Executor().run(feed=feed, fetch_list=[out])[0]


@pytest.mark.parametrize("name", BINARY)
def test_two_variables_give_what_numpy_gives(name: str) -> None:
    x, y = fluid.data("x", [None, 2]), fluid.data("y", [None, 2])
    np.testing.assert_array_equal(run(BINARY[name](x, y), x=A, y=B), BINARY[name](A, B))


@pytest.mark.parametrize("name", BINARY)
@pytest.mark.parametrize("side", ["right", "left"])
def test_a_number_on_either_side_gives_what_numpy_gives(name: str, side: str) -> None:
    x, function = fluid.data("x", [None, 2]), BINARY[name]
    if side == "right":
        out, expected = function(x, 4.0), function(A, np.float32(4.0))
    else:
        out, expected = function(4.0, x), function(np.float32(4.0), A)
    np.testing.assert_array_equal(run(out, x=A), expected)


@pytest.mark.parametrize(
    ("make", "attrs"),
    [
        (lambda x: x + 3, (1.0, 3.0)),
        (lambda x: 3 + x, (1.0, 3.0)),
        (lambda x: x - 3, (1.0, -3.0)),
        (lambda x: 3 - x, (-1.0, 3.0)),
        (lambda x: x * 3, (3.0, 0.0)),
        (lambda x: 3 * x, (3.0, 0.0)),
        (lambda x: x / 4, (0.25, 0.0)),
        (lambda x: -x, (-1.0, 0.0)),
    ],
    ids=["x+3", "3+x", "x-3", "3-x", "x*3", "3*x", "x/4", "-x"],
)
def test_a_linear_formula_becomes_one_scale_operator(make: Any, attrs: tuple[float, float]) -> None:
    out = make(fluid.data("x", [None, 2]))
    (op,) = out.block.ops
    assert (op.type, op.attr("scale"), op.attr("bias")) == ("scale", *attrs)


def test_formulas_that_are_not_linear_use_a_constant_tensor() -> None:
    x = fluid.data("x", [None, 2])
    np.testing.assert_allclose(run(x**2.0, x=A), A**2, rtol=1e-6)
    np.testing.assert_allclose(run(2.0**x, x=A), 2**A, rtol=1e-6)
    np.testing.assert_allclose(run(1.0 / x, x=A), 1 / A, rtol=1e-6)
    kinds = [op.type for op in x.block.ops]
    assert kinds == [
        "fill_constant", "elementwise_pow",
        "fill_constant_batch_size_like", "elementwise_pow",
        "fill_constant_batch_size_like", "elementwise_div",
    ]  # fmt: skip


def test_integers_divide_and_take_remainders() -> None:
    x, y = fluid.data("x", [None], "int64"), fluid.data("y", [None], "int64")
    feed = {"x": np.array([7, 9, 4]), "y": np.array([2, 4, 4])}
    assert run(x // y, **feed).tolist() == [3, 2, 1]
    assert run(x % y, **feed).tolist() == [1, 1, 0]


def test_the_other_operand_is_converted_to_the_type_of_the_left_one() -> None:
    x, y = fluid.data("x", [None]), fluid.data("y", [None], "int64")
    out = x + y
    assert out.dtype == VarType.FP32
    assert run(out, x=np.array([0.5], "float32"), y=np.array([2])).tolist() == [2.5]


def test_a_conversion_is_a_cast() -> None:
    out = fluid.data("x", [None]).astype("int64")
    assert (out.op.type, out.dtype) == ("cast", VarType.INT64)
    assert run(out, x=np.array([2.7], "float32")).tolist() == [2]


def test_a_comparison_with_a_constant_is_bool_without_gradient() -> None:
    x = fluid.data("x", [None])
    out = x < 2.0
    assert out.dtype == VarType.BOOL
    (constant,) = (op for op in x.block.ops if op.type == "fill_constant")
    assert x.block.var(constant.output("Out")[0]).stop_gradient


@pytest.mark.parametrize("other", ["text", None, [1.0], np.ones(2)], ids=["text", "none", "list", "array"])
def test_unsupported_operands_are_refused(other: Any) -> None:
    x = fluid.data("x", [None])
    with pytest.raises(GraphError, match="cannot combine variable 'x' with a"):
        _ = x + other
    assert x.block.ops == []


def test_a_fraction_combined_with_integers_is_refused() -> None:
    with pytest.raises(GraphError, match=r"holds INT64, but 1\.5 is not an integer"):
        _ = fluid.data("x", [None], "int64") + 1.5


def test_len_iteration_and_bool_of_a_variable_are_refused() -> None:
    x = fluid.data("x", [None])
    with pytest.raises(TypeError, match="no length"):
        len(x)
    with pytest.raises(TypeError, match="cannot be iterated"):
        iter(x)
    with pytest.raises(TypeError, match=r"'x' has no truth value.*\n.*layers\.cond"):
        bool(x)
    with pytest.raises(TypeError, match="no truth value"):
        _ = 1 if x > 0 else 2
