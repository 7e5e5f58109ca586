"""A type checker follows a user's script: it knows every result, and finds what is wrong."""

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

PROJECT = Path(__file__).parent.parent.parent
SCRIPT = Path(typed_script.__file__)


def test_the_script_runs(tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, SCRIPT, tmp_path], cwd=PROJECT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("face", ["stub", "modules"])
def test_mypy_follows_the_script(face: str, tmp_path: Path) -> None:
    pytest.importorskip("mypy", reason="mypy is in the extra 'dev'")
    source = SCRIPT.read_text()
    if face == "modules":  # each name from the module that defines it: no stub is read
        (tmp_path / "face.py").write_text("\n".join(import_names(source)) + "\n")
        source = source.replace("import paddlelike.fluid as fluid", "import face as fluid")
    script = tmp_path / "script.py"
    script.write_text(source)
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--cache-dir", str(tmp_path / "cache"), str(script)],
        cwd=PROJECT, env={**os.environ, "MYPYPATH": str(tmp_path)}, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout


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


def test_any_is_rare_and_in_no_lowering_plan_or_format() -> None:
    texts = {path: path.read_text() for path in (PROJECT / "paddlelike").rglob("*.py")}
    assert sum(len(re.findall(r": Any\b", text)) for text in texts.values()) <= 609
    assert sum(len(re.findall(r"-> Any\b", text)) for text in texts.values()) <= 141
    strict = ("compiled/lowering/", "executor/plans/", "formats/")
    for path, text in texts.items():
        if path.relative_to(PROJECT / "paddlelike").as_posix().startswith(strict):
            for node in ast.walk(ast.parse(text)):
                if isinstance(node, ast.FunctionDef):
                    given = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
                    for hint in [*(one.annotation for one in given), node.returns]:
                        assert not (isinstance(hint, ast.Name) and hint.id == "Any"), f"{path}: {node.name}"
