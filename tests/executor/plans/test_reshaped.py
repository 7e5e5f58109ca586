"""Activations whose values are reshaped in place have the gradients that they have with a reshape aside."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import paddlelike as fluid
from tests.helpers.fresh import fresh_programs

L = fluid.layers


@pytest.mark.parametrize("shape", [[-1, 2, 2], [-1, 1, 4]], ids=str)  # the second could be broadcast
@pytest.mark.parametrize("name", ["relu", "tanh", "leaky_relu", "sigmoid", "exp"])
def test_the_gradient_is_that_of_a_reshape_aside(name: str, shape: list[int]) -> None:
    assert train(name, shape, inplace=True) == train(name, shape, inplace=False)


def test_a_layer_that_read_the_value_before_has_its_gradient() -> None:
    assert train("square", [-1, 2, 2], inplace=True) == train("square", [-1, 2, 2], inplace=False)


def train(name: str, shape: list[int], *, inplace: bool) -> bytes:
    """Return the gradient of a weight before an activation, the bits."""
    with fresh_programs() as (main, startup):
        startup.random_seed = 3
        hidden: Any = L.fc(fluid.data("x", [None, 4]), 4, param_attr="w")
        value = hidden if name == "square" else getattr(L, name)(hidden)
        read = L.square(hidden)
        loss = L.mean(L.tanh(L.reshape(value, shape, inplace=inplace))) + L.mean(read)
        fluid.backward.append_backward(loss)
        exe = fluid.Executor()
        exe.run(startup)
        feed = {"x": np.linspace(-1, 1, 12).reshape(3, 4).astype("float32")}
        (grad,) = exe.run(main, feed=feed, fetch_list=["w@GRAD"])
    return np.asarray(grad).tobytes()
