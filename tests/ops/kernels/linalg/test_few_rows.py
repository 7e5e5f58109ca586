"""Products of few rows, by parts of the columns."""

from __future__ import annotations

import numpy as np
import pytest

from paddlelike.ops.kernels import linalg
from paddlelike.ops.kernels.linalg import multiply, multiply_rows


@pytest.mark.parametrize("inner", [0, 1, 256, 448])
@pytest.mark.parametrize("columns", [1, 515, 1249, 5000])
def test_few_rows_times_a_matrix_equal_the_product_in_double_precision(
    inner: int, columns: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(linalg, "_reads_in_place", lambda: True)
    rng = np.random.default_rng(inner + columns)
    w = rng.uniform(-1, 1, (inner, columns)).astype("float32")
    for rows in (0, 1, 2, 7, 16, 17):
        x = rng.uniform(-1, 1, (rows, inner)).astype("float32")
        expected = x.astype(np.float64) @ w
        found = multiply_rows(x, w)
        assert (found.shape, found.dtype) == ((rows, columns), np.float32)
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-6 * np.abs(expected).max(initial=1))


def test_a_blas_that_copies_operands_multiplies_few_rows_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(linalg, "_reads_in_place", lambda: False)
    rng = np.random.default_rng(1)
    x, w = (rng.uniform(-1, 1, shape).astype("float32") for shape in ((7, 256), (256, 1249)))
    assert np.array_equal(multiply_rows(x, w), multiply(x, w))
