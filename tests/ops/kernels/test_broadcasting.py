"""Sums that undo a broadcast, beside sums in float64."""

from __future__ import annotations

import numpy as np
import pytest

from paddlelike.ops.kernels.broadcasting import sum_to

RNG = np.random.default_rng(3)


@pytest.mark.parametrize(
    ("shape", "kept"),
    [
        ((64, 26, 16), (64, 1, 16)),
        ((8, 5, 6, 7), (8, 1, 1, 7)),
        ((2, 3, 4, 5), (2, 1, 4, 1)),
        ((2, 3, 4, 5), (1, 3, 1, 5)),
        ((2, 3, 4), (1, 1, 1)),
        ((0, 3, 4), (0, 1, 4)),
        ((3, 0, 4), (3, 1, 4)),
    ],
)
@pytest.mark.parametrize("order", ["C", "F"])
def test_sums_over_inner_dims_match_float64(
    shape: tuple[int, ...], kept: tuple[int, ...], order: str
) -> None:
    x = np.asarray(RNG.standard_normal(shape), "float32", order="F" if order == "F" else "C")
    over = tuple(i for i, dim in enumerate(shape) if kept[i] != dim)
    total = sum_to(kept, x, -1)
    assert total.dtype == np.float32
    # at most 60 numbers of about 1 are added, each sum rounded to 6e-8 of it
    np.testing.assert_allclose(total, x.astype("float64").sum(over, keepdims=True), rtol=0, atol=5e-6)


def test_an_infinite_element_affects_only_its_own_sum() -> None:
    x = np.ones((2, 3, 4), "float32")
    x[0, 1, 2] = np.inf
    expected = np.full((2, 1, 4), 3, "float32")
    expected[0, 0, 2] = np.inf
    np.testing.assert_array_equal(sum_to((2, 1, 4), x, -1), expected)


def test_one_number_is_broadcast_over_a_vector() -> None:
    np.testing.assert_array_equal(sum_to((1,), np.arange(4.0), -1), [6.0])
