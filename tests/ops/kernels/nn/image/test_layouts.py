"""Images moved to channels last in memory hold the same elements, whatever their size."""

from __future__ import annotations

import numpy as np
import pytest

from paddlelike.ops.kernels.nn.image.layouts import as_channels_last

SHAPES = [
    (2, 70, 32, 32),
    (1, 37, 112, 112),
    (3, 20, 16, 64),
    (2, 5, 7, 7),
    (2, 20, 1, 1),
    (2, 9, 4096),
    (2, 3),
]


@pytest.mark.parametrize("dtype", [np.float32, np.float64], ids=str)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_layout_changes_move_every_element(shape: tuple[int, ...], dtype: type) -> None:
    x = np.arange(np.prod(shape), dtype=dtype).reshape(shape)
    last = as_channels_last(x)
    assert last.flags.c_contiguous
    np.testing.assert_array_equal(last, np.stack([x[:, c] for c in range(shape[1])], -1))
    assert as_channels_last(np.moveaxis(last, -1, 1)).base is not None  # a view: nothing is moved
