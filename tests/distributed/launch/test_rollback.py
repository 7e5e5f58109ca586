"""A script that goes back with its servers: a lost process is restarted alone, and no bit changes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.distributed.launch.launcher import wait_until

PROJECT = Path(__file__).parents[3]
SCRIPT = Path(__file__).parents[1] / "script.py"

pytestmark = pytest.mark.slow


def start_launcher(home: Path, run: dict[str, Any], *options: str) -> subprocess.Popen[str]:
    home.mkdir()
    more = {"RUN": json.dumps(run | {"save": str(home / "saves"), "save_every": 10, "follow": True})}
    more |= {"PADDLELIKE_CHECKPOINT_DIR": str(home / "saves"), "OMP_NUM_THREADS": "1"}
    command = [
        sys.executable,
        "-m",
        "paddlelike.distributed.launch",
        "--restart=process",
        *options,
        str(SCRIPT),
    ]
    environment = os.environ | more | {"PYTHONPATH": str(PROJECT)}
    return subprocess.Popen(command, cwd=home, env=environment, stderr=subprocess.PIPE, text=True)


def losses(home: Path) -> list[list[float]]:
    logs = [home / "log" / f"workerlog.{worker}" for worker in range(2)]
    return [json.loads(log.read_text().splitlines()[-1])["losses"] for log in logs]


def child(launcher: subprocess.Popen[str], variable: str) -> int:
    """The process with that in its environment."""
    children = Path(f"/proc/{launcher.pid}/task/{launcher.pid}/children").read_text().split()
    (found,) = [
        int(pid)
        for pid in children
        if variable.encode() in Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    ]
    return found


@pytest.mark.skipif(sys.platform != "linux", reason="finds processes in /proc")
def test_a_restarted_server_rolls_the_others_back(tmp_path: Path) -> None:
    with start_launcher(tmp_path / "undisturbed", {"steps": 40}) as launcher:
        _, said = launcher.communicate(timeout=200)
        assert launcher.returncode == 0, said
    home = tmp_path / "disturbed"
    with start_launcher(home, {"steps": 40, "slow": 0.05}) as launcher:
        log = home / "log" / "workerlog.0"
        wait_until(lambda: log.exists() and '"step": 15' in log.read_text(), "a save and some steps")
        os.kill(child(launcher, "PADDLE_PSERVER_ID=1"), signal.SIGKILL)
        _, said = launcher.communicate(timeout=200)
        assert launcher.returncode == 0, said
    assert "restart 1 of 3, of server 1 alone" in said
    assert "of the whole job" not in said
    assert losses(home) == losses(tmp_path / "undisturbed")
