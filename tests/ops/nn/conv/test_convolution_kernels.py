"""Every way of computing a convolution, in shapes that reach it, against the sum that defines it."""

from __future__ import annotations

import itertools
from typing import Any, NamedTuple

import numpy as np
import pytest

from paddlelike.ops.kernels.nn.conv import channels_first, channels_last, winograd
from paddlelike.ops.kernels.nn.conv.convolve import convolve, convolve_dw, convolve_dx
from paddlelike.ops.kernels.nn.image.layouts import as_channels_last, is_last_in_memory, view_channels_first
from paddlelike.ops.kernels.nn.image.windows import Windows
from tests.helpers.fast_kernels import force_kernels

Array = np.ndarray[Any, Any]


class Shapes(NamedTuple):
    batch: int = 2
    channels: int = 6
    size: tuple[int, int] = (7, 6)
    filters: int = 5
    kernel: tuple[int, int] = (3, 3)
    strides: tuple[int, int] = (1, 1)
    pads: tuple[tuple[int, int], tuple[int, int]] = ((1, 1), (1, 1))
    dilations: tuple[int, int] = (1, 1)
    groups: int = 1

    @property
    def windows(self) -> Windows:
        return Windows(self.kernel, self.strides, self.pads, self.dilations)


CASES = {
    "3x3": Shapes(),
    "no padding": Shapes(pads=((0, 0), (0, 0))),
    "one channel": Shapes(channels=1, kernel=(5, 5), pads=((2, 2), (2, 2))),
    "one filter": Shapes(filters=1),
    "stride 2": Shapes(strides=(2, 2)),
    "stride 2, even": Shapes(size=(8, 8), kernel=(4, 4), strides=(2, 2)),
    "stride 3 over a small kernel": Shapes(kernel=(2, 2), strides=(3, 3), pads=((0, 0), (0, 0))),
    "strides 1 and 2": Shapes(strides=(1, 2)),
    "uneven padding": Shapes(pads=((2, 0), (0, 1)), strides=(2, 1)),
    "more padding than kernel": Shapes(kernel=(2, 2), pads=((3, 3), (2, 3))),
    "dilation": Shapes(dilations=(2, 1)),
    "dilation and stride": Shapes(dilations=(1, 2), strides=(2, 2)),
    "large kernel": Shapes(size=(9, 9), kernel=(7, 7), pads=((0, 0), (0, 0))),
    "few channels": Shapes(channels=2, filters=11, kernel=(5, 5), pads=((2, 2), (2, 2))),
    "few channels, stride 2": Shapes(channels=1, filters=4, size=(8, 9), kernel=(4, 4), strides=(2, 2)),
    "1x1": Shapes(kernel=(1, 1), pads=((0, 0), (0, 0))),
    "1x1, stride 2": Shapes(kernel=(1, 1), pads=((0, 0), (0, 0)), strides=(2, 2)),
    "1x1, padded": Shapes(kernel=(1, 1)),
    "parts of images": Shapes(batch=2, channels=16, size=(40, 40), filters=8),
    "several images at once": Shapes(batch=5, channels=64, size=(12, 12), filters=8),
    "depthwise": Shapes(filters=6, groups=6),
    "depthwise, stride 2": Shapes(filters=6, groups=6, strides=(2, 2)),
    "depthwise, dilation": Shapes(filters=6, groups=6, dilations=(2, 2)),
    "depthwise, wide": Shapes(filters=6, groups=6, kernel=(2, 5), strides=(2, 1), pads=((0, 1), (2, 2))),
    "depthwise, parts of images": Shapes(1, 64, (40, 30), 64, groups=64),
    "groups": Shapes(filters=4, groups=2),
    "two filters a channel": Shapes(filters=12, groups=6),
    "empty batch": Shapes(batch=0),
    "depthwise, empty batch": Shapes(batch=0, filters=6, groups=6),
}


@pytest.fixture(params=CASES.values(), ids=CASES.keys())
def shapes(request: pytest.FixtureRequest) -> Shapes:
    return request.param


def draw(shapes: Shapes) -> tuple[Array, Array, Array]:
    """An input, a filter and a gradient of the output, in float64."""
    rng = np.random.default_rng(11)
    x = rng.standard_normal((shapes.batch, shapes.channels, *shapes.size))
    w = rng.standard_normal((shapes.filters, shapes.channels // shapes.groups, *shapes.kernel))
    d_out = rng.standard_normal((shapes.batch, shapes.filters, *shapes.windows.counts(shapes.size)))
    return x, w, d_out


def place(array: Array, channels_last: bool) -> Array:
    return view_channels_first(as_channels_last(array).copy()) if channels_last else array


def define(x: Array, w: Array, shapes: Shapes) -> Array:
    """The convolution, one product of scalars after the other in the kernel."""
    padded = np.pad(x, ((0, 0), (0, 0), *shapes.pads))
    high, wide = shapes.windows.counts(shapes.size)
    out = np.zeros((len(x), len(w), high, wide))
    per_group, taken = len(w) // shapes.groups, w.shape[1]
    for o, c, i, j in itertools.product(*map(range, w.shape)):
        top, left = i * shapes.dilations[0], j * shapes.dilations[1]
        down, right = shapes.strides
        seen = padded[:, o // per_group * taken + c, top::down, left::right][:, :high, :wide]
        out[:, o] += w[o, c, i, j] * seen
    return out


@pytest.mark.parametrize("channels_last", [False, True])
def test_a_convolution_is_the_sum_over_its_windows(shapes: Shapes, channels_last: bool) -> None:
    x, w, _ = draw(shapes)
    out = convolve(place(x, channels_last), w, shapes.windows, shapes.groups)
    np.testing.assert_allclose(out, define(x, w, shapes), rtol=1e-12, atol=1e-12)  # sums in another order


@pytest.mark.parametrize("channels_last", [False, True])
def test_gradients_are_adjoint_to_the_convolution(shapes: Shapes, channels_last: bool) -> None:
    x, w, d_out = draw(shapes)
    rng = np.random.default_rng(12)
    dx = convolve_dx(place(d_out, channels_last), w, shapes.windows, shapes.groups, shapes.size)
    dw = convolve_dw(place(x, channels_last), place(d_out, channels_last), shapes.windows, shapes.groups)
    assert dx.shape == x.shape
    assert dw.shape == w.shape
    assert dw.flags.c_contiguous  # it is sent and saved as it lies
    for _ in range(3):  # the convolution is linear in x and in w
        u, v = rng.standard_normal(x.shape), rng.standard_normal(w.shape)
        assert np.vdot(dx, u) == pytest.approx(np.vdot(d_out, define(u, w, shapes)), rel=1e-9, abs=1e-9)
        assert np.vdot(dw, v) == pytest.approx(np.vdot(d_out, define(x, v, shapes)), rel=1e-9, abs=1e-9)


IN_PARTS = {
    "groups": Shapes(batch=3, filters=4, groups=2),
    "stride": Shapes(size=(11, 6), filters=4, groups=2, strides=(2, 2)),
    "dilation": Shapes(size=(11, 8), filters=12, groups=6, dilations=(3, 1)),
}


@pytest.mark.parametrize("size", [1, 1 << 10, 1 << 12], ids=["rows", "several rows", "groups"])
@pytest.mark.parametrize("shapes", IN_PARTS.values(), ids=IN_PARTS.keys())
def test_convolutions_are_split_by_images_groups_and_rows(
    shapes: Shapes, size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(channels_first, "_CHUNK", size)
    test_a_convolution_is_the_sum_over_its_windows(shapes, False)
    test_gradients_are_adjoint_to_the_convolution(shapes, True)


MINIMAL = {
    "even": Shapes(size=(8, 6)),
    "odd": Shapes(),
    "no padding": Shapes(pads=((0, 0), (0, 0))),
    "uneven padding": Shapes(pads=((2, 0), (0, 1))),
    "one row": Shapes(size=(1, 5)),
    "parts of images": Shapes(batch=2, channels=16, size=(40, 40), filters=8),
    "several images at once": Shapes(batch=5, size=(5, 5)),
}


@pytest.mark.parametrize("shapes", MINIMAL.values(), ids=MINIMAL.keys())
def test_minimal_filtering_is_the_sum_over_windows(shapes: Shapes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(winograd, "_CHUNK", 1 << 16)
    monkeypatch.setattr(winograd, "_ROWS", 32)
    x, w, _ = draw(shapes)
    out = view_channels_first(winograd.convolve(as_channels_last(x), w, shapes.windows))
    np.testing.assert_allclose(out, define(x, w, shapes), rtol=1e-11, atol=1e-11)  # sums in another order


def test_minimal_filtering_is_as_exact_as_the_sum_in_float32() -> None:
    shapes = Shapes(batch=2, channels=64, size=(24, 24), filters=64)
    x, w = (array.astype(np.float32) for array in draw(shapes)[:2])
    pixels = as_channels_last(x)
    assert winograd.pays(pixels, w, shapes.windows)
    exact = channels_last.convolve(pixels[:1].astype(np.float64), w.astype(np.float64), shapes.windows)
    error = np.abs(winograd.convolve(pixels, w, shapes.windows)[:1] - exact).max() / np.abs(exact).max()
    assert error < 2e-6  # 576 products of float32, whose sum in order has 6e-7


@pytest.mark.parametrize(
    "name", ["depthwise", "depthwise, stride 2", "depthwise, dilation", "depthwise, wide"]
)
def test_compiled_sums_of_depthwise_convolutions_match_numpy(name: str) -> None:
    shapes = CASES[name]
    x, w, d_out = draw(shapes)

    def compute() -> list[Array]:
        return [
            convolve(x, w, shapes.windows, 6),
            convolve_dw(x, d_out, shapes.windows, 6),
            convolve_dx(d_out, w, shapes.windows, 6, shapes.size),
        ]

    plain = compute()
    with force_kernels(compiled=False) as called:
        found = compute()
    assert called == {"depthwise.convolve", "depthwise.convolve_dw"}
    for one, other in zip(found, plain, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-12)  # sums in another order


def test_results_keep_their_channels_last_in_memory() -> None:
    x, w, d_out = draw(Shapes())
    assert is_last_in_memory(convolve(x, w, Shapes().windows, 1))
    assert is_last_in_memory(convolve_dx(d_out, w, Shapes().windows, 1, x.shape[2:]))
