"""Factors of a batch of matrices in which one is not finite."""

from __future__ import annotations

import numpy as np
import pytest

from paddlelike.ops.linalg import matrices


@pytest.mark.parametrize("kind", ["svd", "eigh", "eigvalsh", "eig", "eigvals", "pinv"])
def test_a_matrix_with_a_nan_gives_nan_and_changes_no_other(kind: str) -> None:
    function = getattr(np.linalg, kind)
    x = np.random.default_rng(3).standard_normal((3, 4, 4)).astype("float32")
    x += np.swapaxes(x, 1, 2)
    expected = function(x)
    x[1, 2, 0] = np.nan
    found = matrices._factorize(function, x)
    assert isinstance(found, tuple) == isinstance(expected, tuple)
    pairs = zip(found, expected, strict=True) if isinstance(found, tuple) else [(found, expected)]
    for one, other in pairs:
        assert one.dtype == other.dtype
        assert np.isnan(one[1]).all()
        np.testing.assert_array_equal(one[[0, 2]], other[[0, 2]])


@pytest.mark.parametrize(("triangle", "place"), [("L", (0, 2)), ("U", (2, 0))])
def test_symmetric_matrices_may_hold_nan_in_the_triangle_that_is_not_read(
    triangle: str, place: tuple[int, int]
) -> None:
    x = np.array([[2, 1, 0], [1, 2, 0.5], [0, 0.5, 3]], "float32")
    wanted = np.linalg.eigh(x, triangle)
    x[place] = np.nan
    values, vectors = matrices._eigh(x, UPLO=triangle)
    np.testing.assert_array_equal(values, wanted[0])
    np.testing.assert_array_equal(vectors, wanted[1])
    np.testing.assert_allclose(matrices._eigvalsh(x, UPLO=triangle)[0], wanted[0], rtol=1e-5)


def test_the_rank_of_a_matrix_with_a_nan_is_0() -> None:
    x = np.eye(3, dtype="float32")
    x[0, 0] = np.nan
    rank = matrices._matrix_rank(x, None, tol=0.0, use_default_tol=True, hermitian=False)
    assert (rank.shape, rank.dtype, int(rank)) == ((), np.int32, 0)
