"""Hooks: functions of higher floors, imported when they are first asked for."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from paddlelike.hooks import find_provider, provide


def test_a_hook_without_a_provider_is_none() -> None:
    assert find_provider("nobody provides this") is None


def test_the_provider_is_imported_when_it_is_asked_for() -> None:
    script = """
import sys
from paddlelike.hooks import find_provider, provide
provide("split", "shlex:split")
before = "shlex" in sys.modules
print(before, find_provider("split")("a 'b c'"), "shlex" in sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False ['a', 'b c'] True"


def test_the_last_provider_counts() -> None:
    provide("dump json", "json:load")
    provide("dump json", "json:dumps")
    assert find_provider("dump json") is json.dumps


@pytest.mark.parametrize(
    ("function", "error"), [("no_such_module:f", ModuleNotFoundError), ("json:nothing", AttributeError)]
)
def test_a_provider_that_is_not_there_is_an_error(function: str, error: type[Exception]) -> None:
    provide("absent", function)
    with pytest.raises(error):
        find_provider("absent")
