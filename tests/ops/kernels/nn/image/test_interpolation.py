"""Resizing by small matrix products: what is not finite stays where the formula puts it."""

from __future__ import annotations

import numpy as np
import pytest

import paddlelike as fluid
from paddlelike.errors import OperatorError, OutOfMemoryError
from paddlelike.ops.kernels.nn.image.interpolation import resize, resize_dx
from paddlelike.ops.kernels.nn.image.layouts import as_channels_last, is_last_in_memory, view_channels_first
from paddlelike.ops.nn.image.interpolate import TAPS

SIZES, COUNTS = (40, 5), (90, 61)
FIND = TAPS["bilinear"]
TAPS_OF_BOTH = [FIND(n, m, True, 1) for n, m in zip(SIZES, COUNTS, strict=True)]
RNG = np.random.default_rng(3)


@pytest.mark.parametrize("value", [np.nan, np.inf])
@pytest.mark.parametrize("last", [False, True], ids=["C-order", "channels-last"])
def test_one_pixel_that_is_not_finite_reaches_only_its_neighbours(value: float, last: bool) -> None:
    x = RNG.standard_normal((2, 3, *SIZES))
    x[1, 2, 20, 3] = value
    given = view_channels_first(as_channels_last(x)) if last else x
    with np.errstate(invalid="ignore"):
        out = resize(given, TAPS_OF_BOTH)
    assert is_last_in_memory(out) == last
    # The tap beside a pixel that is met exactly has the weight 0, and 0 times NaN is NaN.
    rows, columns = ([i for i in range(m) if abs(i * (n - 1) / (m - 1) - at) < 1 + 1e-9]
                     for n, m, at in zip(SIZES, COUNTS, (20, 3), strict=True))  # fmt: skip
    reached = np.zeros(out.shape, bool)
    reached[1, 2, rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1] = True
    assert not (~np.isfinite(out) & ~reached).any()
    assert not np.isfinite(out[1, 2, rows[len(rows) // 2], columns[len(columns) // 2]])


def test_the_gradient_is_the_transposed_map_even_beside_a_pixel_that_is_not_finite() -> None:
    x, d_out = RNG.standard_normal((2, 3, *SIZES)), RNG.standard_normal((2, 3, *COUNTS))
    dx = resize_dx(d_out, TAPS_OF_BOTH, SIZES)
    assert (resize(x, TAPS_OF_BOTH) * d_out).sum() == pytest.approx((x * dx).sum())
    d_out[0, 0, 45, 30] = np.nan
    odd = resize_dx(d_out, TAPS_OF_BOTH, SIZES)
    clean = np.isfinite(odd)
    assert (~clean).sum() <= 4
    np.testing.assert_allclose(odd[clean], dx[clean])


@pytest.mark.parametrize("method", ["bilinear", "nearest", "trilinear", "bicubic"])
def test_a_size_near_the_limit_of_integers_is_refused_before_anything_is_computed(method: str) -> None:
    most, dims = 2**31 - 1, 3 if method == "trilinear" else 2
    with fluid.program_guard(fluid.Program(), fluid.Program()), fluid.scope_guard(fluid.Scope()):
        x = fluid.data("x", [1, 1, *[2] * dims])
        block = fluid.default_main_program().global_block()
        out = block.create_var(name="out", dtype="float32")
        attrs = {"interp_method": method, "out_h": most, "out_w": most, "out_d": most}
        block.append_op(f"{method}_interp", inputs={"X": x}, outputs={"Out": out}, attrs=attrs)
        feed = {"x": np.ones((1, 1, *[2] * dims), "float32")}
        with pytest.raises(
            OperatorError, match=f"{method}_interp: the output size is .* cannot be allocated"
        ) as e:
            fluid.Executor().run(feed=feed, fetch_list=[out])
    assert isinstance(e.value.__cause__, OutOfMemoryError)
