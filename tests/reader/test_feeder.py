"""DataFeeder: samples as tensors of the variables' dtypes and shapes, and what does not fit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import paddlelike as fluid
from paddlelike.errors import FeedError

PLACE = fluid.CPUPlace()


def test_samples_become_tensors_of_their_variables() -> None:
    image = fluid.layers.data("image", [1, 2, 2])
    label = fluid.data("label", [None, 1], "int64")
    feed = fluid.DataFeeder([image, label], PLACE).feed([(np.arange(4), 7), ([4.5, 5, 6, 7], 8)])
    assert np.array(feed["image"]).shape == (2, 1, 2, 2)
    assert np.array(feed["image"]).dtype == np.float32
    assert np.array(feed["label"]).tolist() == [[7], [8]]
    assert np.array(feed["label"]).dtype == np.int64


def test_sequences_become_rows_with_their_lengths() -> None:
    words = fluid.data("w", [None, 1], "int64", lod_level=1)
    pairs = fluid.data("p", [None, 2], lod_level=1)
    deep = fluid.data("d", [None, 1], "int64", lod_level=2)
    feeder = fluid.DataFeeder([words, pairs, deep], PLACE)
    feed = feeder.feed([([1, 2, 3], [[1, 2]], [[1, 2], [3]]), ([4], [[3, 4], [5, 6]], [[4]])])
    assert np.array(feed["w"]).tolist() == [[1], [2], [3], [4]]
    assert feed["w"].recursive_sequence_lengths() == [[3, 1]]
    assert np.array(feed["p"]).tolist() == [[1, 2], [3, 4], [5, 6]]
    assert feed["p"].recursive_sequence_lengths() == [[1, 2]]
    assert feed["d"].recursive_sequence_lengths() == [[2, 1], [2, 1, 1]]


@pytest.mark.parametrize(
    ("samples", "words"),
    [
        ([([1, 2],)], "a sample has 1 items, expected 2"),
        ([([1, 2], [0]), ([1, 2, 3], [0])], "2 samples do not form a tensor of shape"),
        ([(["a", "b"], [0])], "1 samples do not form a tensor"),
    ],
    ids=["short", "uneven", "text"],
)
def test_samples_that_do_not_fit_are_refused(samples: Any, words: str) -> None:
    feed_list = [fluid.data("x", [None, 2]), fluid.data("l", [None, 1, 1], "int64")]
    with pytest.raises(FeedError, match=words):
        fluid.DataFeeder(feed_list, PLACE).feed(samples)


def test_a_number_in_place_of_a_sequence_is_an_error() -> None:
    words = fluid.data("w", [None, 1], "int64", lod_level=1)
    with pytest.raises(FeedError, match="its items are sequences; got 3"):
        fluid.DataFeeder([words], PLACE).feed([(3,)])


def test_variables_are_found_by_name_in_the_given_program() -> None:
    program = fluid.Program()
    with fluid.program_guard(program):
        fluid.data("x", [None, 2])
    feeder = fluid.DataFeeder(["x"], PLACE, program)
    assert list(feeder.feed([([1, 2],)])) == ["x"]
    with pytest.raises(ValueError, match="'x' is not in block 0"):
        fluid.DataFeeder(["x"], PLACE)
    with pytest.raises(TypeError, match="variables or their names"):
        fluid.DataFeeder([3], PLACE)
