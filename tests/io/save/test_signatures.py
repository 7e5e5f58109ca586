"""The options of saves are parameters that help() and editors show, with the defaults of SaveOptions."""

from __future__ import annotations

import inspect
from dataclasses import fields
from pathlib import Path

import pytest

import paddlelike as fluid
from paddlelike.storage.options import SaveOptions

SAVES = [fluid.io.save_vars, fluid.io.save_params, fluid.io.save_persistables, fluid.io.Checkpoints]


@pytest.mark.parametrize("save", SAVES, ids=lambda save: save.__name__)
def test_the_signature_shows_every_option(save):
    parameters = inspect.signature(save).parameters
    shown = {name: parameters[name].default for name in parameters if hasattr(SaveOptions, name)}
    assert shown == {field.name: field.default for field in fields(SaveOptions)}
    assert not any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters.values())


@pytest.mark.parametrize("save", SAVES[:3], ids=lambda save: save.__name__)
def test_a_wrong_option_is_answered_with_near_ones(save, tmp_path: Path):
    with pytest.raises(
        TypeError, match=f"{save.__name__}.. got an unexpected .*'block'.*did you mean .blocking."
    ):
        save(fluid.Executor(), tmp_path / "m", block=True)
