"""Operators of images give the same results whichever dim of their inputs is last in memory."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from paddlelike.framework.opdef import find
from paddlelike.ops.kernels.layouts import as_channels_last, view_channels_first

Array = np.ndarray[Any, Any]

OPERATORS: dict[str, tuple[str, dict[str, Any]]] = {
    "max pool": ("pool2d", {"pooling_type": "max", "ksize": [2, 2], "strides": [2, 2]}),
    "max pool, padded": ("pool2d", {"pooling_type": "max", "ksize": [3, 3], "paddings": [1, 1]}),
    "average pool": ("pool2d", {"pooling_type": "avg", "ksize": [3, 3], "paddings": [1, 1]}),
    "global pool": ("pool2d", {"pooling_type": "avg", "ksize": [1, 1], "global_pooling": True}),
    "adaptive pool": ("pool2d", {"pooling_type": "max", "ksize": [4, 4], "adaptive": True}),
    "relu": ("relu", {}),
    "leaky relu": ("leaky_relu", {}),
    "sigmoid": ("sigmoid", {}),
}  # fmt: skip


def last(x: Array) -> Array:
    return view_channels_first(as_channels_last(x).copy())


def assert_close(one: Array, other: Array) -> None:
    np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-12)  # sums in another order


def attributes(operator: Any, given: dict[str, Any]) -> dict[str, Any]:
    return {name: attr.fallback for name, attr in operator.attrs.items()} | given


@pytest.mark.parametrize(("type", "given"), OPERATORS.values(), ids=OPERATORS.keys())
def test_values_and_gradients(type: str, given: dict[str, Any]) -> None:
    rng = np.random.default_rng(3)
    x = rng.standard_normal((2, 5, 8, 9))
    operator, grad = find(type), find(type + "_grad")
    keywords = operator.make_forward_keywords(attributes(operator, given))
    out = operator.forward(x, **keywords)
    assert_close(operator.forward(last(x), **keywords), out)
    d_out = rng.standard_normal(out.shape)
    arrays = {"X": x, "Out": out, "Out@GRAD": d_out}
    taken = [arrays[slot.name] for slot in grad.input_slots]
    keywords = grad.make_forward_keywords(attributes(operator, given))
    dx = grad.forward(*taken, **keywords)
    assert_close(grad.forward(*map(last, taken), **keywords), dx)
    assert_close(grad.forward(*map(last, taken[:-1]), d_out, **keywords), dx)


@pytest.mark.parametrize("type", ["elementwise_add", "elementwise_mul", "elementwise_sub"])
@pytest.mark.parametrize(
    ("shape", "axis"), [((5,), 1), ((5, 1, 1), -1), ((2, 5), 0), ((9,), -1), ((2, 5, 8, 9), -1)]
)
def test_arithmetic_of_images(type: str, shape: tuple[int, ...], axis: int) -> None:
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
