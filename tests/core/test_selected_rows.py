"""Where rows of a table stand: found without looking at all of them, also after the table has grown."""

from __future__ import annotations

import numpy as np
from hypothesis import given, strategies as st

from paddlelike.core import SelectedRows

ROWS = st.lists(st.integers(0, 50), unique=True, max_size=20)


@given(ROWS, st.lists(st.integers(0, 50), max_size=20))
def test_positions_of_rows_match_a_linear_search(rows: list[int], asked: list[int]) -> None:
    table = SelectedRows(rows, 51)
    expected = [rows.index(row) if row in rows else -1 for row in asked]
    assert table.find_rows(np.array(asked, np.int64)).tolist() == expected


@given(ROWS, ROWS, st.booleans())
def test_added_rows_are_appended(first: list[int], more: list[int], ask_before: bool) -> None:
    new = [row for row in more if row not in first]
    table = SelectedRows(first, 51)
    if ask_before:
        table.find_rows(np.array([0]))
    before = table.version
    table.add_rows(new)
    assert table.rows() == first + new
    assert table.version > before
    assert table.find_rows(np.array(first + new, np.int64)).tolist() == list(range(len(first + new)))


def test_rows_are_found_at_their_new_positions_after_a_change() -> None:
    table = SelectedRows([3, 5], 9)
    assert table.find_rows(np.array([5])).tolist() == [1]
    table.set_rows([5, 3])
    assert table.find_rows(np.array([5])).tolist() == [0]
