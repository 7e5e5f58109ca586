"""DynamicRNN: sums of sequences, and misuse."""

from __future__ import annotations

import numpy as np
import pytest

import paddlelike as fluid
from paddlelike.errors import GraphError
from tests.helpers.small_networks import x

layers = fluid.layers


def test_dynamic_rnn_misuse() -> None:
    rnn = layers.DynamicRNN()
    with pytest.raises(GraphError, match="inside"):
        rnn.step_input(x(None, 2))
    with pytest.raises(GraphError, match="after"):
        rnn()
    with pytest.raises(GraphError, match="call step_input first"), rnn.block():
        rnn.memory(shape=[2])
    with pytest.raises(GraphError, match="no step input"), layers.DynamicRNN().block():
        pass


def test_dynamic_rnn_sums_sequences() -> None:
    words = fluid.data("words", [None, 1], "float32", lod_level=1)
    rnn = layers.DynamicRNN()
    with rnn.block():
        word = rnn.step_input(words)
        total = rnn.memory(shape=[1])
        rnn.update_memory(total, total + word)
        rnn.output(total + word)
    fed = fluid.create_lod_tensor(np.arange(7, dtype="float32")[:, None], [[2, 4, 1]], fluid.CPUPlace())
    exe = fluid.Executor(fluid.CPUPlace())
    (got,) = exe.run(feed={"words": fed}, fetch_list=[rnn()], return_numpy=False)
    assert got.lod() == [[0, 2, 6, 7]]
    assert np.array(got).ravel().tolist() == [0, 1, 2, 5, 9, 14, 6]
