"""A day of training whose processes are killed again and again: the bits of one that nobody disturbed."""

from __future__ import annotations

import os
import signal
import sys
import uuid
from pathlib import Path

import pytest

from tests.distributed.jobs import free_endpoints
from tests.distributed.launch.clicks import find_process, last_save, launch_tutorial
from tests.distributed.launch.launcher import wait_until

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="finds processes in /proc"),
]

SERVER = "TRAINING_ROLE=PSERVER", "PADDLE_PSERVER_ID=0"
SAVER = "TRAINING_ROLE=TRAINER", "PADDLE_TRAINER_ID=0"


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """The last save of a job that nobody disturbed."""
    home = tmp_path_factory.mktemp("undisturbed")
    with launch_tutorial(home, uuid.uuid4().hex) as process:
        _, said = process.communicate(timeout=200)
        assert process.returncode == 0, said
    return last_save(home)


def test_killed_processes_do_not_change_the_result(tmp_path: Path, undisturbed: dict[str, bytes]) -> None:
    home, mark = tmp_path / "killed", uuid.uuid4().hex
    log = home / "log" / "workerlog.0"
    checkpoints = home / "clicks" / "checkpoints"
    moments = [
        (SERVER, "steps", lambda: "step 5:" in log.read_text()),
        (SAVER, "a save", lambda: any(checkpoints.glob("*15/__manifest__"))),
        (SERVER, "the server to be there", lambda: True),
        (SAVER, "another save", lambda: any(checkpoints.glob("*30/__manifest__"))),
    ]
    with launch_tutorial(home, mark, "--max_restarts=10") as process:
        for attempt, (victim, what, moment) in enumerate(moments):
            wait_until(lambda attempt=attempt: starts(log) == attempt, f"attempt {attempt}")  # type: ignore[misc]
            pid = find_process(mark, *victim)
            wait_until(moment, what)
            os.kill(pid, signal.SIGKILL)
        _, said = process.communicate(timeout=200)
        assert process.returncode == 0, said
    assert said.count("was killed by SIGKILL") == len(moments)
    assert last_save(home) == undisturbed


def test_launchers_on_two_machines_restart_the_job_together(
    tmp_path: Path, undisturbed: dict[str, bytes]
) -> None:
    home, mark = tmp_path / "two", uuid.uuid4().hex
    ports = [endpoint.rpartition(":")[2] for endpoint in free_endpoints(2)]
    job = [f"--servers=127.0.0.1:{ports[0]},127.0.0.2:{ports[1]}", "--trainers=127.0.0.1:1,127.0.0.2:2"]
    job += ["--max_restarts=1", "--grace=0.2"]  # one restart of each is enough, however fast they are
    here = [*job, "--host=127.0.0.1", "--log_dir=here"]
    there = [*job, "--host=127.0.0.2", "--log_dir=there"]
    shared = {"PADDLELIKE_JOB_TOKEN": uuid.uuid4().hex}
    with (
        launch_tutorial(home, mark, *here, **shared) as first,
        launch_tutorial(home, mark, *there, **shared) as second,
    ):
        wait_until(lambda: starts(home / "there" / "workerlog.1") == 0, "the worker there")
        pid = find_process(mark, "TRAINING_ROLE=PSERVER", "PADDLE_PSERVER_ID=1")
        wait_until(lambda: "step 20:" in (home / "there" / "workerlog.1").read_text(), "steps")
        os.kill(pid, signal.SIGKILL)
        ends = [one.communicate(timeout=200)[1] for one in (first, second)]
    assert [first.returncode, second.returncode] == [0, 0], ends
    assert "server 1 was killed by SIGKILL" in ends[1]
    assert "restart 1 of 1" in ends[0]
    assert sorted(path.name for path in (home / "here").iterdir()) == ["serverlog.0", "workerlog.0"]
    assert last_save(home) == undisturbed


def starts(log: Path) -> int:
    """Return the number of restarts of the job; -1 before its start."""
    return log.read_text().count("---- restart") if log.exists() else -1
