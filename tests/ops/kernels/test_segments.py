"""Sums and maxima of sequences: many short ones have the values that one after the other has."""

from __future__ import annotations

import numpy as np
import pytest

from paddlelike.framework.opdef import Array
from paddlelike.ops.kernels.lod import find_maxima, maximize_segments, sum_segments

SHAPES = {
    "many short, wide": (900, 300, 40),
    "many, narrow": (900, 300, 3),
    "few": (900, 5, 40),
    "one": (1, 1, 2),
}


def make_sequences(name: str, *, whole: bool = False) -> tuple[Array, Array, Array]:
    """Return rows, starts and lengths."""
    count, sequences, width = SHAPES[name]
    random = np.random.RandomState(3)
    cuts = np.sort(random.choice(np.arange(1, count), sequences - 1, replace=False)) if sequences > 1 else []
    offsets = np.array([0, *cuts, count], np.int64)
    x = random.randn(count, width).astype(np.float32)
    return np.round(x) if whole else x, offsets[:-1], np.diff(offsets)


@pytest.mark.parametrize("name", SHAPES)
def test_segment_sums_match_sums_of_each_sequence(name: str) -> None:
    x, starts, lengths = make_sequences(name)
    wanted = [x[s : s + n].astype(np.float64).sum(0) for s, n in zip(starts, lengths, strict=True)]
    # float32 sums of up to 900 normal numbers, in any order
    np.testing.assert_allclose(sum_segments(x, starts, lengths), wanted, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("name", SHAPES)
def test_segment_maxima_choose_the_first_row_or_the_last_nan(name: str) -> None:
    x, starts, lengths = make_sequences(name, whole=True)  # with ties
    x[0, 0] = np.nan
    best, index = find_maxima(x, starts, lengths)
    np.testing.assert_array_equal(best, maximize_segments(x, starts, lengths))
    for n, (start, length) in enumerate(zip(starts, lengths, strict=True)):
        part = x[start : start + length]
        np.testing.assert_array_equal(best[n], part.max(0))
        wanted = np.where(np.isnan(part).any(0), length - 1, part.argmax(0))
        assert (index[n] - start).tolist() == wanted.tolist()
    assert index.dtype == np.int32
