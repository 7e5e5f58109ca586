"""Tables of selected rows, and the noise of dpsgd."""

from __future__ import annotations

import numpy as np
import pytest

from paddlelike.core.random import Generator
from paddlelike.core.tensor import SelectedRows
from paddlelike.errors import ShapeError
from paddlelike.framework.opdef import registry
from tests.ops.harness.contract import FakeContext, View
from tests.ops.update.one_step import P, one


def test_sgd_moves_the_held_rows_of_a_table_of_selected_rows() -> None:
    table = SelectedRows([5, 2, 0], 6, np.ones((3, 2), np.float32))
    grad = SelectedRows([2, 5, 2], 6, np.array([[1, 0], [0, 1], [1, 1]], np.float32))
    out = registry.find("sgd").forward(table, one(0.5), grad)
    assert out is table
    assert out.array.tolist() == [[1, 0.5], [0, 0.5], [1, 1]]
    with pytest.raises(ShapeError, match=r"rows among them|selected rows without it"):
        registry.find("sgd").forward(table, one(0.5), SelectedRows([1], 6, np.ones((1, 2), np.float32)))


def test_noise_without_a_seed_comes_from_the_generator_of_the_scope() -> None:
    op = registry.find("dpsgd")
    ctx = FakeContext(View("dpsgd", {}, {}, {}), {}, {})
    steps = []
    for state in (1, 2, 1):
        ctx.scope.generator.state = Generator(state).state
        param = P.copy()
        steps.append(op.forward(ctx, param, P, one(0.1), **op.make_forward_keywords({})))
    np.testing.assert_array_equal(steps[0], steps[2])
    assert (steps[0] != steps[1]).all()
