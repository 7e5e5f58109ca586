"""LoDs of inputs are passed on to outputs that have the same rows."""

from __future__ import annotations

from typing import Any

import numpy as np

import paddlelike as fluid
from paddlelike.executor.plans.rewrites.scalars import make_lod_sharer
from paddlelike.framework.opdef import registry

LOD = [[0, 2, 3]]


def sharer(op: Any) -> Any:
    """The function for an operator whose variables have the positions 0, 1, ... in order of first use."""
    positions: dict[str, int] = {}
    names = [*op.input_arg_names, *op.output_arg_names]
    for name in names:
        positions.setdefault(name, len(positions))
    return make_lod_sharer(registry.find(op.type), op, positions.__getitem__)


def test_an_elementwise_operator_passes_the_lod_on() -> None:
    share = sharer(fluid.layers.relu(fluid.data("x", [None, 4], lod_level=1)).op)
    lods = {0: LOD}
    share(lods, np.ones((3, 4)))
    assert lods == {0: LOD, 1: LOD}


def test_a_result_with_other_rows_gets_none() -> None:
    share = sharer(fluid.layers.relu(fluid.data("x", [None, 4], lod_level=1)).op)
    lods = {0: LOD, 1: [[0, 9]]}
    share(lods, np.ones((6, 2)))
    assert lods == {0: LOD}


def test_before_the_kernel_every_output_gets_it() -> None:
    share = sharer(fluid.layers.relu(fluid.data("x", [None, 4], lod_level=1)).op)
    lods = {0: LOD}
    share(lods, None)
    assert lods[1] == LOD


def test_an_output_without_a_lod_of_its_input_loses_an_older_one() -> None:
    share = sharer(fluid.layers.relu(fluid.data("x", [None, 4], lod_level=1)).op)
    lods: dict[int, Any] = {1: LOD}
    share(lods, np.ones((3, 4)))
    assert lods == {}


def test_operators_that_declare_no_lod_need_no_function() -> None:
    assert sharer(fluid.layers.mean(fluid.data("x", [None, 4])).op) is None
