"""Every module of the package says what it is about, and is short enough to read."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

PROJECT = Path(__file__).parent.parent.parent
MODULES = sorted((PROJECT / "paddlelike").rglob("*.py"))


@pytest.mark.parametrize("path", MODULES, ids=lambda p: p.relative_to(PROJECT).as_posix())
def test_a_module_says_its_subject_and_is_readable(path: Path) -> None:
    source = path.read_text()
    subject = ast.get_docstring(ast.parse(source)) or ""
    assert subject.partition("\n")[0].strip(), "no docstring"
    if path.name != "__init__.py":  # a face is a list of names
        assert len(source.splitlines()) <= 500, "look for the second subject"


def test_the_package_is_typed() -> None:
    assert (PROJECT / "paddlelike" / "py.typed").exists()
