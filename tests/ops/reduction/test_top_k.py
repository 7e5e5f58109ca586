"""The largest numbers of rows: which of equal ones, infinite ones and NaN come first."""

from __future__ import annotations

import numpy as np
import pytest

from paddlelike.framework.opdef import Array
from paddlelike.ops.reduction.sort import TopK

COUNTS = [1, 2, 5, 30, 60, 70]


def make_rows(kind: str) -> Array:
    """Return rows of 70 numbers."""
    x = np.random.RandomState(4).randn(6, 70).astype(np.float32)
    if kind == "ties":
        x = np.round(x)
    if kind == "infinite":
        x[:, ::2], x[0], x[1, :40] = -np.inf, -np.inf, np.inf
    if kind == "whole":
        x = np.round(4 * x).astype(np.int64)
        x[0] = np.iinfo(np.int64).min
    if kind == "nan":
        x[2, [9, 3]] = np.nan
    return x


@pytest.mark.parametrize("kind", ["numbers", "ties", "infinite", "whole", "nan"])
@pytest.mark.parametrize("k", COUNTS)
def test_the_largest_come_first_and_equal_ones_in_their_order(kind: str, k: int) -> None:
    x = make_rows(kind)
    values, indices = TopK.forward(x, None, k=k)
    for row, value, index in zip(x.tolist(), values, indices, strict=True):
        keys = [(-np.inf if number != number else -number, n) for n, number in enumerate(row)]
        wanted = sorted(range(len(row)), key=lambda n: (row[n] == row[n], keys[n]))[:k]
        assert index.tolist() == wanted
        np.testing.assert_array_equal(value, [row[n] for n in wanted])
