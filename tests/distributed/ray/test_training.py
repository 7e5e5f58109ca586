"""Training on Ray, with a server killed and a trainer's actor: the bits of a job that nobody disturbed."""

from __future__ import annotations

import importlib.util
import os
import signal
import subprocess
import sys
import uuid
from pathlib import Path

import pytest

from tests.distributed.launch.clicks import (
    PROJECT,
    SCRIPT,
    find_parent,
    find_process,
    last_save,
    launch_tutorial,
)
from tests.distributed.launch.launcher import wait_until

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(importlib.util.find_spec("ray") is None, reason="needs Ray: pip install ray"),
]


@pytest.mark.skipif(sys.platform != "linux", reason="finds processes in /proc")
def test_killed_processes_do_not_change_the_result(tmp_path: Path) -> None:
    with launch_tutorial(tmp_path / "alone", uuid.uuid4().hex) as process:
        _, said = process.communicate(timeout=200)
        assert process.returncode == 0, said

    home, mark = tmp_path / "ray", uuid.uuid4().hex
    log = home / "log" / "workerlog.0"
    with launch_tutorial(home, mark, "--engine=ray", "--max_restarts=5") as process:
        server = find_process(mark, "TRAINING_ROLE=PSERVER", "PADDLE_PSERVER_ID=1")
        wait_until(lambda: log.exists() and "step 5:" in log.read_text(), "the first steps")
        os.kill(server, signal.SIGKILL)
        wait_until(lambda: "---- restart 1 ----" in log.read_text(), "a restart")
        trainer = find_process(mark, "TRAINING_ROLE=TRAINER", "PADDLE_TRAINER_ID=1")
        os.kill(find_parent(trainer), signal.SIGKILL)  # the actor
        _, said = process.communicate(timeout=200)
        assert process.returncode == 0, said
    assert "server 1 was killed by SIGKILL" in said
    assert "worker 1 was killed by SIGKILL" in said
    assert last_save(home) == last_save(tmp_path / "alone")


def namespaces() -> bool:
    """Whether this process may make a private network."""
    command = ["unshare", "-n", "-p", "-f", "--mount-proc", "true"]
    try:
        return subprocess.run(command, capture_output=True, timeout=20).returncode == 0
    except (OSError, subprocess.TimeoutExpired):
        return False


@pytest.mark.skipif(not namespaces(), reason="unshare may not make a private network here")
def test_a_job_spans_two_nodes(tmp_path: Path) -> None:
    (tmp_path / "clicks").mkdir()
    driver = [sys.executable, str(Path(__file__).parent / "drive_nodes.py")]
    done = subprocess.run(
        ["unshare", "-n", "-p", "-f", "--mount-proc", *driver, "--grace=3", str(SCRIPT), "1"],
        cwd=tmp_path,
        env=os.environ
        | {"PYTHONPATH": str(PROJECT), "OMP_NUM_THREADS": "1", "CLICKS_HOME": str(tmp_path / "clicks")},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=400,
    )
    assert done.returncode == 0, done.stderr
    (said,) = [line for line in done.stderr.splitlines() if line.startswith("launch: servers ")]
    for host in ("127.0.0.1", "127.0.0.2"):
        assert said.count(f"{host}:") == 1  # a server on each node
        assert host in said.rpartition("workers on ")[2]
    assert "learning_rate_0" in last_save(tmp_path)
