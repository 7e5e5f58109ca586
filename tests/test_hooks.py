"""Hooks: functions of higher floors, imported when they are first asked for."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from paddlelike import hooks
from paddlelike.hooks import Hook, provide

PACKAGE = Path(hooks.__file__).parent


@pytest.fixture(autouse=True)
def provided(monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """Return what the package provides, without what examples added; a test changes a copy of it."""
    ours = {name: where for name, where in hooks._FUNCTIONS.items() if where.startswith("paddlelike.")}
    monkeypatch.setattr(hooks, "_FUNCTIONS", ours)
    return hooks._FUNCTIONS


def find_declared() -> set[str]:
    """Return the names of all hooks in the sources of the package, each declared once."""
    sources = [path.read_bytes() for path in PACKAGE.rglob("*.py")]
    trees = [ast.parse(source) for source in sources if b"Hook(" in source]
    calls = [node for tree in trees for node in ast.walk(tree) if isinstance(node, ast.Call)]
    names = [ast.literal_eval(call.args[0]) for call in calls if getattr(call.func, "id", None) == "Hook"]
    assert len(names) == len(set(names))
    return set(names)


def test_exactly_the_declared_hooks_are_provided(provided: dict[str, str]) -> None:
    assert find_declared() == provided.keys()


def test_every_hook_target_exists(provided: dict[str, str]) -> None:
    for name in provided:
        hook: Hook[..., Any] = Hook(name)
        assert hook.function.__module__.startswith("paddlelike."), name


@pytest.mark.parametrize("module", ["graph.program", "graph.variable", "codec.text", "passes.clone"])
def test_hooks_are_provided_whichever_module_is_imported_first(module: str) -> None:
    script = f"""
import paddlelike.framework.{module}
from paddlelike.framework.graph.program import Program
print(Program().clone().to_string().splitlines()[0])
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "blocks {\n"


def test_calling_a_hook_without_provider_raises_key_error() -> None:
    nobody: Hook[[], None] = Hook("nobody provides this")
    with pytest.raises(KeyError, match="nobody provides this"):
        nobody.function()


def test_a_hook_imports_its_module_on_first_use() -> None:
    script = """
import sys
from paddlelike.hooks import Hook, provide
provide(split="shlex:split")
hook = Hook("split")
before = "shlex" in sys.modules
print(before, hook.function("a 'b c'"), "shlex" in sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False ['a', 'b c'] True"


def test_the_last_provider_of_a_hook_is_used() -> None:
    provide(dump_json="json:load")
    provide(dump_json="json:dumps")
    dump: Hook[[Any], str] = Hook("dump_json")
    assert dump.function is json.dumps


@pytest.mark.parametrize(
    ("function", "error"), [("no_such_module:f", ModuleNotFoundError), ("json:nothing", AttributeError)]
)
def test_calling_a_hook_with_a_missing_function_raises_an_error(
    function: str, error: type[Exception]
) -> None:
    provide(absent=function)
    absent: Hook[[], None] = Hook("absent")
    with pytest.raises(error):
        absent.function()
