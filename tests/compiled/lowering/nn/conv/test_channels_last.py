"""Convolutions in other forms than XLA's give what the kernels of numpy give, gradients as well."""

from __future__ import annotations

import numpy as np
import pytest

from paddlelike.ops.kernels.nn.conv.convolve import convolve, convolve_dw, convolve_dx
from paddlelike.ops.kernels.nn.image.windows import Windows

pytestmark = pytest.mark.slow

jax = pytest.importorskip("jax", reason="the extra `jax` is not installed", exc_type=ImportError)

CASES = {
    "two columns": (16, 16, Windows((3, 3), (1, 1), ((1, 1), (1, 1)), (1, 1))),
    "eight columns at steps": (3, 2, Windows((3, 5), (2, 2), ((1, 0), (2, 3)), (1, 1))),
    "much padding": (1, 6, Windows((2, 2), (1, 1), ((3, 1), (0, 4)), (2, 1))),
    "columns apart": (4, 8, Windows((3, 3), (1, 1), ((2, 2), (2, 2)), (1, 2))),
    "minimal filtering": (129, 130, Windows((3, 3), (1, 1), ((1, 1), (0, 3)), (1, 1))),
    "many filters": (16, 40, Windows((3, 1), (1, 1), ((1, 1), (0, 0)), (1, 1))),
}


@pytest.mark.parametrize("name", CASES)
def test_alternative_layouts_give_the_same_convolution(name: str) -> None:
    from paddlelike.compiled.backend import wide_types
    from paddlelike.compiled.lowering.nn.conv import channels_last

    channels, filters, windows = CASES[name]
    draw = np.random.default_rng(2)
    x, w = draw.normal(size=(2, channels, 11, 14)), draw.normal(size=(filters, channels, *windows.kernel))
    expected = convolve(x, w, windows, 1)
    d_out = draw.normal(size=expected.shape)
    dd_x = draw.normal(size=x.shape)

    def compute(x, w, d_out, dd_x):  # type: ignore[no-untyped-def]
        """Return results and gradients, and the gradients of the input's gradient."""
        out, pull = jax.vjp(lambda x, w: channels_last.convolve(x, w, windows, 1), x, w)
        _, pull_again = jax.vjp(lambda w, d: jax.vjp(lambda x: _last(x, w), x)[1](d)[0], w, d_out)
        return out, *pull(d_out), *pull_again(dd_x)

    def _last(x, w):  # type: ignore[no-untyped-def]
        return channels_last.convolve(x, w, windows, 1)

    with wide_types():
        turned = np.moveaxis(w, (0, 1), (-1, -2))
        found = jax.jit(compute)(
            *(np.moveaxis(x, 1, -1), turned), *(np.moveaxis(a, 1, -1) for a in (d_out, dd_x))
        )
    out, d_x, d_w, dd_w, dd_out = map(np.asarray, found)
    np.testing.assert_allclose(np.moveaxis(out, -1, 1), expected, atol=1e-10)
    np.testing.assert_allclose(
        np.moveaxis(d_x, -1, 1), convolve_dx(d_out, w, windows, 1, x.shape[2:]), atol=1e-10
    )
    for got, images in ((d_w, x), (dd_w, dd_x)):
        turned = np.moveaxis(got, (-1, -2), (0, 1))
        np.testing.assert_allclose(turned, convolve_dw(images, d_out, windows, 1), atol=1e-10)
    np.testing.assert_allclose(np.moveaxis(dd_out, -1, 1), convolve(dd_x, w, windows, 1), atol=1e-10)
