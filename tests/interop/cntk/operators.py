"""Small models of the real CNTK 2.7, one an operation or layer, with inputs and outputs.

``dump_cntk.py``, ``dump_cntk_stacks.py`` and ``dump_cntk_networks.py`` of ``tests/interop/dumps`` make them.
"""

from __future__ import annotations

import io
import lzma
from functools import cache
from typing import Any

import numpy as np

import paddlelike as fluid
from paddlelike.core import LoDTensor
from tests.helpers.golden_data import GOLDEN

Arrays = dict[str, Any]


@cache
def read_cases() -> dict[str, Arrays]:
    """Return the arrays of each case: ``model``, ``x0``, ``l0`` (lengths), ``y0``, ``m0`` (lengths of y0)."""
    stacks = {name: case for name, case in _read("stacks").items() if "y0" in case}
    return _read("operators") | stacks | _read("networks")


def read_without_outputs() -> dict[str, Arrays]:
    """Return the cases whose outputs are random, or known to no CPU."""
    return {name: case for name, case in _read("stacks").items() if "y0" not in case}


@cache
def _read(archive: str) -> dict[str, Arrays]:
    data = lzma.decompress((GOLDEN / "cntk" / f"{archive}.npz.xz").read_bytes())
    cases: dict[str, Arrays] = {}
    with np.load(io.BytesIO(data)) as file:
        for key in file.files:
            name, part = key.split("/")
            cases.setdefault(name, {})[part] = file[key]
    return cases


def make_feed(case: Arrays, feeds: list[str]) -> Arrays:
    """Return what the inputs ``x0``, ``x1`` are fed; sequences as LoDTensors."""
    feed: Arrays = {}
    for name in feeds:
        feed[name] = case[name]
        if f"l{name[1:]}" in case:
            tensor = LoDTensor(case[name])
            tensor.set_recursive_sequence_lengths([case[f"l{name[1:]}"].tolist()])
            feed[name] = tensor
    return feed


def run(program: fluid.Program, feed: Arrays, fetches: list[Any]) -> list[np.ndarray]:
    """Return the outputs of a program in the current scope."""
    return [np.asarray(one.array) for one in run_tensors(program, feed, fetches)]


def run_tensors(program: fluid.Program, feed: Arrays, fetches: list[Any]) -> list[LoDTensor]:
    """Return the outputs of a program in the current scope, with their LoD."""
    return fluid.Executor().run(program, feed=feed, fetch_list=fetches, return_numpy=False)


def compare(outputs: list[np.ndarray], case: Arrays) -> None:
    """Assert that outputs are CNTK's. A value without dims is one of shape [1] in Fluid."""
    for index, out in enumerate(outputs):
        real = case[f"y{index}"]
        assert out.dtype == real.dtype
        assert out.shape == (real.shape or (1,))
        # float32, summed in another order, and exp, log, tanh of another library
        np.testing.assert_allclose(out.reshape(real.shape), real, rtol=2e-5, atol=1e-5)
