"""Rank tables and what is sorted by them, against plain loops over sequences."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from paddlelike.core import LoD, LoDTensor, LoDTensorArray
from paddlelike.errors import EnforceNotMet
from paddlelike.ops.control.rank_table import RankTable
from tests.ops.harness.contract import call

X = np.arange(14, dtype=np.float64).reshape(7, 2)
ONE: LoD = [[0, 2, 6, 7]]
TWO: LoD = [[0, 2, 3], [0, 1, 3, 7]]  # two paragraphs: of two sentences and of one
THREE: LoD = [[0, 2, 3, 6], [0, 1, 2, 3, 4, 6, 7]]  # the second sentences of two paragraphs side by side


def table(lod: LoD, level: int = 0) -> RankTable:
    return call("lod_rank_table", X, lods={"X": lod}, level=level)[0]


def tensors(array: LoDTensorArray) -> list[Any]:
    return [np.array(element).tolist() for element in array]


def test_a_rank_table_sorts_by_length_and_keeps_the_order_of_equals() -> None:
    ranks = table([[0, 2, 6, 7, 9]])
    assert ranks.order == [1, 0, 3, 2]
    assert ranks.lengths == [4, 2, 2, 1]
    assert call("max_sequence_len", ranks)[0].tolist() == [4]


def test_a_rank_table_of_a_missing_level_is_refused() -> None:
    with pytest.raises(EnforceNotMet, match="LoD of 1 levels, but level 1 was requested"):
        table(ONE, level=1)


def test_sequences_are_split_into_an_array_of_steps() -> None:
    array, _ = call("lod_tensor_to_array", X, table(ONE), lods={"X": ONE})
    rows = [X[numbers].tolist() for numbers in ([2, 0, 6], [3, 1], [4], [5])]
    assert tensors(array) == rows


def test_a_gradient_without_a_lod_is_cut_into_the_same_steps() -> None:
    with_lod, _ = call("lod_tensor_to_array", X, table(ONE), lods={"X": ONE})
    without, _ = call("lod_tensor_to_array", X, table(ONE))
    assert tensors(without) == tensors(with_lod)


def test_the_steps_of_a_sequence_of_paragraphs_are_sentences() -> None:
    array, _ = call("lod_tensor_to_array", X, table(TWO), lods={"X": TWO})
    assert [element.lod() for element in array] == [[[0, 1, 5]], [[0, 2]]]
    assert tensors(array) == [X[[0, 3, 4, 5, 6]].tolist(), X[[1, 2]].tolist()]


@pytest.mark.parametrize("lod", [ONE, TWO, THREE], ids=["words", "sentences", "paragraphs"])
def test_an_array_of_steps_is_joined_to_the_original_sequences(lod: LoD) -> None:
    array, _ = call("lod_tensor_to_array", X, table(lod), lods={"X": lod})
    back, ctx = call("array_to_lod_tensor", array, table(lod))
    np.testing.assert_array_equal(back, X)
    assert ctx.lods["Out"] == lod


def test_an_array_that_is_too_short_is_refused() -> None:
    array = LoDTensorArray([LoDTensor(X[:3])])
    with pytest.raises(EnforceNotMet, match="has 1 elements, but the longest sequence has 4 steps"):
        call("array_to_lod_tensor", array, table(ONE))


@pytest.mark.parametrize(("step", "rows"), [(0, 3), (1, 2), (2, 1), (3, 1), (4, 0)])
def test_memory_shrinks_with_the_sequences(step: int, rows: int) -> None:
    memory = X[:3]
    out, _ = call("shrink_rnn_memory", memory, table(ONE), np.array([step]))
    np.testing.assert_array_equal(out, memory[:rows])
    d_x, _ = call("shrink_rnn_memory_grad", memory, np.ones((rows, 2)))
    assert d_x.tolist() == [[1.0, 1.0]] * rows + [[0.0, 0.0]] * (3 - rows)


def test_memory_of_sequences_shrinks_by_sequences() -> None:
    out, ctx = call("shrink_rnn_memory", X, table(ONE), np.array([1]), lods={"X": [[0, 3, 4, 7]]})
    np.testing.assert_array_equal(out, X[:4])
    assert ctx.lods["Out"] == [[0, 3, 4]]


def test_a_missing_gradient_of_shrunk_memory_is_zero() -> None:
    d_x, _ = call("shrink_rnn_memory_grad", X, None)
    assert not d_x.any()


@pytest.mark.parametrize("lod", [[], ONE], ids=["rows", "sequences"])
def test_sequences_are_reordered_and_their_gradients_put_back(lod: LoD) -> None:
    x = X if lod else X[:3]
    out, ctx = call("reorder_lod_tensor_by_rank", x, table(ONE), lods={"X": lod})
    np.testing.assert_array_equal(out, x[[2, 3, 4, 5, 0, 1, 6] if lod else [1, 0, 2]])
    sorted_lod = ctx.lods["Out"]
    assert sorted_lod == ([[0, 4, 6, 7]] if lod else [])
    back, _ = call("reorder_lod_tensor_by_rank_grad", out, table(ONE), lods={"X": sorted_lod})
    np.testing.assert_array_equal(back, x)
