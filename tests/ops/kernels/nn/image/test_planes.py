"""Normalisation of images in C order beside its formula in float64, for planes of every kind of length."""

from __future__ import annotations

import numpy as np
import pytest

from paddlelike.ops.kernels.nn.image.layouts import as_channels_last, view_channels_first
from paddlelike.ops.kernels.nn.image.planes import (
    is_in_planes,
    normalize_planes,
    normalize_planes_dx,
    scale_planes,
)

SHAPES = [(3, 70, 3, 3), (2, 5, 12, 12), (1, 3, 70, 70), (2, 2, 95, 97), (4, 600, 16, 16), (2, 3, 2, 3, 4)]


def make_images(shape: tuple[int, ...]) -> list[np.ndarray]:
    rng = np.random.default_rng(3)
    whole = [rng.standard_normal(shape) + 3, rng.standard_normal(shape)]
    return [each.astype(np.float32) for each in (*whole, *rng.uniform(0.5, 2, (2, shape[1])))]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_normalized_images_in_c_order_match_the_formula(shape: tuple[int, ...]) -> None:
    x, d, scale, bias = make_images(shape)
    y, mean, variance, inverse = normalize_planes(x, scale, bias, 1e-5)
    dx, d_scale, d_bias = normalize_planes_dx(x, d, mean, inverse, scale * inverse, fixed=False)
    flat, d_flat = (np.moveaxis(a, 1, 0).reshape(shape[1], -1).astype(np.float64) for a in (x, d))
    hat = (flat - flat.mean(1, keepdims=True)) / np.sqrt(flat.var(1, keepdims=True) + 1e-5)
    slope = scale[:, None] / np.sqrt(flat.var(1, keepdims=True) + 1e-5)
    expected = {
        "y": (y, hat * scale[:, None] + bias[:, None]),
        "mean": (mean, flat.mean(1)),
        "variance": (variance, flat.var(1)),
        "dx": (dx, slope * (d_flat - d_flat.mean(1)[:, None] - hat * (hat * d_flat).mean(1)[:, None])),
        "d_scale": (d_scale, (hat * d_flat).sum(1)),
        "d_bias": (d_bias, d_flat.sum(1)),
    }
    for name, (got, wanted) in expected.items():
        if got.ndim > 1:
            assert got.flags.c_contiguous, name
            got = np.moveaxis(got, 1, 0).reshape(shape[1], -1)
        # some roundings of float32, each of the largest number; terms of a sum may cancel each other
        largest = np.abs(wanted).max() + (flat.shape[1] ** 0.5 if name in ("d_scale", "d_bias") else 0)
        np.testing.assert_allclose(got, wanted, rtol=0, atol=1e-6 * largest, err_msg=name)


def test_fixed_statistics_scale_planes() -> None:
    x, d, scale, bias = make_images((2, 5, 4, 6))
    each = (slice(None), None, None)
    np.testing.assert_array_equal(scale_planes(x, scale, bias), x * scale[each] + bias[each])
    dx, d_scale, _ = normalize_planes_dx(x, d, bias, scale, scale, fixed=True)
    np.testing.assert_array_equal(dx, d * scale[each])
    # sums of 48 numbers in float32 and in float64
    wanted = ((x - bias[each]) * d * scale[each]).sum((0, 2, 3), np.float64)
    np.testing.assert_allclose(d_scale, wanted, rtol=1e-5, atol=1e-5)


def test_a_gradient_with_its_channels_last_gives_the_same_bits() -> None:
    x, d, scale, bias = make_images((2, 8, 5, 7))
    moved = view_channels_first(as_channels_last(d))
    pair = [normalize_planes_dx(x, each, bias, scale, scale, fixed=False) for each in (d, moved)]
    for one, other in zip(*pair, strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize(
    ("x", "layout", "expected"),
    [
        (np.zeros((2, 3, 4, 4)), "NCHW", True),
        (np.zeros((2, 3, 4, 4)), "NHWC", False),
        (np.zeros((2, 3)), "NCHW", False),
        (np.zeros((2, 3, 1, 2)), "NCHW", False),
        (np.moveaxis(np.zeros((2, 4, 4, 3)), -1, 1), "NCHW", False),
    ],
    ids=["C order", "NHWC", "rows", "short planes", "channels last in memory"],
)
def test_planes_are_used_only_for_suitable_images(x: np.ndarray, layout: str, expected: bool) -> None:
    assert is_in_planes(x, layout) is expected
