"""Variables and parameters: what they may be, and how they print and compare."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import paddlelike as fluid
from paddlelike.errors import GraphError


@pytest.fixture
def block() -> Any:
    return fluid.default_main_program().global_block()


def test_a_parameter_stays_persistable(block: Any) -> None:
    weight = block.create_parameter(name="w", shape=[2], dtype="float32")
    with pytest.raises(GraphError, match="must stay persistable"):
        weight.persistable = False
    with pytest.raises(GraphError, match="must stay persistable"):
        weight.desc.set_persistable(False)
    assert weight.persistable is True


@pytest.mark.parametrize("shape", [[], [2, -1], [2, 0], None])
def test_a_parameter_has_positive_dims(block: Any, shape: Any) -> None:
    with pytest.raises(GraphError, match="cannot have shape"):
        block.create_parameter(name="w", shape=shape, dtype="float32")
    assert not block.has_var("w")


def test_containers_compare_variables_by_identity() -> None:
    x, y = fluid.data("x", [1]), fluid.data("y", [1])
    assert len({x, y, x}) == 2
    assert {x: 1}[x] == 1


def test_a_variable_prints_in_one_line(block: Any) -> None:
    weight = block.create_parameter(name="w", shape=[2, 3], dtype="float32")
    assert repr(weight) == "<parameter w: fp32[2, 3]>"
    assert repr(fluid.data("x", [None, 4], "int64")) == "<temporary x: int64[-1, 4]>"


def test_arithmetic_of_a_numpy_object_array_of_variables_builds_operators() -> None:
    n = fluid.data("n", [None], "int64")
    out = (np.array(n) - 3 + 2 * 1) // 2 + 1
    types = [op.type for op in fluid.default_main_program().global_block().ops]
    # what 1.8.5 builds
    assert types == ["scale", "scale", "fill_constant", "elementwise_floordiv", "scale"]
    assert isinstance(out, fluid.Variable)
    assert (np.array([n]).shape, np.shape(n)) == ((1,), (-1,))
    assert isinstance(np.sum([n, n]), fluid.Variable)


@pytest.mark.parametrize("function", [np.sum, np.mean, lambda x: np.array(x, "float32")])
def test_numpy_does_not_compute_with_a_variable(function: Any) -> None:
    with pytest.raises(TypeError, match="numpy cannot compute with variable 'x'"):
        function(fluid.data("x", [3]))
