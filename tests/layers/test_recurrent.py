"""Recurrent networks: cells, loops over steps, decoding."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import paddlelike as fluid
from paddlelike.errors import GraphError, OperatorError
from tests.helpers.small_networks import run, x

layers = fluid.layers


def test_cells_use_the_names_of_given_attributes() -> None:
    cell = layers.GRUCell(4, param_attr=fluid.ParamAttr(name="w"), bias_attr=fluid.ParamAttr(name="b"))
    data = x(None, 3)
    cell(data, cell.get_initial_states(data))
    cell(data, cell.get_initial_states(data))  # the same parameters again
    names = sorted(p.name for p in fluid.default_main_program().all_parameters())
    assert names == ["b_candidate", "b_gate", "w_candidate", "w_gate"]


def test_rows_are_repeated_for_each_beam() -> None:
    values = np.arange(6, dtype="float32").reshape(2, 3)
    out = layers.BeamSearchDecoder.tile_beam_merge_with_batch(x(2, 3), 2)
    np.testing.assert_array_equal(run([out], {"x": values})[0], values.repeat(2, 0))


def test_decoding_in_test_mode_gives_the_same_results() -> None:
    state = x(None, 4)
    cell = layers.GRUCell(4)

    def ids(is_test: bool) -> Any:
        def embedded(ids: Any) -> Any:
            return fluid.embedding(ids, size=[5, 3], param_attr=fluid.ParamAttr(name="words"))

        def scored(out: Any) -> Any:
            return layers.fc(out, 5, param_attr=fluid.ParamAttr(name="scores"), bias_attr=False)

        start = layers.fill_constant_batch_size_like(state, [-1], "int64", 0)
        helper = layers.GreedyEmbeddingHelper(embedded, start, end_token=1)
        decoder = layers.BasicDecoder(cell, helper, scored)
        return layers.dynamic_decode(decoder, state, max_step_num=5, is_test=is_test)[0].sample_ids

    one, other = run([ids(False), ids(True)], {"x": np.ones((2, 4), "float32")})
    np.testing.assert_array_equal(one, other)


def test_a_decoder_that_lacks_methods_is_refused() -> None:
    for call in (
        lambda: layers.RNNCell().call(None, None),
        lambda: layers.Decoder().initialize(None),
        lambda: layers.DecodeHelper().initialize(),
    ):
        with pytest.raises(NotImplementedError, match="must define"):
            call()


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
    exe = fluid.Executor()
    (got,) = exe.run(feed={"words": fed}, fetch_list=[rnn()], return_numpy=False)
    assert got.lod() == [[0, 2, 6, 7]]
    assert np.array(got).ravel().tolist() == [0, 1, 2, 5, 9, 14, 6]


def test_dynamic_rnn_over_paragraphs_applies_its_block_to_all_sentences() -> None:
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
    exe = fluid.Executor()
    fetches = [each for pair in results for each in pair]
    nested, d_nested, plain, d_plain = exe.run(feed={"words": fed}, fetch_list=fetches, return_numpy=False)
    assert nested.lod() == fed.lod()
    np.testing.assert_allclose(nested, plain, rtol=1e-6)  # float32: other rows side by side in a sum
    np.testing.assert_allclose(d_nested, d_plain, rtol=1e-5)


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


def test_rnn_stops_each_sequence_at_its_length() -> None:
    values = np.ones((2, 3, 2), "float32")
    lengths = layers.assign(np.array([1, 3], "int32"))
    _, last = layers.rnn(Adder(), x(2, 3, 2), sequence_length=lengths)
    assert run([last], {"x": values})[0].tolist() == [[1, 1], [3, 3]]


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
