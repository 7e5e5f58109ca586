"""Functions and classes of earlier releases are found where they are now, by pickles and bundles."""

from __future__ import annotations

import importlib
import io
import pickle

import pytest

import paddlelike as fluid
from tests.helpers.golden_data import GOLDEN

MOVED = [line.split() for line in (GOLDEN / "pickles" / "moved.txt").read_text().splitlines()]


def write_reference(module: str, name: str) -> bytes:
    return f"c{module}\n{name}\n.".encode()


def test_a_pickle_finds_functions_under_names_of_an_earlier_release() -> None:
    assert len(MOVED) > 300
    for module, name in MOVED:
        found = pickle.loads(write_reference(module, name))
        assert found.__name__ == name, module
        assert pickle.loads(pickle.dumps(found)) is found


def test_a_bundle_loads_an_allowed_function_by_its_earlier_name() -> None:
    data = write_reference("paddlelike.layers.loss.ctc", "warpctc")
    assert fluid.bundle.load(io.BytesIO(data), classes=[fluid.layers.warpctc]) is fluid.layers.warpctc
    with pytest.raises(fluid.errors.FormatError, match="not on the list of allowed classes"):
        fluid.bundle.load(io.BytesIO(data), classes=[fluid.layers.relu])


def test_a_module_that_never_existed_is_not_found() -> None:
    for name in ("paddlelike.layers.loss.typo", "paddlelike.layers.metric.typo"):
        with pytest.raises(ModuleNotFoundError, match=name):
            importlib.import_module(name)
