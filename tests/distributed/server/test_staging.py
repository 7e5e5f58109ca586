"""Pushes are whole or refused, and no memory is allocated for refused ones."""

from __future__ import annotations

import numpy as np
import pytest

from paddlelike.core import SelectedRows, VarType
from paddlelike.distributed.placement import Kind, ServerTable, rows_at, values_at
from paddlelike.distributed.server.staging import Contribution, Staging
from paddlelike.distributed.wire import as_bytes
from paddlelike.errors import FrameError

TALL = 1 << 40  # rows: 16 TiB of float32 pairs
TABLE = ServerTable(
    [
        ("w@GRAD", Kind.GRADIENT, (3, 2), VarType.FP32),
        ("table@GRAD", Kind.GRADIENT, (TALL, 2), VarType.FP32),
        ("w", Kind.PARAMETER, (3, 2), VarType.FP32),
        ("table", Kind.REMOTE, (TALL, 2), VarType.FP32),
    ]
)
W = np.arange(6, dtype=np.float32).reshape(3, 2)
ROWS, VALUES = np.array([7, TALL - 1]), np.ones((2, 2), np.float32)


def staging() -> Staging:
    return Staging(TABLE, only_rows={1})


def put(into: Contribution, number: int, array: np.ndarray) -> None:
    data = as_bytes(array)
    for start in range(0, len(data), 8):  # in several records
        piece = data[start : start + 8]
        into.place(number, start, len(piece))[:] = piece


def test_a_staged_push_holds_its_arrays_and_reuses_memory() -> None:
    room = staging()
    first = room.take([(1, 2)])
    put(first, values_at(0), W)
    put(first, rows_at(1), ROWS)
    put(first, values_at(1), VALUES)
    given = first.finish(whole=True)
    assert np.array_equal(given[0], W)
    assert isinstance(given[1], SelectedRows)
    assert (given[1].rows(), given[1].height()) == ([7, TALL - 1], TALL)
    room.give_back(first)
    second = room.take([(1, 0)])
    assert second.dense[0] is given[0]
    assert room.take([(1, 0)]).dense[0] is not given[0]


@pytest.mark.parametrize("left_out", ["dense", "row numbers", "values", "rows in the header"])
def test_an_incomplete_push_is_refused(left_out: str) -> None:
    into = staging().take([] if left_out == "rows in the header" else [(1, 2)])
    if left_out != "dense":
        put(into, values_at(0), W)
    if left_out in ("dense", "values"):
        put(into, rows_at(1), ROWS)
    if left_out in ("dense", "row numbers"):
        put(into, values_at(1), VALUES)
    with pytest.raises(FrameError):
        into.finish(whole=True)
    if left_out in ("row numbers", "values"):  # an update of a part may leave out gradients, not their halves
        with pytest.raises(FrameError):
            into.finish(whole=False)


def test_an_update_may_hold_a_part_of_the_gradients() -> None:
    into = staging().take([])
    put(into, values_at(0), W)
    assert list(into.finish(whole=False)) == [0]
    assert list(staging().take([]).finish(whole=False)) == []


def test_a_gradient_that_was_begun_must_be_completed() -> None:
    into = staging().take([])
    into.place(values_at(0), 0, 8)
    with pytest.raises(FrameError, match="8 of 24 bytes arrived"):
        into.finish(whole=False)


@pytest.mark.parametrize("rows", [[(0, 4)], [(2, 1)], [(9, 1)], [(1, TALL + 1)]])
def test_impossible_row_counts_are_refused_before_memory_is_allocated(rows: list[tuple[int, int]]) -> None:
    with pytest.raises(FrameError, match="cannot be a gradient with"):
        staging().take(rows)


def test_a_table_takes_no_dense_gradient() -> None:
    with pytest.raises(FrameError, match="not part of this call"):
        staging().take([]).place(values_at(1), 0, 8)


@pytest.mark.parametrize("row", [-1, TALL])
def test_row_numbers_outside_of_the_table_are_refused(row: int) -> None:
    into = staging().take([(1, 1)])
    put(into, rows_at(1), np.array([row]))
    put(into, values_at(1), VALUES[:1])
    with pytest.raises(FrameError, match="the gradient has rows"):
        into.finish(whole=False)
