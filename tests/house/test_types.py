"""Type checkers see every name that is imported lazily or by star."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

import paddlelike as fluid

pytestmark = pytest.mark.slow

pytest.importorskip("mypy", reason="mypy is in the extra 'dev'")

PROJECT = Path(__file__).parent.parent.parent


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


def test_mypy_follows_what_a_save_returns(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        "from typing import assert_type\n"
        "import paddlelike as fluid\n"
        "exe = fluid.Executor()\n"
        "assert_type(fluid.io.save_vars(exe, 'm', vars=['w']), fluid.io.SaveReport | None)\n"
        "assert_type(fluid.io.save_params(exe, 'm', wait=None), fluid.io.SaveReport | None)\n"
        "assert_type(fluid.io.save_persistables(exe, 'm', blocking=True), fluid.io.SaveReport | None)\n"
        "assert_type(fluid.io.save_persistables(exe, 'm', blocking=False), fluid.io.PendingSave | None)\n"
        "assert_type(fluid.io.save_persistables(exe, None), bytes | None)\n"
        "fluid.io.save_persistables(exe, 'm', checksum='md5')\n"
        "fluid.io.save_persistables(exe, 'm', waits=5)\n"
    )
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--cache-dir", str(tmp_path / "cache"), str(script)],
        cwd=PROJECT, capture_output=True, text=True,
    )  # fmt: skip
    assert sorted({int(line) for line in re.findall(r"script\.py:(\d+): error", done.stdout)}) == [9, 10], (
        done.stdout
    )
