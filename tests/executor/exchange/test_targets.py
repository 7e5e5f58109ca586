"""Fluid's helpers around feeds and fetches."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import paddlelike as fluid
from paddlelike.errors import GraphError


def test_the_feeds_and_fetches_of_a_saved_model_are_compared(tmp_path: Path, exe: fluid.Executor) -> None:
    x = fluid.data("x", [None, 4])
    y = fluid.layers.scale(x, 2.0)
    has_feeds, has_fetches = fluid.executor.has_feed_operators, fluid.executor.has_fetch_operators
    assert not has_feeds(x.block, {"x": 1}, "feed")
    fluid.io.save_inference_model(str(tmp_path), ["x"], [y], exe)
    program = fluid.Program.parse_from_string((tmp_path / "__model__").read_bytes())
    block = program.global_block()
    (target,) = [block.var(op.input("X")[0]) for op in block.ops if op.type == "fetch"]
    assert has_feeds(block, {"x": 1}, "feed")
    assert has_fetches(block, [target], "fetch")
    with pytest.raises(GraphError, match=r"feed operators of \['x'\], expected those of \['z'\] at 'feed'"):
        has_feeds(block, ["z"], "feed")
    with pytest.raises(GraphError, match="at 'other'"):
        has_fetches(block, [target], "other")


def test_arrays_and_numbers_become_tensors() -> None:
    place = fluid.CPUPlace()
    make = fluid.executor._as_lodtensor
    np.testing.assert_array_equal(np.array(make(np.float32([1, 2]), place)), np.float32([1, 2]))
    assert np.array(make(3, place, "int64")).tolist() == [3]
    assert np.array(make(3, place, fluid.core.VarDesc.VarType.FP32)).dtype == np.float32
    with pytest.raises(TypeError, match="takes an array, or a number with its dtype"):
        make([1, 2], place)
