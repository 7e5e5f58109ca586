"""StaticRNN: inputs of different lengths, and misuse."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import paddlelike as fluid
from paddlelike.errors import GraphError, OperatorError
from tests.helpers.small_networks import run, x

layers = fluid.layers


def test_misuse_of_static_rnn_is_refused() -> None:
    rnn = layers.StaticRNN()
    with pytest.raises(GraphError, match="inside"):
        rnn.step_input(x(3, 2, 4))
    with pytest.raises(GraphError, match="after"):
        rnn()
    with pytest.raises(GraphError, match="never updated"):
        _remembering(rnn)


def _remembering(rnn: Any) -> None:
    with rnn.step():
        rnn.memory(shape=[-1, 4], batch_ref=rnn.step_input(fluid.data("y", [3, 2, 4])))


def test_inputs_of_two_lengths_are_refused() -> None:
    rnn = layers.StaticRNN()
    three, five = (fluid.data(f"x{steps}", [steps, 2, 4]) for steps in (3, 5))
    with rnn.step():
        rnn.step_output(rnn.step_input(three))
        with pytest.raises(GraphError, match="5 steps"):
            rnn.step_input(five)


def test_inputs_whose_fed_lengths_differ_are_refused() -> None:
    rnn = layers.StaticRNN()
    one, two = (fluid.data(name, [None, 2], "float32") for name in "ab")
    with rnn.step():
        rnn.step_output(rnn.step_input(one) + rnn.step_input(two))
    with pytest.raises(OperatorError, match=r"one number of steps .*'a': 3, 'b': 2"):
        run([rnn()], {"a": np.zeros((3, 2), "float32"), "b": np.zeros((2, 2), "float32")})
