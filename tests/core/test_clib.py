"""The C library's logarithm and rand, bit for bit."""

from __future__ import annotations

import itertools

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from paddlelike.core import clib

LOW, HIGH, STD = (float(np.float32(value)) for value in (-0.3, 0.7, 0.3))


@given(st.lists(st.floats(2.0**-126, 2.0**127, width=32), min_size=1))
def test_the_logarithm_is_right_to_its_last_bit_or_nearly(numbers: list[float]) -> None:
    x = np.array(numbers, np.float32)
    expected = np.log(x.astype(np.float64))
    error = np.abs(clib.log(x) - expected)
    assert (error <= 0.82 * np.spacing(np.abs(expected).astype(np.float32)) + 1e-45).all()


def test_rand_is_the_c_librarys() -> None:
    # what a C program prints after srand(1)
    assert list(itertools.islice(clib.rand(1), 3)) == [1804289383, 846930886, 1681692777]
