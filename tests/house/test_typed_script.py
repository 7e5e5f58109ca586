"""The script that a type checker follows (test_types.py) runs; types say something."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

from tests.house import typed_script

PROJECT = Path(__file__).parent.parent.parent
SCRIPT = Path(typed_script.__file__)


def test_the_typed_script_runs(tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, SCRIPT, tmp_path], cwd=PROJECT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_the_type_any_is_rare_and_absent_from_lowerings_plans_and_formats() -> None:
    texts = {path: path.read_text() for path in (PROJECT / "paddlelike").rglob("*.py")}
    assert sum(len(re.findall(r": Any\b", text)) for text in texts.values()) <= 624
    assert sum(len(re.findall(r"-> Any\b", text)) for text in texts.values()) <= 148
    strict = ("compiled/lowering/", "executor/plans/", "formats/")
    for path, text in texts.items():
        if path.relative_to(PROJECT / "paddlelike").as_posix().startswith(strict):
            for node in ast.walk(ast.parse(text)):
                if isinstance(node, ast.FunctionDef):
                    given = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
                    for hint in [*(one.annotation for one in given), node.returns]:
                        assert not (isinstance(hint, ast.Name) and hint.id == "Any"), f"{path}: {node.name}"
