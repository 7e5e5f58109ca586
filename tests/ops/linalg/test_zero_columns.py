"""Gradients of products whose own gradient has columns of zeros in front, as those of Fluid's LSTM."""

from __future__ import annotations

import numpy as np
import pytest

from paddlelike.ops.linalg import matmul
from paddlelike.ops.linalg.matmul import Mul


@pytest.mark.parametrize("wanted", [(True, True), (True, False), (False, True)], ids=str)
@pytest.mark.parametrize("zeros", [0, 1, 30, 40], ids=lambda count: f"{count} zeros")
def test_zero_columns_do_not_change_a_product(
    zeros: int, wanted: tuple[bool, bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(matmul, "_LARGE", 1)
    rng = np.random.default_rng(5)
    x, y, d_out = (rng.standard_normal(shape) for shape in ((90, 7), (7, 40), (90, 40)))
    d_out[:, :zeros] = 0
    d_out[:50] = 0  # where a loss does not reach
    found = Mul.backward(x, y, d_out, x_num_col_dims=1, y_num_col_dims=1, wanted=wanted)
    for want, one, other in zip(wanted, found, (d_out @ y.T, x.T @ d_out), strict=True):
        if want:
            np.testing.assert_allclose(one, other, atol=1e-12)
        else:
            assert one is None


def test_a_zero_column_requires_zeros_in_all_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """One number in a row that the first look passes over counts."""
    monkeypatch.setattr(matmul, "_LARGE", 1)
    x, y, d_out = np.ones((200, 2)), np.ones((2, 8)), np.zeros((200, 8))
    d_out[:, 4:] = 1
    d_out[101, 0] = 5
    d_x, d_y = Mul.backward(x, y, d_out, x_num_col_dims=1, y_num_col_dims=1, wanted=(True, True))
    assert (d_x[101, 0], d_y[0, 0]) == (9, 5)
