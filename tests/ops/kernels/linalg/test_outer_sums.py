"""Sums of multiples of rows by id."""

from __future__ import annotations

import numpy as np
import pytest

from paddlelike.ops.kernels.linalg import place_rows, sum_multiples


@pytest.mark.parametrize(
    ("count", "ids"), [(0, 5), (1, 5), (40, 1000), (40, 3), (400, 60)], ids=lambda each: str(each)
)
def test_outer_sums_count_every_multiple_once(count: int, ids: int) -> None:
    """Few and many multiples of an id, against a matrix product with a row for each multiple."""
    rng = np.random.default_rng(3)
    rows, owners = (
        np.minimum(rng.integers(0, ids, count), rng.integers(0, ids, count)),
        rng.integers(0, 9, count),
    )
    factors, x = rng.standard_normal(count), rng.standard_normal((9, 4))
    found, sums = sum_multiples(rows, factors, owners, x, ids)
    assert found.tolist() == sorted(set(rows.tolist()))
    matrix = np.zeros((ids, count))
    matrix[rows, np.arange(count)] = factors
    np.testing.assert_allclose(place_rows(found, sums, ids), matrix @ x[owners], atol=1e-12)
