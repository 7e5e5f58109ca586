"""Fluid's modules below ``fluid.layers`` list what they list in Fluid 1.8.5 (modules185.txt)."""

from __future__ import annotations

import importlib
import inspect
import pickle
from collections import defaultdict
from inspect import unwrap
from pathlib import Path

import pytest

import paddlelike as fluid
from paddlelike.layers.fluid_modules import LISTED, UNLISTED


def names_by_module() -> dict[str, list[str]]:
    """What each module of the real system lists, in its order."""
    names = defaultdict(list)
    for line in (Path(__file__).parent / "modules185.txt").read_text().splitlines():
        module, name = line.split()
        names[module].append(name)
    return names


REAL = names_by_module()


@pytest.mark.parametrize("module", REAL)
def test_modules_list_the_supported_names_of_fluid(module: str) -> None:
    found = importlib.import_module(f"paddlelike.layers.{module}")
    here = [name for name in REAL[module] if name in fluid.layers.__all__]
    assert here
    assert sorted(found.__all__) == sorted(here)
    assert all(unwrap(getattr(found, name)) is unwrap(getattr(fluid.layers, name)) for name in here)
    if module in LISTED:  # a module of code has more than it lists
        assert dir(found) == sorted(here)


def test_the_table_of_modules_matches_fluid() -> None:
    own = {"learning_rate_scheduler"}  # a module of code
    assert {module: list(names) for module, names in LISTED.items()} == {
        module: names for module, names in REAL.items() if module not in own
    }


def test_each_layer_is_a_function_or_class_of_the_package() -> None:
    for name in fluid.layers.__all__:
        layer = getattr(fluid.layers, name)
        assert inspect.isfunction(layer) or inspect.isclass(layer), name  # no module hides it
        assert unwrap(layer).__module__.startswith("paddlelike.layers"), name
        assert pickle.loads(pickle.dumps(layer)) is layer


@pytest.mark.parametrize("module", UNLISTED)
def test_names_that_fluid_does_not_list_can_be_imported(module: str) -> None:
    found = importlib.import_module(f"paddlelike.layers.{module}")
    for name, origin in UNLISTED[module].items():
        assert getattr(found, name).__module__ == origin
        assert name not in found.__all__


def test_scripts_can_import_from_modules_of_fluid() -> None:
    script = """
import paddlelike.layers.control_flow as cf
from paddlelike.layers.nn import batch_norm, fc, reshape
from paddlelike.layers.nn import embedding
from paddlelike.layers.tensor import *
from paddlelike.layers import rnn
"""
    names: dict[str, object] = {}
    exec(script, names)
    assert names["fc"] is fluid.layers.fc
    assert names["embedding"] is fluid.layers.embedding  # nn/embedding.py holds it
    assert names["reshape"] is fluid.layers.reshape
    assert names["concat"] is fluid.layers.concat
    assert names["rnn"] is fluid.layers.rnn
    assert names["cf"].While is fluid.layers.While


def test_a_missing_name_raises_attribute_error() -> None:
    with pytest.raises(AttributeError, match=r"'paddlelike\.layers\.rnn' has no attribute 'nothing'"):
        importlib.import_module("paddlelike.layers.rnn").nothing  # noqa: B018
    with pytest.raises(ImportError, match="cannot import name 'no_pool'"):
        exec("from paddlelike.layers.nn import no_pool")


def test_names_imported_by_modules_of_fluid_are_available() -> None:
    for module in ("nn", "tensor", "rnn", "sequence_lod"):
        found = importlib.import_module(f"paddlelike.layers.{module}")
        assert found.Variable is fluid.framework.Variable
    assert fluid.layers.core.VarDesc.VarType.FP32 == 5
