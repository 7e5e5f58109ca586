"""Operators that make tensors: what they refuse, and what the contract cannot see."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from paddlelike.core import SelectedRows, VarType
from paddlelike.errors import ShapeError
from paddlelike.framework.opdef import Spec, registry
from tests.ops.harness.contract import View
from tests.ops.random.test_tensors import compute, infer

REAL = VarType.FP32


def test_fake_init_gives_a_height_but_no_rows() -> None:
    found = compute("fake_init", {}, {"shape": [3, 2]})
    assert isinstance(found, SelectedRows)
    assert (found.height(), found.rows(), found.array) == (3, [], None)


@pytest.mark.parametrize(
    ("specs", "attrs", "shape"),
    [
        ([None, None, []], {"shape": []}, ()),
        ([None, None, [Spec((1,), REAL)] * 2], {"shape": [-1, 3]}, (-1, 3)),
        ([None, Spec((2,), VarType.INT64), []], {"shape": []}, (-1, -1)),
        ([None, Spec((3,), VarType.INT64), []], {"shape": [7, 7]}, (7, 7)),
    ],
)
def test_fill_constant_infers_the_same_shape_as_fluid(
    specs: list[Any], attrs: dict[str, Any], shape: tuple[int, ...]
) -> None:
    assert infer("fill_constant", specs, attrs).shape == shape


def test_the_gradient_of_increment_subtracts_its_step() -> None:
    op = registry.find("increment")
    (back,) = op.make_grad(View("increment", {"X": ["a"]}, {"Out": ["b"]}, {"step": 2.0}))
    assert back == ("increment", {"X": ["b"]}, {"Out": ["a"]}, {"step": -2.0}, True)


@pytest.mark.parametrize(
    ("type", "specs", "attrs", "message"),
    [
        (
            "fill_constant",
            [None, None, []],
            {"shape": [-1, 2]},
            r"shape is \[-1, 2\], expected dims",
        ),
        ("increment", [Spec((2,), REAL)], {}, r"X has shape \(2,\), expected one element"),
        ("eye", [], {"num_rows": -3}, "-3 rows and -1 columns"),
        ("diag", [Spec((2, 2), REAL)], {}, r"Diagonal has shape \(2, 2\), expected one dim"),
        ("diag_embed", [Spec((2, 2), REAL)], {"dim1": 1, "dim2": 1}, "dim1 and dim2 are both 1"),
        ("fill", [], {"value": [1.0], "shape": [2]}, "value holds 1 numbers, shape .2. needs 2"),
        ("assign_value", [], {"shape": [2], "dtype": 6}, "dtype is VarType.FP64, expected one of"),
        (
            "linspace",
            [Spec((2,), REAL), Spec((1,), REAL), Spec((1,), VarType.INT32)],
            {},
            r"Start has shape \(2,\)",
        ),
    ],
)
def test_programs_that_cannot_be_built_are_refused(
    type: str, specs: list[Any], attrs: dict[str, Any], message: str
) -> None:
    with pytest.raises(ShapeError, match=message):
        infer(type, specs, attrs)


def one(number: float) -> Any:
    return np.array([number], np.float32)


@pytest.mark.parametrize(
    ("type", "inputs", "attrs", "message"),
    [
        ("range", {"Start": one(0), "End": one(-1), "Step": one(1)}, {}, "steps of 1.0 from .* never reach"),
        ("range", {"Start": one(0), "End": one(1), "Step": one(0)}, {}, "steps of 0.0 from .* never reach"),
        ("linspace", {"Start": one(0), "Stop": one(1), "Num": one(0)}, {}, "Num is 0"),
        ("fill_constant", {}, {"shape": [1], "str_value": "abc"}, "str_value is 'abc'"),
        ("fill_constant", {}, {"shape": [1], "value": 1e30, "dtype": 3}, "int64 cannot hold"),
        ("fill_any_like", {"X": one(0)}, {"value": np.inf, "dtype": 2}, "int32 cannot hold"),
        ("fill_constant", {"ValueTensor": np.zeros(2)}, {"shape": [1]}, r"has shape \(2,\)"),
        (
            "assign_value",
            {},
            {"shape": [2, 2], "dtype": 5, "fp32_values": [1.0]},
            r"fp32_values holds 1 numbers, shape \[2, 2\] needs 4",
        ),
        (
            "assign_value",
            {},
            {"shape": [2], "dtype": 3, "int32_values": [1, 2]},
            "int64_values holds 0 numbers",
        ),
    ],
)
def test_values_that_cannot_be_computed_are_refused(
    type: str, inputs: dict[str, Any], attrs: dict[str, Any], message: str
) -> None:
    with pytest.raises(ShapeError, match=message):
        compute(type, inputs, attrs)
