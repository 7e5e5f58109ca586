"""Beam search over several steps: the sentences it finds."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import paddlelike as fluid
from paddlelike.core.tensor import LoDTensor
from paddlelike.errors import EnforceNotMet
from paddlelike.ops.recurrent.beam_search import BeamSearchDecode

END = 0
#: Words, scores and LoD of every step of two sources; source 0 ends with step 1.
STEPS = [
    ([3, 4], [0.0, 0.0], [[0, 1, 2], [0, 1, 2]]),
    ([0, 5, 6, 7], [-1.0, -2.0, -1.5, -0.5], [[0, 1, 2], [0, 2, 4]]),
    ([0, 0, 8, 9], [-1.0, -2.5, -1.75, -1.25], [[0, 2, 4], [0, 1, 2, 3, 4]]),
    ([0, 2], [-3.0, -2.75], [[0, 2, 4], [0, 0, 0, 1, 2]]),
]
# What real Fluid 1.8.5 makes of them, by array_write and beam_search_decode.
WORDS = [3, 0, 3, 5, 0, 4, 7, 9, 2, 4, 6, 8, 0]
SCORES = [0.0, -1.0, 0.0, -2.0, -2.5, 0.0, -0.5, -1.25, -2.75, 0.0, -1.5, -1.75, -3.0]
LOD = [[0, 2, 4], [0, 2, 5, 9, 13]]


def column(numbers: list[Any], dtype: str) -> np.ndarray[Any, Any]:
    return np.array(numbers, dtype).reshape(-1, 1)


def test_a_search_gives_the_sentences_of_its_formula() -> None:
    layers = fluid.layers
    with fluid.program_guard(fluid.Program()), fluid.unique_name.guard():
        ids, scores, feed = layers.create_array("int64"), layers.create_array("float32"), {}
        for step, (words, values, lod) in enumerate(STEPS):
            place = layers.fill_constant([1], "int64", step)
            for array, name, numbers, dtype in (
                (ids, f"i{step}", words, "int64"),
                (scores, f"s{step}", values, "float32"),
            ):
                layers.array_write(fluid.data(name, [None, 1], dtype, lod_level=2), place, array)
                feed[name] = LoDTensor(column(numbers, dtype), lod)
        fetches = list(layers.beam_search_decode(ids, scores, beam_size=2, end_id=END))
        exe = fluid.Executor(fluid.CPUPlace())
        found, chances = exe.run(feed=feed, fetch_list=fetches, return_numpy=False)
    assert np.array(found).ravel().tolist() == WORDS
    assert np.array(chances).ravel().tolist() == SCORES
    assert found.lod() == chances.lod() == LOD


class Recorder:
    """As much of a run as the operator asks for."""

    def set_lod(self, slot: str, lod: list[list[int]], index: int = 0) -> None:
        raise AssertionError("nothing was found")


def test_steps_without_both_levels_are_refused() -> None:
    step = [LoDTensor(column([1, 2], "int64"), [[0, 2]])]
    with pytest.raises(EnforceNotMet, match="a step of Ids has 1 levels of LoD, expected 2"):
        BeamSearchDecode.forward(Recorder(), step, step, beam_size=2, end_id=END)  # type: ignore[arg-type]
    with pytest.raises(EnforceNotMet, match="Ids holds no step"):
        BeamSearchDecode.forward(Recorder(), [], [], beam_size=2, end_id=END)  # type: ignore[arg-type]
