"""Tensors of fewer dims and their gradients; dims that are known before a run."""

from __future__ import annotations

import numpy as np
import pytest

import paddlelike as fluid
from tests.helpers.small_networks import run

layers = fluid.layers


@pytest.mark.parametrize("axis", [-1, 0])
def test_a_vector_meets_one_number(axis: int) -> None:
    x, y = fluid.data("x", [4]), fluid.data("y", [1])
    x.stop_gradient = y.stop_gradient = False
    total = layers.reduce_sum(layers.elementwise_div(x, y, axis=axis))
    found = run(fluid.gradients(total, [x, y]), x=np.arange(4, dtype="f"), y=np.array([2], "f"))
    np.testing.assert_array_equal(found[0], np.full(4, 0.5))
    np.testing.assert_array_equal(found[1], [-6 / 4])


def test_the_lengths_of_joined_sequences_are_added_up() -> None:
    """Before the run as well, where one of -1 counts as -1: as in Fluid 1.8.5."""
    rows = iter(range(99))

    def sequence(length: int) -> fluid.framework.Variable:
        return fluid.data(f"x{next(rows)}", [length, 2], lod_level=1)

    for lengths, first in {(3, 4): 7, (-1, 4): 3, (-1, -1): -1, (4, -1, 9): 12}.items():
        assert layers.sequence_concat(list(map(sequence, lengths))).shape == (first, 2)
