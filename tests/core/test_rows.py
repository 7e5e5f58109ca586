"""Sums of rows have the bits of the plain loop."""

from __future__ import annotations

import numpy as np
import pytest

from paddlelike.core.rows import add_rows, merge_rows, sum_rows


@pytest.mark.parametrize("shape", [(3,), (2, 3), ()], ids=str)
def test_rows_are_added_in_order(shape: tuple[int, ...]) -> None:
    rng = np.random.default_rng(5)
    rows = rng.integers(0, 7, 200)
    values = rng.standard_normal((200, *shape)).astype("float32") * 10.0 ** rng.integers(-4, 5, 200).reshape(
        -1, *[1] * len(shape)
    ).astype("float32")
    expected = np.ones((7, *shape), "float32")
    total = expected.copy()
    for row, value in zip(rows, values, strict=True):
        expected[row] += value
    add_rows(total, rows, values)
    np.testing.assert_array_equal(total, expected)


def test_adding_an_empty_set_of_rows_changes_nothing() -> None:
    total = np.ones((3, 2))
    add_rows(total, np.zeros(0, np.int64), np.zeros((0, 2)))
    assert (total == 1).all()


def test_a_sum_has_the_requested_height_and_dtype() -> None:
    out = sum_rows(np.array([4, 4]), np.array([[1], [2]], "int64"), 6)
    assert (out.shape, out.dtype.name) == ((6, 1), "int64")
    assert out.ravel().tolist() == [0, 0, 0, 0, 3, 0]


@pytest.mark.parametrize("width", [1, 2, 8, 40])
@pytest.mark.parametrize(
    ("count", "height"), [(300, 20), (300, 150), (300, 5000), (40, 100_000), (3000, 4000), (3000, 100_000)]
)
def test_sums_of_rows_have_the_same_bits_as_a_plain_loop_for_any_width_and_repetition(
    count: int, height: int, width: int
) -> None:
    rng = np.random.default_rng(count + height)
    rows = rng.integers(0, height, count)
    rows[: count // 10] = 3  # more often than all others
    values = rng.standard_normal((count, width)).astype("float32")
    expected = np.zeros((height, width), "float32")
    for row, value in zip(rows, values, strict=True):
        expected[row] += value
    np.testing.assert_array_equal(sum_rows(rows, values, height), expected)
    ids, sums = merge_rows(rows, values)
    assert ids.tolist() == sorted(set(rows.tolist()))
    np.testing.assert_array_equal(sums, expected[ids])


@pytest.mark.parametrize("top", [1, 1 << 16, 1 << 32, 1 << 62])
def test_many_ids_of_any_size_are_sorted(top: int) -> None:
    rows = np.random.default_rng(5).integers(-1 if top == 1 else 0, top + 5, 3000)
    ids, sums = merge_rows(rows, np.ones((3000, 1)))
    expected, counts = np.unique(rows, return_counts=True)
    np.testing.assert_array_equal(ids, expected)
    np.testing.assert_array_equal(sums[:, 0], counts)


def test_merged_rows_are_not_copied() -> None:
    rows, values = np.array([1, 4, 9]), np.ones((3, 2))
    assert merge_rows(rows, values)[1] is values
