"""Training on Ray, with a server killed and a trainer's actor: the bits of a job that nobody disturbed."""

from __future__ import annotations

import importlib.util
import os
import signal
import subprocess
import sys
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.distributed.launch.launched import wait_until

PROJECT = Path(__file__).parents[3]
SCRIPT = PROJECT / "tutorials" / "04_parameter_servers.py"

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(importlib.util.find_spec("ray") is None, reason="needs Ray: pip install ray"),
]


@contextmanager
def launched(home: Path, mark: str, *options: str) -> Iterator[subprocess.Popen[str]]:
    """The first day of the tutorial; its processes can be told by ``mark`` in their environment."""
    (home / "clicks").mkdir(parents=True)
    process = subprocess.Popen(
        [sys.executable, "-m", "paddlelike.distributed.launch", "--grace=3", *options, str(SCRIPT), "1"],
        cwd=home,
        env=os.environ | {"PYTHONPATH": str(PROJECT), "OMP_NUM_THREADS": "1", "PADDLELIKE_JOB_ID": mark},
        stdin=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def pid_of(mark: str, *variables: str) -> int | None:
    """The process with these in its environment."""
    wanted = {f"PADDLELIKE_JOB_ID={mark}".encode(), *(one.encode() for one in variables)}
    for path in Path("/proc").glob("[0-9]*/environ"):
        try:
            if wanted <= set(path.read_bytes().split(b"\0")):
                return int(path.parent.name)
        except OSError:
            continue
    return None


def running(mark: str, *variables: str) -> int:
    """The process with these in its environment, once there is one."""
    wait_until(lambda: pid_of(mark, *variables) is not None, f"a process with {variables}")
    found = pid_of(mark, *variables)
    assert found is not None
    return found


def parent_of(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


def last_save(home: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in (home / "clicks/checkpoints/step-00000060").iterdir()}


@pytest.mark.skipif(sys.platform != "linux", reason="finds processes in /proc")
def test_kills_do_not_change_a_bit(tmp_path: Path) -> None:
    with launched(tmp_path / "alone", uuid.uuid4().hex) as process:
        _, said = process.communicate(timeout=200)
        assert process.returncode == 0, said

    home, mark = tmp_path / "ray", uuid.uuid4().hex
    log = home / "log" / "workerlog.0"
    with launched(home, mark, "--engine=ray", "--max_restarts=5") as process:
        server = running(mark, "TRAINING_ROLE=PSERVER", "PADDLE_PSERVER_ID=1")
        wait_until(lambda: log.exists() and "step 5:" in log.read_text(), "the first steps")
        os.kill(server, signal.SIGKILL)
        wait_until(lambda: "---- restart 1 ----" in log.read_text(), "a restart")
        trainer = running(mark, "TRAINING_ROLE=TRAINER", "PADDLE_TRAINER_ID=1")
        os.kill(parent_of(trainer), signal.SIGKILL)  # the actor
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
        env=os.environ | {"PYTHONPATH": str(PROJECT), "OMP_NUM_THREADS": "1"},
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
