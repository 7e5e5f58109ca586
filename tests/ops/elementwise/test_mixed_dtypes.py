"""Operands of two element types are refused when the program runs, as by the kernels of Fluid 1.8.5."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import paddlelike as fluid
from paddlelike.errors import EnforceNotMet
from tests.helpers.fresh import fresh_programs

L = fluid.layers
TYPES = ["float32", "float64", "int32", "int64"]
#: What the real one refused for each of the 12 pairs of different types, one layer each.
LAYERS = [
    *(f"elementwise_{name}" for name in ("add", "div", "floordiv", "min", "mod", "mul", "pow")),
    "equal",
    "less_than",
]


def run(layer: Any, x: str, y: str) -> Any:
    with fresh_programs():
        out = layer(fluid.data("x", [2, 3], x), fluid.data("y", [2, 3], y))
        feed = {"x": np.full((2, 3), 7, x), "y": np.full((2, 3), 2, y)}
        return fluid.Executor().run(feed=feed, fetch_list=[out])[0]


@pytest.mark.parametrize("name", LAYERS)
def test_elementwise_operators_refuse_two_types(name: str) -> None:
    for x, y in [(x, y) for x in TYPES for y in TYPES if x != y]:
        with pytest.raises(EnforceNotMet, match=f"{name}: X and Y hold {x} and {y}"):
            run(getattr(L, name), x, y)


def test_products_of_two_float_types_are_refused() -> None:
    for layer, name in ((lambda x, y: L.mul(x, L.reshape(y, [3, 2])), "mul"), (multiply, "matmul")):
        with pytest.raises(EnforceNotMet, match=f"{name}: X and Y hold float32 and float64"):
            run(layer, "float32", "float64")


def multiply(x: Any, y: Any) -> Any:
    return L.matmul(x, y, transpose_y=True)


def test_sums_of_two_types_are_refused_when_they_are_built() -> None:
    with pytest.raises(ValueError, match=r"its inputs differ in dtype \(x: FP32, y: INT64\)"):
        run(lambda x, y: L.sums([x, y]), "float32", "int64")


def test_elementwise_results_keep_the_type_of_equal_inputs() -> None:
    for dtype in TYPES:
        found = run(L.elementwise_mod, dtype, dtype)
        assert (found.dtype, found[0, 0]) == (np.dtype(dtype), 1)


def test_python_operators_convert_the_right_operand() -> None:
    # As recorded: float32 / int64 is float32, int64 / float32 is int64.
    for x, y in [(x, y) for x in TYPES for y in TYPES]:
        assert run(lambda x, y: x / y, x, y).dtype == np.dtype(x)
