"""A type checker sees every name that is imported lazily or by star, and follows a user's script."""

from __future__ import annotations

import ast
import inspect
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import paddlelike.fluid as fluid
from tests.house import typed_script

pytestmark = pytest.mark.slow

pytest.importorskip("mypy", reason="mypy is in the extra 'dev'")

PROJECT = Path(__file__).parent.parent.parent
SCRIPT = Path(typed_script.__file__)
NAMES = [
    "import paddlelike as fluid",
    *(f"fluid.{name}" for name in fluid.__all__),
    *(f"fluid.layers.{name}" for name in fluid.layers.__all__),
    *(f"fluid.optimizer.{name}" for name in fluid.optimizer.__all__),
    "fluid.nothing",
    "fluid.layers.nothing",
]
SAVES = """
from typing import assert_type
import paddlelike as fluid
exe = fluid.Executor()
assert_type(fluid.io.save_vars(exe, 'm', vars=['w']), fluid.io.SaveReport | None)
assert_type(fluid.io.save_params(exe, 'm', wait=None), fluid.io.SaveReport | None)
assert_type(fluid.io.save_persistables(exe, 'm', blocking=True), fluid.io.SaveReport | None)
assert_type(fluid.io.save_persistables(exe, 'm', blocking=False), fluid.io.PendingSave | None)
assert_type(fluid.io.save_persistables(exe, None), bytes | None)
fluid.io.save_persistables(exe, 'm', checksum='md5')
fluid.io.save_persistables(exe, 'm', waits=5)
"""


@pytest.fixture(scope="module")
def errors(tmp_path_factory: pytest.TempPathFactory) -> list[tuple[str, int, str]]:
    """The errors of one run over all scripts: the script, the line, the text."""
    folder = tmp_path_factory.mktemp("scripts")
    source = SCRIPT.read_text()
    texts = {
        "names": "\n".join(NAMES) + "\n",
        "saves": SAVES,
        "stub": source,
        "modules": source.replace("import paddlelike.fluid as fluid", "import face as fluid"),
        "face": "\n".join(import_names(source)) + "\n",  # each name from its module: no stub is read
    }
    for name, text in texts.items():
        (folder / f"{name}.py").write_text(text)
    scripts = [str(folder / f"{name}.py") for name in texts]
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--cache-dir", str(folder / "cache"), *scripts],
        cwd=PROJECT, env={**os.environ, "MYPYPATH": str(folder)}, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 1, done.stdout + done.stderr
    found = re.findall(r"(\w+)\.py:(\d+): error: (.*)", done.stdout)
    return [(name, int(line), text) for name, line, text in found]


def test_mypy_knows_every_public_name(errors: list[tuple[str, int, str]]) -> None:
    found = [(NAMES[line - 1], text) for name, line, text in errors if name == "names"]
    unknown = [name for name, text in found if "has no attribute" in text]
    assert unknown == ["fluid.nothing", "fluid.layers.nothing"], found


def test_mypy_knows_the_type_that_a_save_returns(errors: list[tuple[str, int, str]]) -> None:
    lines = SAVES.splitlines()
    found = {lines[line - 1]: text for name, line, text in errors if name == "saves"}
    assert list(found) == lines[-2:], found


@pytest.mark.parametrize("face", ["stub", "modules"])
def test_mypy_finds_no_error_in_the_script(face: str, errors: list[tuple[str, int, str]]) -> None:
    assert [one for one in errors if one[0] in (face, "face")] == []


def import_names(source: str) -> list[str]:
    """Return the import of every ``fluid.<name>`` of a script from the module that defines it."""
    used = {
        node.attr
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "fluid"
    }
    lines = [f"__all__ = {sorted(used)}"]
    for name in sorted(used):
        thing = getattr(fluid, name)
        if inspect.ismodule(thing):
            lines.append(f"import {thing.__name__} as {name}")
        else:
            lines.append(f"from {thing.__module__} import {thing.__name__} as {name}")
    return lines
