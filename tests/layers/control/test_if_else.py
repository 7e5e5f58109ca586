"""IfElse: rows in order, and misuse."""

from __future__ import annotations

import numpy as np
import pytest

import paddlelike as fluid
from paddlelike.errors import GraphError
from tests.helpers.small_networks import run, x

layers = fluid.layers


def test_if_else_needs_outputs_of_both_blocks() -> None:
    rows = x(None, 1)
    branches = layers.IfElse(rows > layers.zeros_like(rows))
    with pytest.raises(GraphError, match="inside"):
        branches.input(rows)
    with pytest.raises(GraphError, match="no output"), branches.true_block():
        pass
    with pytest.raises(GraphError, match="build its true_block"):
        branches()


@pytest.mark.parametrize("values", [[1, -2, 3], [1, 2], [-1]], ids=str)
def test_if_else_puts_rows_back_in_order(values: list[int]) -> None:
    rows = x(None, 1)
    zero = layers.fill_constant_batch_size_like(rows, [-1, 1], "float32", 0.0)
    branches = layers.IfElse(rows > zero)
    with branches.true_block():
        branches.output(branches.input(rows) * 10.0)
    with branches.false_block():
        branches.output(branches.input(rows) * -1.0)
    (got,) = run(branches(), {"x": np.array(values, "float32")[:, None]})
    assert got.ravel().tolist() == [10 * v if v > 0 else -v for v in values]
