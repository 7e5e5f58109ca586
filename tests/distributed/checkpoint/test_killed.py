"""Processes killed while they save: the previous save is whole, and training resumes from it."""

from __future__ import annotations

import json
import os
import signal
import time
from pathlib import Path
from typing import Any

import pytest

import paddlelike as fluid
from paddlelike.distributed.server.position import read_position
from tests.distributed.checkpoint.jobs import SavingJob
from tests.distributed.checkpoint.test_resume import ADAM
from tests.distributed.jobs import free_endpoints, perceptron_feeds
from tests.helpers.fork_server import Forked

pytestmark = pytest.mark.slow


def run_job(fork_server: str, servers: int, **run: Any) -> tuple[dict[str, int], list[list[float]]]:
    """Return how the processes of a job ended, and the losses of trainers that came to their end."""
    environment = os.environ | {
        "RUN": json.dumps({"load": None, "save": None} | run),
        "PADDLE_PSERVERS_IP_PORT_LIST": ",".join(free_endpoints(servers)),
        "OMP_NUM_THREADS": "1",
        "FLAGS_rpc_deadline": "6000" if run.get("dies") else "60000",  # also of a slow start
        "FLAGS_worker_update_interval_secs": "6" if run.get("dies") else "60",
        "PADDLELIKE_LEASE": "2",
    }
    names = [*(f"PSERVER {n}" for n in range(servers)), "TRAINER 0", "TRAINER 1"]
    processes = {}
    for name in names:
        role, number = name.split()
        processes[name] = Forked(
            fork_server,
            "tests.distributed.checkpoint.script",
            environment | {"TRAINING_ROLE": role, "NUMBER": number},
        )
    losses, end = [], time.monotonic() + 120
    try:
        for name in reversed(names):  # trainers first
            if name.startswith("TRAINER") or not run.get("dies"):
                out, _ = processes[name].communicate(timeout=max(end - time.monotonic(), 1))
                losses += [json.loads(out)] if out else []
    finally:
        for process in processes.values():
            process.close()
    return {name: process.returncode or 0 for name, process in processes.items()}, losses[::-1]


@pytest.mark.parametrize(
    ("by_servers", "dies"),
    [(False, ("TRAINER 0", 6)), (True, ("PSERVER 0", 4))],
    ids=["trainer 0", "a server"],
)
def test_the_previous_save_is_whole_and_resumes(
    fork_server: str, tmp_path: Path, by_servers: bool, dies: tuple[str, int]
) -> None:
    """The job dies in its second save, after step 3; the first was after step 1."""
    model = tmp_path / "model"
    codes, _ = run_job(fork_server, 2, first=0, last=8, save=str(model), by_servers=by_servers, dies=dies)
    assert codes[dies[0]] == -signal.SIGKILL
    assert codes["TRAINER 1"] == 75
    if dies[0] != "TRAINER 0":
        assert codes["TRAINER 0"] == 75
    assert fluid.io.verify(str(model))
    assert read_position(model, "any") == {"round": 2}
    codes, losses = run_job(fork_server, 3, first=2, last=6, load=str(model), save=str(model))
    assert set(codes.values()) == {0}
    with SavingJob(ADAM) as job:
        undisturbed = job.go(perceptron_feeds, 0, 6)
    assert losses == [one[2:] for one in undisturbed]
    assert read_position(model, "any") == {"round": 6}
    assert sorted(path.name for path in tmp_path.iterdir()) == ["model"]
