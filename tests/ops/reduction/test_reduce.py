"""Reductions of arrays without rows, such as what a filter left nothing of, as Fluid 1.8.5 computes them."""

from __future__ import annotations

import numpy as np
import pytest

import paddlelike as fluid
from tests.helpers.fresh import fresh_programs


@pytest.mark.filterwarnings("ignore:variable 'x' is fed a batch of no rows")
@pytest.mark.parametrize("keep_dim", [False, True])
@pytest.mark.parametrize("layer", ["reduce_sum", "reduce_mean"])
@pytest.mark.parametrize("dim", [0, 1, [0, 1], None], ids=str)
def test_without_rows_sums_are_zero_and_the_mean_is_nan(
    dim: int | list[int] | None, layer: str, keep_dim: bool
) -> None:
    axes = tuple(dim) if isinstance(dim, list) else dim
    none = np.zeros((0, 3, 2), "float32")
    expected = none.sum(axes, keepdims=keep_dim)
    if layer == "reduce_mean" and dim != 1:
        expected = expected + np.nan
    with fresh_programs() as (main, _):
        x = fluid.data("x", [None, 3, 2])
        x.stop_gradient = False
        out = getattr(fluid.layers, layer)(x, dim=dim, keep_dim=keep_dim)
        (d_x,) = fluid.gradients([out], [x])
        found, slope = fluid.Executor().run(main, feed={"x": none}, fetch_list=[out, d_x], return_numpy=False)
    assert np.array_equal(found.array, np.atleast_1d(expected), equal_nan=True)
    assert found.array.dtype == np.float32
    assert slope.array.shape == none.shape
