"""DynamicRNN: sums of sequences, and misuse."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import paddlelike as fluid
from paddlelike.errors import GraphError
from tests.helpers.small_networks import x

layers = fluid.layers


def test_misuse_of_dynamic_rnn_is_refused() -> None:
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


def test_dynamic_rnn_over_paragraphs_does_what_its_block_does_to_all_sentences() -> None:
    """Values, LoD and gradients, of two paragraphs with a sentence more in one; and a loop over the words."""
    rows = np.random.RandomState(1).uniform(-1, 1, (11, 3)).astype("float32")
    fed = fluid.create_lod_tensor(rows, [[2, 3], [2, 1, 3, 4, 1]], fluid.CPUPlace())
    words = fluid.data("words", [None, 3], "float32", lod_level=2)
    words.stop_gradient = False

    def work(sentences: Any) -> Any:
        inner = layers.DynamicRNN()
        with inner.block():
            word, last = inner.step_input(sentences), inner.memory(shape=[3])
            new = layers.tanh(word + last)
            inner.update_memory(last, new)
            inner.output(new)
        share = layers.sequence_softmax(layers.reduce_sum(inner(), 1, keep_dim=True))
        return layers.elementwise_mul(inner(), share, axis=0)

    rnn = layers.DynamicRNN()
    with rnn.block():
        rnn.output(work(rnn.step_input(words)))
    results = []
    for out in (rnn(), work(layers.lod_reset(words, target_lod=[0, 2, 3, 6, 10, 11]))):
        weights = layers.assign(np.arange(33, dtype="float32").reshape(11, 3))
        (gradient,) = fluid.gradients(layers.reduce_sum(out * weights), words)
        results.append((out, gradient))
    assert [out.lod_level for out, _ in results] == [2, 1]
    exe = fluid.Executor(fluid.CPUPlace())
    fetches = [each for pair in results for each in pair]
    nested, d_nested, plain, d_plain = exe.run(feed={"words": fed}, fetch_list=fetches, return_numpy=False)
    assert nested.lod() == fed.lod()
    np.testing.assert_allclose(nested, plain, rtol=1e-6)  # float32: other rows side by side in a sum
    np.testing.assert_allclose(d_nested, d_plain, rtol=1e-5)
