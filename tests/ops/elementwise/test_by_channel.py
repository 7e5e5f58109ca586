"""Arithmetic of images and numbers per channel, whichever dim of the images is last in memory."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from paddlelike.framework.opdef import find
from paddlelike.ops.kernels.nn.image.layouts import as_channels_last, view_channels_first

Array = np.ndarray[Any, Any]


def last(x: Array) -> Array:
    return view_channels_first(as_channels_last(x).copy())


def assert_close(one: Array, other: Array) -> None:
    np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-12)  # sums in another order


@pytest.mark.parametrize("type", ["elementwise_add", "elementwise_mul", "elementwise_sub"])
@pytest.mark.parametrize(
    ("shape", "axis"), [((5,), 1), ((5, 1, 1), -1), ((2, 5), 0), ((9,), -1), ((2, 5, 8, 9), -1)]
)
def test_arithmetic_of_images_and_channel_vectors_follows_numpy(
    type: str, shape: tuple[int, ...], axis: int
) -> None:
    rng = np.random.default_rng(4)
    x, y, d_out = (
        rng.standard_normal((2, 5, 8, 9)),
        rng.standard_normal(shape),
        rng.standard_normal((2, 5, 8, 9)),
    )
    operator, grad = find(type), find(type + "_grad")
    np.testing.assert_array_equal(operator.forward(last(x), y, axis=axis), operator.forward(x, y, axis=axis))
    expected = grad.forward(d_out, x, y, axis=axis, wanted=(True, True))
    for one, other in zip(
        grad.forward(last(d_out), last(x), y, axis=axis, wanted=(True, True)), expected, strict=True
    ):
        assert_close(one, other)
