"""Rows cut by LoD: offsets that do not end where the rows do."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from paddlelike.errors import EnforceNotMet
from paddlelike.ops.kernels.lod import read_last_level


def make_context(lod: list[list[int]]) -> Any:
    op = SimpleNamespace(type="sequence_pool", input=lambda slot: ["x"])
    return SimpleNamespace(op=op, lod=lambda slot, index: lod)


def test_the_last_lod_level_is_used() -> None:
    assert read_last_level(make_context([[0, 2], [0, 1, 4]]), "X", 4).tolist() == [0, 1, 4]


@pytest.mark.parametrize("rows", [3, 5])
def test_a_lod_that_does_not_end_at_the_last_row_is_refused(rows: int) -> None:
    with pytest.raises(EnforceNotMet, match=rf"sequences of X \('x'\) have 4 rows, but there are {rows}"):
        read_last_level(make_context([[0, 1, 4]]), "X", rows)
