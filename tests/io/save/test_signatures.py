"""The options of saves and loads are parameters that help() and editors show, with their defaults."""

from __future__ import annotations

import inspect
from dataclasses import fields
from pathlib import Path

import pytest

import paddlelike as fluid
from paddlelike.io.load.request import LoadOptions
from paddlelike.storage.options import SaveOptions

SAVES = [fluid.io.save_vars, fluid.io.save_params, fluid.io.save_persistables, fluid.io.Checkpoints]
LOADS = [fluid.io.load_vars, fluid.io.load_params, fluid.io.load_persistables]


@pytest.mark.parametrize(
    ("function", "options"),
    [*((save, SaveOptions) for save in SAVES), *((load, LoadOptions) for load in LOADS)],
    ids=lambda each: each.__name__,
)
def test_the_signature_shows_every_option(function, options):
    parameters = inspect.signature(function).parameters
    shown = {name: parameters[name].default for name in parameters if hasattr(options, name)}
    assert shown == {field.name: field.default for field in fields(options)}
    assert not any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters.values())


@pytest.mark.parametrize("save", SAVES[:3], ids=lambda save: save.__name__)
def test_a_misspelt_save_option_suggests_near_names(save, tmp_path: Path):
    with pytest.raises(
        TypeError, match=f"{save.__name__}.. got an unexpected .*'block'.*did you mean .blocking."
    ):
        save(fluid.Executor(), tmp_path / "m", block=True)


@pytest.mark.parametrize("load", LOADS, ids=lambda load: load.__name__)
def test_a_misspelt_load_option_suggests_near_names(load, tmp_path: Path):
    with pytest.raises(
        TypeError, match=r"load_vars\(\) got an unexpected .*'verfy'; did you mean 'verify'\?"
    ):
        load(fluid.Executor(), tmp_path / "m", verfy=True)
