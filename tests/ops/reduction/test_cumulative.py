"""Paddle 2's sums up to each element."""

from __future__ import annotations

import numpy as np
import pytest

from paddlelike.ops.reduction.sums import CumulationAttrs, _cumsum


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("reverse", [False, True])
def test_an_exclusive_cumulative_sum_leaves_out_the_element_itself(axis: int, reverse: bool) -> None:
    x = np.arange(1, 13, dtype="float64").reshape(3, 4)
    alike = {"axis": axis, "reverse": reverse}
    whole, exclusive = (
        _cumsum(x, attrs=CumulationAttrs(**alike, exclusive=exclusive)) for exclusive in (False, True)
    )
    np.testing.assert_array_equal(exclusive, whole - x)
    turned, given = (np.flip(one, axis) if reverse else one for one in (whole, x))
    np.testing.assert_array_equal(turned, np.add.accumulate(given, axis))
