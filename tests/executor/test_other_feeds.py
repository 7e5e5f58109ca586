"""Feeds of other dtypes and shapes than the declared ones, which Fluid's kernels take as they come."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import paddlelike as fluid
from paddlelike.errors import FeedError

layers = fluid.layers


def run(fetch: Any, **feed: Any) -> Any:
    return fluid.Executor(fluid.CPUPlace()).run(feed=feed, fetch_list=[fetch], return_numpy=False)[0]


@pytest.mark.filterwarnings("ignore:variable 'x' has shape")
def test_a_flat_array_fits_a_variable_of_its_length() -> None:
    x = fluid.data("x", [4, 1])
    assert np.array(run(layers.scale(x, 2.0), x=np.ones(4, "float32"))).tolist() == [2.0] * 4
    with pytest.raises(FeedError, match=r"shape \[4, 1\], the fed array has \[3\]"):
        run(layers.scale(x, 2.0), x=np.ones(3, "float32"))


# What real Fluid 1.8.5 gives: its factor is an integer where the numbers are.
@pytest.mark.parametrize(
    ("scale", "bias", "wanted"), [(0.5, 0.0, [0, 0, 0]), (2.5, 0.0, [2, 4, 6]), (2.5, 1.5, [3, 5, 7])]
)
def test_integers_for_real_numbers_are_scaled_as_integers(
    scale: float, bias: float, wanted: list[int]
) -> None:
    x = layers.data("x", [1])
    out = layers.scale(x, scale, bias=bias)
    for _ in range(2):
        found = np.array(run(out, x=np.array([[1], [2], [3]])))
        assert (found.dtype, found.reshape(-1).tolist()) == (np.int64, wanted)
    assert np.array(run(out, x=np.ones((1, 1), "float32"))).dtype == np.float32


@pytest.mark.filterwarnings("ignore:variable 'y' has shape")
@pytest.mark.parametrize("width", [2, 3])
def test_a_flat_operand_is_aligned_by_the_shape_that_came(width: int) -> None:
    x, y = layers.data("x", [width]), layers.data("y", [1])
    out = layers.elementwise_add(x, y, axis=0)
    found = np.array(run(out, x=np.zeros((2, width), "float32"), y=np.array([1, 2], "float32")))
    assert found.tolist() == [[1.0] * width, [2.0] * width]


@pytest.mark.parametrize(
    "layer",
    [
        lambda x: layers.sequence_pool(x, "sum"),
        lambda x: layers.sequence_pad(x, layers.assign(np.zeros(1, "float32")))[0],
        lambda x: layers.relu(x),
        lambda x: layers.reshape(x, [-1, 1, 2]),
        lambda x: layers.sequence_slice(
            x, layers.assign(np.zeros((2, 1), "int64")), layers.assign(np.ones((2, 1), "int64"))
        ),
        lambda x: layers.sequence_concat([x, x]),
    ],
    ids=["pool", "pad", "relu", "reshape", "slice", "concat"],
)
def test_gradients_have_the_sequences_of_their_variable(layer: Any) -> None:
    x = fluid.data("x", [None, 2], lod_level=1)
    x.stop_gradient = False
    (slope,) = fluid.gradients([layers.reduce_sum(layer(x))], [x])
    fed = fluid.create_lod_tensor(np.ones((5, 2), "float32"), [[2, 3]], fluid.CPUPlace())
    assert run(slope, x=fed).lod() == [[0, 2, 5]]
