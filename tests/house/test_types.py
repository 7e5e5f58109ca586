"""Type checkers see every name that is imported lazily or by star."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

import paddlelike as fluid

pytest.importorskip("mypy", reason="mypy is in the extra 'dev'")

PROJECT = Path(__file__).parent.parent.parent


@pytest.mark.slow
def test_mypy_knows_every_public_name(tmp_path: Path) -> None:
    uses = [f"fluid.{name}" for name in fluid.__all__]
    uses += [f"fluid.layers.{name}" for name in fluid.layers.__all__]
    uses += [f"fluid.optimizer.{name}" for name in fluid.optimizer.__all__]
    script = tmp_path / "script.py"
    lines = ["import paddlelike as fluid", *uses, "fluid.nothing", "fluid.layers.nothing"]
    script.write_text("\n".join(lines) + "\n")
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--cache-dir", str(tmp_path / "cache"), str(script)],
        cwd=PROJECT, capture_output=True, text=True,
    )  # fmt: skip
    unknown = [int(line) for line in re.findall(r"script\.py:(\d+): error: .*has no attribute", done.stdout)]
    assert [lines[line - 1] for line in unknown] == ["fluid.nothing", "fluid.layers.nothing"], done.stdout
