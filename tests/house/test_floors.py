"""The contract of the floors in pyproject.toml holds, and it bites."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

pytest.importorskip("importlinter", reason="import-linter is in the extra 'dev'")

PROJECT = Path(__file__).parent.parent.parent

FLOORS = "A module imports its own floor or a lower one"
APART = "Formats and the graph do not know each other"
FACE = "Nothing imports the face"
GRAPH = "The graph knows no pass, codec or expression"
SERVERS = "Trainers and servers know only what travels between them"
PLANS = "Plans know nothing of the executor that runs them"
FRAME = "A frame knows the layout of its values, not the plan"
FAMILIES = "Families of operators share kernels and checks, and do not know each other"
STORAGE = "Local and remote directories do not know each other"
LOCAL = "A local save: transaction, generation, journal, system calls"
IO = "A save may load, a load saves nothing"
ROUND = "No imports go round: those in functions and those for types are counted"
CONTRACTS = tomllib.loads((PROJECT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """A copy of the package that a test may spoil."""
    shutil.copy(PROJECT / "pyproject.toml", tmp_path)
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(PROJECT / "paddlelike", tmp_path / "paddlelike", ignore=ignored)
    return tmp_path


def broken_contracts(project: Path) -> set[str]:
    command = "from importlinter.cli import lint_imports_command; lint_imports_command()"
    done = subprocess.run(
        [sys.executable, "-c", command, "--no-cache"], cwd=project, capture_output=True, text=True
    )
    verdicts = re.findall(r"^(.+) (KEPT|BROKEN)(?: \(\d+ ignored imports\))?$", done.stdout, re.MULTILINE)
    assert len(verdicts) == len(CONTRACTS), done.stdout + done.stderr
    broken = {name for name, verdict in verdicts if verdict == "BROKEN"}
    assert bool(done.returncode) == bool(broken)
    return broken


@pytest.mark.slow
@pytest.mark.parametrize(
    ("module", "line", "broken"),
    [
        ("core/spoilt.py", "import paddlelike.framework.opdef.registry", {FLOORS}),
        ("framework/graph/spoilt.py", "from paddlelike.formats import lod_tensor", {APART}),
        ("ops/nn/spoilt.py", "import paddlelike as fluid", {FACE}),
        ("framework/graph/spoilt.py", "from paddlelike.framework.codec import text", {GRAPH}),
        (
            "framework/graph/spoilt.py",
            "def clone():\n    from paddlelike.framework.passes import clone",
            {GRAPH},
        ),
        ("framework/passes/spoilt.py", "from paddlelike.framework.codec import schema", {GRAPH}),
        ("distributed/server/spoilt.py", "from paddlelike.distributed.client import Client", {SERVERS}),
        (
            "distributed/server/spoilt.py",
            "def save():\n    from paddlelike.distributed.checkpoint import gather",
            {SERVERS},
        ),
        ("distributed/protocol/spoilt.py", "from paddlelike.distributed import wire", {SERVERS}),
        (
            "executor/plans/spoilt.py",
            "from paddlelike.executor import run",
            {PLANS, FRAME},
        ),
        ("executor/plans/layout.py", "from paddlelike.executor.plans import frame", {FRAME}),
        ("storage/local/filesystem/lock.py", "from paddlelike.storage.remote import stores", {STORAGE}),
        ("storage/local/layout.py", "from paddlelike.storage.local import journal", {LOCAL}),
        (
            "storage/local/journal.py",
            "def commit_late():\n    from paddlelike.storage.local import transaction",
            {LOCAL},
        ),
        ("ops/nn/spoilt.py", "from paddlelike.ops.loss import nce", {FAMILIES}),
        ("ops/kernels/spoilt.py", "from paddlelike.ops.nn import conv", {FAMILIES}),
        ("io/load/spoilt.py", "from paddlelike.io.save import save", {IO}),
        ("stray.py", "", {FLOORS}),
        (
            "storage/local/layout.py",
            (
                "from typing import TYPE_CHECKING\n"
                "if TYPE_CHECKING:\n    from paddlelike.storage.local import journal"
            ),
            {LOCAL, ROUND},
        ),
    ],
    ids=[
        "upwards",
        "graph-knows-formats",
        "face",
        "graph-knows-codec",
        "graph-imports-pass-late",
        "pass-knows-codec",
        "server-knows-client",
        "server-imports-checkpoint-late",
        "protocol-knows-wire",
        "plan-knows-executor",
        "layout-knows-frame",
        "local-knows-remote",
        "layout-knows-journal",
        "journal-knows-transaction-late",
        "family-knows-family",
        "kernel-knows-operator",
        "load-knows-save",
        "module-without-a-floor",
        "round-for-types",
    ],
)
def test_contracts_fail_for_a_broken_copy(copy: Path, module: str, line: str, broken: set[str]) -> None:
    with (copy / "paddlelike" / module).open("a") as spoilt:
        spoilt.write(f"\n{line}\n")
    found = broken_contracts(copy)
    assert found >= broken
    assert found - broken <= {ROUND}
