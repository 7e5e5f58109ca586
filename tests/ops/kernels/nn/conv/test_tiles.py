"""Winograd's minimal filtering with compiled sums, beside the plain sums in float64."""

from __future__ import annotations

import numpy as np
import pytest

from paddlelike.framework.opdef import Array
from paddlelike.ops.kernels.nn.conv import channels_first, tiles
from paddlelike.ops.kernels.nn.image.windows import Windows
from tests.helpers.fast_kernels import force_kernels, needs_numba

RNG = np.random.default_rng(9)


def make(
    shape: tuple[int, ...], filters: int, pads: tuple[tuple[int, int], ...]
) -> tuple[Array, Array, Array, Windows]:
    """Return ``x`` (N, H, W, C), ``w``, the gradient of the output, and the windows."""
    windows = Windows((3, 3), (1, 1), pads, (1, 1))
    x = RNG.standard_normal(shape).astype(np.float32)
    w = RNG.standard_normal((filters, shape[3], 3, 3)).astype(np.float32)
    d_out = RNG.standard_normal((shape[0], *windows.counts(shape[1:3]), filters)).astype(np.float32)
    return x, w, d_out, windows


def compare(x: Array, w: Array, d_out: Array, windows: Windows) -> None:
    first = lambda a: np.moveaxis(a.astype(np.float64), -1, 1)
    want = np.moveaxis(channels_first.convolve(first(x), w.astype(np.float64), windows, 1), 1, -1)
    want_dw = channels_first.convolve_dw(first(x), first(d_out), windows, 1)
    for got, exact in (
        (tiles.convolve(x, w, windows), want),
        (tiles.convolve_dw(x, d_out, windows), want_dw),
    ):
        assert got.dtype == np.float32
        # Roundings of float32 over the largest sum, as plain sums in float32 have them.
        np.testing.assert_allclose(got, exact, 0, 2e-6 * np.abs(exact).max())


@pytest.mark.parametrize("pads", [((1, 1), (1, 1)), ((0, 0), (0, 0)), ((2, 0), (0, 1))], ids=str)
@pytest.mark.parametrize("shape", [(2, 6, 8, 3), (1, 5, 7, 2), (3, 4, 3, 1)], ids=str)
def test_convolution_by_tiles_matches_the_definition(
    shape: tuple[int, ...], pads: tuple[tuple[int, int], ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tiles, "_CHUNK", 0)
    for rows in (1000, 8, 3):  # all at once, some images, some rows of tiles
        monkeypatch.setattr(tiles, "_ROWS", rows)
        with force_kernels(compiled=False) as called:
            compare(*make(shape, 4, pads))
        assert called == {"winograd.cut_tiles", "winograd.join_tiles", "winograd.spread_tiles"}


@needs_numba
@pytest.mark.slow
@pytest.mark.parametrize("shape", [(4, 17, 18, 16), (2, 40, 33, 20)], ids=str)
def test_compiled_convolution_by_tiles_matches_the_definition(shape: tuple[int, ...]) -> None:
    with force_kernels(compiled=True):
        x, w, d_out, windows = make(shape, 24, ((1, 1), (1, 1)))
        assert tiles.pays(x, w, 24, windows)
        compare(x, w, d_out, windows)


def test_tiles_are_not_used_for_other_windows_or_few_channels() -> None:
    x, w, _, windows = make((4, 32, 32, 16), 16, ((1, 1), (1, 1)))
    with force_kernels(compiled=False):
        assert tiles.pays(x, w, 16, windows)
        assert not tiles.pays(x, w, 8, windows)
        assert not tiles.pays(x[:, :8, :8], w, 16, windows)
        assert not tiles.pays(x, w.astype(np.float64), 16, windows)
        assert not tiles.pays(x, w, 16, windows._replace(strides=(2, 2)))
        assert not tiles.pays(x, w, 16, windows._replace(dilations=(2, 2)))
