"""Layers with a name, with unnamed attributes, or with both name their variables as real Fluid 1.8.5 does."""

from __future__ import annotations

import gzip
import inspect
import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import paddlelike as fluid
from tests.helpers.fresh import fresh_programs
from tests.layers.naming import WAYS, list_names, list_networks

with gzip.open(Path(__file__).parent / "naming.json.gz") as file:
    GOLDEN: dict[str, dict[str, Any]] = json.load(file)


@pytest.mark.parametrize("way", WAYS)
def test_variables_are_named_as_in_fluid(way: str) -> None:
    assert sorted(GOLDEN[way]) == list_networks(fluid)
    other = {}
    for network, names in GOLDEN[way].items():
        with fresh_programs(), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = list_names(fluid, network, way)
        if found != names:
            other[network] = sorted(set(found) ^ set(names)) or found
    assert not other


def test_a_named_parameter_with_an_unnamed_attribute_is_saved_under_the_name_of_fluid(tmp_path: Path) -> None:
    attr = fluid.ParamAttr(initializer=fluid.initializer.Constant(2.0))
    fluid.layers.create_parameter([2], "float32", name="w", attr=attr)
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(fluid.default_startup_program())
    fluid.io.save_persistables(exe, str(tmp_path), manifest=False)
    assert [file.name for file in tmp_path.iterdir()] == ["w.w_0"]
    assert np.array(fluid.global_scope().find_var("w.w_0").get_tensor()).tolist() == [2, 2]


def test_every_layer_is_documented() -> None:
    for name in fluid.layers.__all__:
        assert (inspect.getdoc(getattr(fluid.layers, name)) or "").strip(), name


def test_layers_are_listed_in_order() -> None:
    assert fluid.layers.__all__ == sorted(fluid.layers.__all__)
