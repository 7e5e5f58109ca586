"""Layers over sequences, in whole programs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import paddlelike as fluid
from tests.helpers.fresh import fresh_programs

Array = np.ndarray[Any, Any]

layers = fluid.layers
ROWS = np.arange(10, dtype=np.float32).reshape(5, 2)
LENGTHS = [2, 0, 3]


def fed(array: Array, *lengths: list[int]) -> Any:
    return fluid.create_lod_tensor(array, list(lengths), fluid.CPUPlace())


def test_words_are_pooled_to_sentences_and_sentences_to_documents() -> None:
    with fresh_programs():
        words = fluid.data("words", [None, 2], lod_level=2)
        sentences = layers.sequence_pool(words, "sum")
        documents = layers.sequence_pool(sentences, "max")
        assert (sentences.lod_level, documents.lod_level) == (1, 0)
        exe = fluid.Executor()
        feed = {"words": fed(ROWS, [1, 2], [2, 1, 2])}
        first, second = exe.run(feed=feed, fetch_list=[sentences, documents], return_numpy=False)
    assert first.recursive_sequence_lengths() == [[1, 2]]
    assert np.array(first).tolist() == [[2, 4], [4, 5], [14, 16]]
    assert np.array(second).tolist() == [[2, 4], [14, 16]]


def unchanged(x: Any) -> Any:
    padded, length = layers.sequence_pad(x, layers.fill_constant([1], "float32", 9.0))
    return layers.sequence_unpad(padded, length)


# The rows alone show the gradient: none on the way has a LoD.
@pytest.mark.parametrize(
    ("layer", "order"),
    [
        pytest.param(layers.sequence_reverse, [1, 0, 4, 3, 2], id="reverse"),
        pytest.param(
            lambda x: layers.sequence_reverse(layers.relu(x)), [1, 0, 4, 3, 2], id="reverse-of-relu"
        ),
        pytest.param(unchanged, [0, 1, 2, 3, 4], id="pad-unpad"),
        pytest.param(lambda x: layers.sequence_reverse(unchanged(x)), [1, 0, 4, 3, 2], id="all"),
    ],
)
def test_sequence_gradients_reach_the_right_rows(layer: Callable[[Any], Any], order: list[int]) -> None:
    weights = np.random.RandomState(0).uniform(-1, 1, ROWS.shape).astype(np.float32)
    with fresh_programs():
        x = fluid.data("x", [None, 2], lod_level=1)
        x.stop_gradient = False
        out = layer(x)
        (gradient,) = fluid.gradients([layers.reduce_sum(out * fluid.data("w", [None, 2]))], [x])
        exe = fluid.Executor()
        feed = {"x": fed(ROWS + 1, LENGTHS), "w": weights}
        values, got = exe.run(feed=feed, fetch_list=[out, gradient], return_numpy=False)
    assert np.array(values).tolist() == (ROWS + 1)[order].tolist()
    assert values.recursive_sequence_lengths() == [LENGTHS]
    np.testing.assert_array_equal(np.array(got)[order], weights)


def test_a_tagger_learns_tags_that_depend_on_their_neighbours() -> None:
    """Tag 1 follows tag 0, tag 2 follows tag 1, ...: the words tell the first tag only."""
    lengths, rng = [3, 5, 1, 4], np.random.RandomState(1)
    starts = rng.randint(0, 3, len(lengths))
    tags = np.concatenate([(start + np.arange(n)) % 3 for start, n in zip(starts, lengths, strict=True)])
    words = np.concatenate([[start] + [3] * (n - 1) for start, n in zip(starts, lengths, strict=True)])
    with fresh_programs(seed=1) as (main, startup):
        word = fluid.data("word", [None, 1], "int64", lod_level=1)
        tag = fluid.data("tag", [None, 1], "int64", lod_level=1)
        emission = layers.fc(layers.embedding(word, [4, 8]), 3)
        cost = layers.mean(layers.linear_chain_crf(emission, tag, param_attr=fluid.ParamAttr(name="crf")))
        best = layers.crf_decoding(emission, fluid.ParamAttr(name="crf"))
        fluid.optimizer.Adam(0.1).minimize(cost)
        exe = fluid.Executor()
        exe.run(startup)
        feed = {"word": fed(words[:, None], lengths), "tag": fed(tags[:, None], lengths)}
        for _ in range(40):
            exe.run(main, feed, [cost])
        (found,) = exe.run(main, feed, [best], return_numpy=False)
    assert np.array(found).ravel().tolist() == tags.tolist()
    assert found.recursive_sequence_lengths() == [lengths]


def test_a_ctc_network_learns_words_from_unaligned_labels() -> None:
    lengths = [6, 4]
    rng = np.random.RandomState(2)
    sounds = rng.uniform(-1, 1, (sum(lengths), 5)).astype(np.float32)
    with fresh_programs(seed=1) as (main, startup):
        sound = fluid.data("sound", [None, 5], lod_level=1)
        word = fluid.data("word", [None, 1], "int32", lod_level=1)
        logits = layers.fc(layers.dynamic_gru(layers.fc(sound, 24), 8), 4)
        cost = layers.mean(layers.warpctc(logits, word))
        spelled = layers.ctc_greedy_decoder(logits, blank=0)
        fluid.optimizer.Adam(0.05).minimize(cost)
        exe = fluid.Executor()
        exe.run(startup)
        column = np.array([[1], [2], [3]], np.int32)
        feed = {"sound": fed(sounds, lengths), "word": fed(column, [2, 1])}
        costs = [float(exe.run(main, feed, [cost])[0][0]) for _ in range(60)]
        (found,) = exe.run(main, feed, [spelled], return_numpy=False)
    assert costs[-1] < 0.1 < costs[0]
    assert np.array(found).ravel().tolist() == [1, 2, 3]
    assert found.recursive_sequence_lengths() == [[2, 1]]


@pytest.mark.parametrize("backend", ["numpy", pytest.param("jax", marks=pytest.mark.slow)])
def test_the_edit_distance_of_empty_output_is_the_word_length(backend: str) -> None:
    """Values of Paddle 1.8.5: a row of -1 stands for none, and its LoD goes on to what is computed of it."""
    if backend == "jax":
        pytest.importorskip("jax", reason="the extra `jax` is not installed", exc_type=ImportError)
    with fresh_programs() as (main, _):
        scores = fluid.data("scores", [None, 4], lod_level=1)
        word = fluid.data("word", [None, 1], "int64", lod_level=1)
        spelled = layers.cast(layers.ctc_greedy_decoder(scores, blank=3), "int64")
        distance, _ = layers.edit_distance(spelled, word, normalized=False)
        blanks = np.eye(4, dtype=np.float32)[[3] * 6]
        feed = {"scores": fed(blanks, [2, 4]), "word": fed(np.array([[1], [2], [1]]), [2, 1])}
        program = fluid.CompiledProgram(main).with_backend(backend)
        for _ in range(2):
            found = fluid.Executor().run(program, feed, [spelled, distance], return_numpy=False)
    assert [one.lod() for one in found] == [[[0, 0, 0]], []]
    assert [np.array(one).tolist() for one in found] == [[[-1]], [[2.0], [1.0]]]
