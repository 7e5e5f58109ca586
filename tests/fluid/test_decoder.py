"""``fluid.contrib.decoder`` beside Fluid 1.8.5: losses of training, and the sentences of a beam search."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import paddlelike as fluid
from paddlelike import layers
from paddlelike.fluid.contrib.decoder import BeamSearchDecoder, InitState, StateCell, TrainingDecoder

WORDS, WIDTH, HIDDEN, BEAM = 12, 8, 6, 2
LODS = [[0, 3, 5]]
FIRST = [[0, 1, 2], [0, 1, 2]]


def encode() -> Any:
    source = layers.data("source", [1], dtype="int64", lod_level=1)
    words = layers.embedding(source, [WORDS, WIDTH], param_attr=fluid.ParamAttr(name="vemb"), is_sparse=True)
    hidden, _ = layers.dynamic_lstm(layers.fc(words, HIDDEN * 4, act="tanh"), size=HIDDEN * 4)
    return layers.sequence_last_step(hidden)


def make_cell() -> StateCell:
    start = InitState(init=encode(), need_reorder=True)
    cell = StateCell(inputs={"x": None}, states={"h": start}, out_state="h")

    @cell.state_updater
    def step(cell: StateCell) -> None:
        both = [cell.get_state("h"), cell.get_input("x")]
        cell.set_state("h", layers.fc(both, HIDDEN, act="tanh"))

    return cell


def train() -> Any:
    cell = make_cell()
    target = layers.data("target", [1], dtype="int64", lod_level=1)
    words = layers.embedding(target, [WORDS, WIDTH], param_attr=fluid.ParamAttr(name="vemb"), is_sparse=True)
    decoder = TrainingDecoder(cell)
    with decoder.block():
        decoder.state_cell.compute_state(inputs={"x": decoder.step_input(words)})
        score = layers.fc(decoder.state_cell.get_state("h"), WORDS, act="softmax")
        decoder.state_cell.update_states()
        decoder.output(score)
    following = layers.data("following", [1], dtype="int64", lod_level=1)
    loss = layers.mean(layers.cross_entropy(decoder(), following))
    fluid.optimizer.Adagrad(0.1).minimize(loss)
    return [loss]


def search() -> Any:
    cell = make_cell()
    ids = layers.data("ids", [1], dtype="int64", lod_level=2)
    scores = layers.data("scores", [1], dtype="float32", lod_level=2)
    decoder = BeamSearchDecoder(cell, ids, scores, WORDS, WIDTH, topk_size=5, max_len=6, beam_size=BEAM)
    decoder.decode()
    return list(decoder())


def run(build: Callable[[], Any], times: int, **feed: Any) -> list[Any]:
    """Return what a network gives in each run, from parameters that their names decide."""
    main, startup = fluid.Program(), fluid.Program()
    with fluid.program_guard(main, startup), fluid.unique_name.guard():
        fetched = build()
    exe = fluid.Executor()
    with fluid.scope_guard(fluid.Scope()):
        exe.run(startup)
        for parameter in main.all_parameters():
            random = np.random.RandomState(sum(map(ord, parameter.name)) % 1000)
            value = random.uniform(-0.5, 0.5, parameter.shape).astype("float32")
            fluid.global_scope().find_var(parameter.name).get_tensor().set(value, fluid.CPUPlace())
        return [exe.run(main, feed, fetched, return_numpy=False) for _ in range(times)]


def sentences(*count: int) -> list[fluid.LoDTensor]:
    random = np.random.RandomState(3)
    return [fluid.LoDTensor(random.randint(2, WORDS, (5, 1)).astype("int64"), LODS) for _ in count]


def test_training_gives_the_losses_of_fluid() -> None:
    source, target, following = sentences(1, 2, 3)
    found = run(train, 5, source=source, target=target, following=following)
    losses = [np.array(loss).item() for (loss,) in found]
    real = [2.747828722000122, 2.058077335357666, 1.6160873174667358, 1.2618038654327393, 0.9899174571037292]
    np.testing.assert_allclose(losses, real, rtol=1e-5)


def test_a_search_gives_the_sentences_of_fluid() -> None:
    first = fluid.LoDTensor(np.zeros((2, 1), "int64"), FIRST)
    scores = fluid.LoDTensor(np.ones((2, 1), "float32"), FIRST)
    ((words, total),) = run(search, 1, source=sentences(1)[0], ids=first, scores=scores)
    lengths = [[2, 2], [7, 7, 7, 7]]
    assert words.recursive_sequence_lengths() == total.recursive_sequence_lengths() == lengths
    rows = np.array(words).reshape(4, 7)
    assert rows[:, :2].tolist() == [[0, 3], [0, 7], [0, 3], [0, 11]]
    assert (rows[:, 2:] == 3).all()
    ends = np.array(total).reshape(4, 7)[:, [1, -1]]
    real = [[-0.75827, -8.23951], [-1.19581, -8.76338], [-0.7835, -8.27443], [-1.20496, -8.65771]]
    np.testing.assert_allclose(ends, real, rtol=1e-4)


def test_mismatched_states_and_inputs_are_refused() -> None:
    with pytest.raises(ValueError, match="init_boot"):
        InitState(shape=[-1, 3])
    state = InitState(layers.data("start", [3]))
    with pytest.raises(ValueError, match="out_state is 'c', expected one of h"):
        StateCell({"x": None}, {"h": state}, "c")
    with pytest.raises(ValueError, match="expected an InitState"):
        StateCell({"x": None}, {"h": state.value}, "h")
    cell = StateCell({"x": None}, {"h": state}, "h")
    with pytest.raises(ValueError, match="input 'x' has no variable"):
        cell.get_input("x")
    decoder = TrainingDecoder(cell)
    with pytest.raises(ValueError, match="in another decoder already"):
        TrainingDecoder(cell)
    with pytest.raises(ValueError, match="behind the decoder's block"):
        decoder()
    with pytest.raises(ValueError, match="inside the decoder's block"):
        decoder.step_input(state.value)
    with pytest.raises(ValueError, match="no updater"):
        StateCell({"x": None}, {"h": state}, "h").compute_state({"x": state.value})
