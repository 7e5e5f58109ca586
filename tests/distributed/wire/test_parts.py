"""Arrays as bytes, and places for them."""

from __future__ import annotations

import numpy as np
import pytest

from paddlelike.distributed.wire import Into, as_bytes, make_parts
from paddlelike.errors import FrameError


@pytest.mark.parametrize(
    "array",
    [
        np.arange(6, dtype=np.float32).reshape(2, 3),
        np.array(5, np.int64),
        np.zeros((0, 4), np.float32),
        np.array([True, False]),
        np.arange(3, dtype=np.float16),
        np.array([1 + 2j]),
        np.array([(1, 2.0)], dtype=[("a", "i4"), ("b", "f8")]),
        np.array(["2020-01-01"], "M8[D]"),
    ],
    ids=lambda array: f"{array.dtype.kind}{array.shape}",
)
def test_the_parts_of_an_array_are_views_of_its_memory(array: np.ndarray) -> None:
    view = as_bytes(array)
    assert bytes(view) == array.tobytes()
    assert (view.format, view.itemsize, view.ndim) == ("B", 1, 1)
    if array.size:
        assert np.shares_memory(np.frombuffer(view, np.uint8), array)


def test_an_array_that_is_not_contiguous_is_refused() -> None:
    with pytest.raises(ValueError, match="not contiguous"):
        as_bytes(np.zeros((4, 4))[:, ::2])


def test_parts_carry_the_indexes_of_their_arrays() -> None:
    first, second = make_parts({7: np.zeros(2, np.float32), 3: np.ones(1, np.int8)})
    assert (first.index, first.offset, bytes(first.data)) == (7, 0, bytes(8))
    assert (second.index, second.offset, bytes(second.data)) == (3, 0, b"\1")


def test_receivers_check_the_size_and_order_of_pieces() -> None:
    into = Into({1: np.zeros(2, np.float32), 2: np.zeros(0), 3: np.zeros(1)})
    assert into.size == 16
    into.place(1, 0, 8)
    into.check([1, 2])
    with pytest.raises(FrameError, match="array 3 is incomplete: 0 of 8 bytes arrived"):
        into.check()
