"""rnn: a cell of a script, forwards and backwards, and lengths."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import paddlelike as fluid
from tests.helpers.small_networks import run, x

layers = fluid.layers


class Adder(layers.RNNCell):  # type: ignore[misc]
    """Adds its inputs up."""

    def call(self, inputs: Any, states: Any) -> Any:
        total = inputs + states
        return total, total

    @property
    def state_shape(self) -> list[int]:
        return [2]


@pytest.mark.parametrize("reverse", [False, True], ids=["forward", "reverse"])
@pytest.mark.parametrize("time_major", [False, True], ids=["batch-first", "time-first"])
def test_rnn_runs_a_cell_that_the_script_defines(reverse: bool, time_major: bool) -> None:
    values = np.arange(12, dtype="float32").reshape(2, 3, 2)
    fed = values.swapaxes(0, 1) if time_major else values
    outs, last = layers.rnn(
        Adder(), fluid.data("x", list(fed.shape)), time_major=time_major, is_reverse=reverse
    )
    got, state = run([outs, last], {"x": np.ascontiguousarray(fed)})
    sums = values[:, ::-1].cumsum(1)[:, ::-1] if reverse else values.cumsum(1)
    np.testing.assert_array_equal(got.swapaxes(0, 1) if time_major else got, sums)
    np.testing.assert_array_equal(state, values.sum(1))


def test_sequences_stop_at_their_length() -> None:
    values = np.ones((2, 3, 2), "float32")
    lengths = layers.assign(np.array([1, 3], "int32"))
    _, last = layers.rnn(Adder(), x(2, 3, 2), sequence_length=lengths)
    assert run([last], {"x": values})[0].tolist() == [[1, 1], [3, 3]]
