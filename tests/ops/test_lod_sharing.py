"""Sequences (LoD) pass from inputs to outputs where the rows stay the same, as in Paddle 1.8.5."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import paddlelike as fluid

LENGTHS = [[1, 2]]
ROWS = np.arange(6, dtype=np.float32).reshape(3, 2)


def _lengths_after(layer: Callable[[Any], Any]) -> list[list[int]]:
    main, startup = fluid.Program(), fluid.Program()
    with fluid.program_guard(main, startup), fluid.unique_name.guard():
        out = layer(fluid.data("x", [None, 2], "float32", lod_level=1))
    executor = fluid.Executor()
    if startup.global_block().ops:
        executor.run(startup)
    fed = fluid.create_lod_tensor(ROWS, LENGTHS, fluid.CPUPlace())
    (result,) = executor.run(main, {"x": fed}, [out], return_numpy=False)
    return result.recursive_sequence_lengths()


@pytest.mark.parametrize(
    ("layer", "lengths"),
    [
        pytest.param(lambda x: fluid.layers.reshape(x, [-1, 1, 2]), LENGTHS, id="reshape-same-rows"),
        pytest.param(lambda x: fluid.layers.reshape(x, [-1, 3]), [], id="reshape-other-rows"),
        pytest.param(lambda x: fluid.layers.unsqueeze(x, [1]), LENGTHS, id="unsqueeze-columns"),
        pytest.param(lambda x: fluid.layers.unsqueeze(x, [0]), [], id="unsqueeze-rows"),
        pytest.param(lambda x: fluid.layers.split(x, 2, dim=1)[1], LENGTHS, id="split-columns"),
        pytest.param(lambda x: fluid.layers.split(x, [1, 2], dim=0)[1], [], id="split-rows"),
        pytest.param(lambda x: fluid.layers.slice(x, [0], [1], [3]), [], id="slice-rows"),
        pytest.param(lambda x: fluid.layers.concat([x, x], axis=1), LENGTHS, id="concat-columns"),
        pytest.param(lambda x: fluid.layers.concat([x, x], axis=0), [[1, 2, 1, 2]], id="concat-rows"),
        pytest.param(lambda x: fluid.layers.transpose(x, [1, 0]), [], id="transpose"),
        pytest.param(lambda x: fluid.layers.dropout(x, 0.5), LENGTHS, id="dropout"),
        pytest.param(fluid.layers.sampling_id, LENGTHS, id="sampling_id"),
        pytest.param(lambda x: fluid.layers.row_conv(x, 1), LENGTHS, id="row_conv"),
        pytest.param(
            lambda x: fluid.layers.add_position_encoding(x, 1.0, 1.0), LENGTHS, id="add_position_encoding"
        ),
        pytest.param(lambda x: fluid.layers.continuous_value_model(x, x, use_cvm=True), LENGTHS, id="cvm"),
        pytest.param(fluid.contrib.layers.shuffle_batch, LENGTHS, id="shuffle_batch"),
    ],
)
def test_operators_that_keep_their_rows_keep_the_lod(
    layer: Callable[[Any], Any], lengths: list[list[int]]
) -> None:
    assert _lengths_after(layer) == lengths
