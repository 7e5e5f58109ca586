"""Pools: which of equal maxima gets the gradient, and operands that do not fit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from paddlelike.core import VarType
from paddlelike.errors import ShapeError
from paddlelike.framework.opdef import Array, Spec, registry
from paddlelike.ops.kernels.nn.image.pool import make_regular, maximum, maximum_dx
from paddlelike.ops.kernels.nn.image.windows import Windows
from tests.ops.harness.contract import full_attrs

X = np.array([[1, 1, 0, 2], [1, 1, 2, 2], [0, 3, 3, 1], [3, 3, 0, 1]], np.float32).reshape(1, 1, 4, 4)
G = np.arange(1, 10, dtype=np.float32).reshape(1, 1, 3, 3)

# Gradients of Paddle 1.8.5 for X and the first elements of G.
TIES: dict[str, tuple[dict[str, Any], list[list[int]]]] = {
    "overlapping": ({"ksize": [2, 2]}, [[1, 0, 0, 3], [0, 0, 2, 0], [0, 24, 15, 0], [0, 0, 0, 0]]),
    "disjoint": (
        {"ksize": [2, 2], "strides": [2, 2]},
        [[1, 0, 0, 2], [0, 0, 0, 0], [0, 4, 5, 0], [0, 0, 0, 0]],
    ),
    "global": (
        {"ksize": [1, 1], "global_pooling": True},
        [[0, 0, 0, 0], [0, 0, 0, 0], [0, 1, 0, 0], [0, 0, 0, 0]],
    ),
}


def run(type: str, grad: Array, **given: Any) -> tuple[Any, Array]:
    op = registry.find(type)
    attrs = full_attrs(op, given)
    out = op.forward(X, **op.make_forward_keywords(attrs))
    first = out[0] if isinstance(out, tuple) else out
    d_out = grad[..., : first.shape[2], : first.shape[3]]
    if len(op.output_slots) == 2:
        return out, op.backward(X, out[1], d_out)
    back = registry.find(type + "_grad")
    return out, back.forward(X, first, d_out, **back.make_forward_keywords(attrs))


@pytest.mark.parametrize("name", TIES)
def test_the_gradient_goes_to_the_first_of_equal_maxima(name: str) -> None:
    attrs, expected = TIES[name]
    _, dx = run("pool2d", G, pooling_type="max", **attrs)
    assert dx[0, 0].tolist() == expected


@pytest.mark.parametrize("attrs", [{"ksize": [2, 2]}, {"ksize": [3, 3], "adaptive": True}], ids=str)
def test_the_index_points_to_the_first_of_equal_maxima(attrs: dict[str, Any]) -> None:
    (_, mask), dx = run("max_pool2d_with_index", G, **attrs)
    assert mask.dtype == np.int32
    assert mask[0, 0].tolist() == [[0, 6, 3], [9, 9, 10], [9, 9, 10]]  # Paddle 1.8.5
    assert dx[0, 0].tolist() == TIES["overlapping"][1]


@pytest.mark.parametrize("kind", ["max", "avg"])
def test_large_batches_of_images_are_processed_in_parts(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from paddlelike.ops.kernels.nn.image import pool as pool_kernels

    x = np.random.default_rng(0).standard_normal((7, 2, 4, 4))
    op = registry.find("pool2d")
    attrs = full_attrs(op, {"pooling_type": kind, "ksize": [3, 3], "paddings": [1, 1]})
    attrs = op.make_forward_keywords(attrs)
    out = op.forward(x, **attrs)
    whole = op.backward(x, out, out, **attrs)
    monkeypatch.setattr(pool_kernels, "_CHUNK", 3 * x[0].nbytes)
    np.testing.assert_array_equal(op.forward(x, **attrs), out)
    np.testing.assert_array_equal(op.backward(x, out, out, **attrs), whole)


def test_unknown_dims_stay_unknown() -> None:
    op = registry.find("pool2d")
    attrs = full_attrs(op, {"pooling_type": "avg", "ksize": [2, 3], "strides": [2, 2]})

    def infer(**more: Any) -> tuple[int, ...]:
        shape: tuple[int, ...] = op.infer(
            Spec((-1, 3, -1, 9), VarType.FP32), **op.make_infer_keywords(attrs | more)
        ).shape
        return shape

    assert infer() == (-1, 3, -1, 4)
    assert infer(adaptive=True) == (-1, 3, 2, 3)
    assert infer(global_pooling=True) == (-1, 3, -1, 1)


@pytest.mark.parametrize(
    ("shape", "given", "said"),
    [
        ((2, 3, 4), {}, r"X has shape \(2, 3, 4\); it needs 4 dims"),
        ((2, 3, 4, 4), {"ksize": [5, 5]}, r"dims \(4, 4\) .* smaller than one window of \(5, 5\)"),
        ((2, 3, 4, 4), {"ksize": [2]}, r"kernel is \[2\]; it needs 2 positive numbers"),
        ((2, 3, 4, 4), {"paddings": [1, 1, 1]}, r"paddings is \[1, 1, 1\]; 2 spatial dims need 2 or 4"),
        ((2, 3, 4, 4), {"strides": [0, 1]}, r"strides is \[0, 1\]"),
        ((2, 3, 4, 4), {"pooling_type": "min"}, "pooling_type is 'min'; it can be 'max' or 'avg'"),
    ],
)
def test_operands_that_do_not_fit_are_refused(
    shape: tuple[int, ...], given: dict[str, Any], said: str
) -> None:
    op = registry.find("pool2d")
    attrs = full_attrs(op, {"pooling_type": "max", "ksize": [2, 2]} | given)
    with pytest.raises(ShapeError, match=said):
        op.infer(Spec(shape, VarType.FP32), **op.make_infer_keywords(attrs))


@pytest.mark.parametrize("kernel", [1, 5])
def test_a_maximum_that_is_nan_has_no_gradient(kernel: int) -> None:
    x = np.where(np.arange(25) < 24, 0, np.nan).reshape(1, 1, 5, 5)
    axes = make_regular(Windows((kernel, kernel), (1, 1), ((0, 0),) * 2, (1, 1)), (5, 5), (6 - kernel,) * 2)
    out = maximum(x, axes)
    expected = (x == 0) & (kernel == 1)  # Paddle 1.8.5 compares each element with the maximum
    assert maximum_dx(x, out, np.ones_like(out), axes).tolist() == expected.astype(float).tolist()


@pytest.mark.parametrize("dtype", [np.float32, np.float64], ids=str)
def test_the_gradient_of_a_global_max_pool_goes_to_the_first_maximum(dtype: Any) -> None:
    rng = np.random.default_rng(4)
    x = rng.integers(0, 9, (5, 7, 6, 6)).astype(dtype)  # many maxima are equal
    d_out = rng.standard_normal((5, 7, 1, 1)).astype(dtype)
    back, given = registry.find("pool2d_grad"), {"ksize": [1, 1], "global_pooling": True}
    expected = np.zeros((35, 36), dtype)
    expected[np.arange(35), [row.tolist().index(row.max()) for row in x.reshape(35, 36)]] = d_out.ravel()
    keywords = back.make_forward_keywords(full_attrs(back, given | {"pooling_type": "max"}))
    dx = back.forward(x, x.max((2, 3), keepdims=True), d_out, **keywords)
    np.testing.assert_array_equal(dx.reshape(35, 36), expected)
    op = registry.find("pool2d")
    mean = op.forward(x, **op.make_forward_keywords(full_attrs(op, given | {"pooling_type": "avg"})))
    assert mean.dtype == dtype
    # sums of small integers are exact; one rounding by the division
    np.testing.assert_allclose(mean[..., 0, 0], x.sum((2, 3)) / 36, rtol=2 * np.finfo(dtype).eps)
