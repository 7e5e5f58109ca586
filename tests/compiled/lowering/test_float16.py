"""Numbers of 16 bits: rounded where the program rounds them, and added up in 32 bits."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytest.importorskip("jax", reason="the extra `jax` is not installed", exc_type=ImportError)

import paddlelike as fluid
from tests.compiled.harness.nets import L, build, train

pytestmark = pytest.mark.slow


def test_a_cast_to_float16_and_back_rounds() -> None:
    def make() -> Any:
        return L.cast(L.cast(L.tanh(fluid.data("x", [None, 4])), "float16"), "float32")

    x = np.random.default_rng(1).standard_normal((5, 4)).astype("float32")
    ((found,),) = train(build(make), [{"x": x}])
    rounded = np.tanh(x).astype("float16").astype("float32")
    # The last bit of tanh may decide where it is rounded to.
    np.testing.assert_allclose(found, rounded, rtol=2**-10)
    np.testing.assert_array_equal(found, found.astype("float16").astype("float32"))


def test_the_elements_of_a_window_are_added_up_in_float32() -> None:
    def make() -> Any:
        x = L.cast(fluid.data("x", [None, 3, 9, 9]), "float16")
        w = L.cast(fluid.data("w", [3, 1, 3, 3]), "float16")
        out = fluid.default_main_program().global_block().create_var(name="out", dtype="float16")
        fluid.default_main_program().global_block().append_op(
            type="depthwise_conv2d", inputs={"Input": [x], "Filter": [w]}, outputs={"Output": [out]},
            attrs={"groups": 3, "strides": [1, 1], "paddings": [0, 0], "dilations": [1, 1]},
        )  # fmt: skip
        return out

    rng = np.random.default_rng(2)
    x, w = (rng.standard_normal(shape).astype("float16") for shape in ((2, 3, 9, 9), (3, 1, 3, 3)))
    feed = {"x": x.astype("float32"), "w": w.astype("float32")}
    ((found,),) = train(build(make), [feed])
    windows = np.lib.stride_tricks.sliding_window_view(x.astype("float64"), (3, 3), (2, 3))
    wanted = np.einsum("nchwij,cij->nchw", windows, w[:, 0].astype("float64"))
    assert found.dtype == np.float16
    # One rounding, of 11 bits; sums in float16 would be four times as far away.
    np.testing.assert_allclose(found, wanted, rtol=2**-11, atol=1e-6)
