"""The options of a save: defaults, unknown names, values outside the choices."""

from __future__ import annotations

import dataclasses
import os
import subprocess
import sys
from typing import get_type_hints

import pytest

import paddlelike as fluid
from paddlelike.storage.options import SaveKeywords, SaveOptions


def test_options_cannot_be_changed_after_they_were_made() -> None:
    options = SaveOptions(wait=3.0)
    with pytest.raises(dataclasses.FrozenInstanceError):
        options.wait = 4.0  # type: ignore[misc]
    assert options.wait == 3.0


@pytest.mark.parametrize(
    ("given", "near"),
    [
        ({"durabilty": "power"}, "durability"),
        ({"check_sum": None}, "checksum"),
        ({"block": False}, "blocking"),
    ],
    ids=["one letter less", "another spelling", "a shorter name"],
)
def test_an_unknown_option_is_a_type_error_with_near_names(given: dict[str, object], near: str) -> None:
    name = next(iter(given))
    with pytest.raises(TypeError, match=rf"save_vars\(\) .*'{name}'.*{near}"):
        SaveOptions.from_keywords(given, "save_vars")


@pytest.mark.parametrize(
    "given", [{"durability": "disk"}, {"checksum": "md5"}], ids=["durability", "checksum"]
)
def test_a_value_outside_the_choices_is_a_value_error(given: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=next(iter(given))):
        SaveOptions.from_keywords(given, "save_vars")


@pytest.mark.parametrize("save", [fluid.io.save_vars, fluid.io.save_params, fluid.io.save_persistables])
def test_every_save_function_names_itself_when_refusing_an_option(save: object) -> None:
    with pytest.raises(TypeError, match=rf"{save.__name__}\(\).*'chek'"):  # type: ignore[attr-defined]
        save(fluid.Executor(), "model", fluid.Program(), chek=1)  # type: ignore[operator]


def test_the_keywords_of_signatures_are_the_options() -> None:
    assert get_type_hints(SaveKeywords) == get_type_hints(SaveOptions)
    assert SaveKeywords.__required_keys__ == frozenset()


def test_an_environment_variable_switches_manifests_off() -> None:
    code = "from paddlelike.storage.options import SaveOptions; print(SaveOptions().manifest)"
    for given, expected in (({}, "True"), ({"PADDLELIKE_MANIFEST": "0"}, "False")):
        env = {name: value for name, value in os.environ.items() if name != "PADDLELIKE_MANIFEST"} | given
        done = subprocess.run(
            [sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True
        )
        assert done.stdout.strip() == expected
