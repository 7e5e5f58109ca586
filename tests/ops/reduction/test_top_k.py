"""The largest numbers of rows: which of equal ones, infinite ones and NaN come first."""

from __future__ import annotations

import numpy as np
import pytest

import paddlelike as fluid
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
def test_top_k_sorts_descending_and_keeps_the_order_of_equals(kind: str, k: int) -> None:
    fluid.set_flags({"FLAGS_fluid_quirks": False})
    x = make_rows(kind)
    values, indices = TopK.forward(x, None, k=k)
    for row, value, index in zip(x.tolist(), values, indices, strict=True):
        keys = [(-np.inf if number != number else -number, n) for n, number in enumerate(row)]
        wanted = sorted(range(len(row)), key=lambda n: (row[n] == row[n], keys[n]))[:k]
        assert index.tolist() == wanted
        np.testing.assert_array_equal(value, [row[n] for n in wanted])


# Places that real Fluid 1.8.5 gives.
EQUAL = [
    ([1, 3, 3, 2, 3], 3, [4, 1, 2]),
    ([0] * 10, 5, [3, 4, 1, 0, 2]),
    ([0] * 5, 3, [0, 1, 2]),
    ([np.nan, 0], 2, [0, 1]),
    ([0, np.nan, 0], 3, [0, 1, 2]),
    ([np.nan, 0, 0], 1, [0]),
]


@pytest.mark.parametrize(("row", "k", "wanted"), EQUAL)
def test_top_k_orders_equal_numbers_as_fluid(row: list[float], k: int, wanted: list[int]) -> None:
    assert TopK.forward(np.array([row], "float32"), None, k=k)[1].tolist() == [wanted]


def test_top_k_values_do_not_depend_on_the_order_of_equals() -> None:
    x = np.random.RandomState(1).randint(0, 4, (5, 40)).astype("float32")
    values, places = TopK.forward(x, None, k=25)
    np.testing.assert_array_equal(values, -np.sort(-x)[:, :25])
    np.testing.assert_array_equal(np.take_along_axis(x, places, 1), values)
    assert all(len(set(row)) == 25 for row in places.tolist())
