"""Checkpoints of trainers that train together through parameter servers, in processes of their own."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import uuid
from pathlib import Path
from typing import Any

import pytest

from paddlelike import training
from paddlelike.errors import GraphError, UnsupportedError
from paddlelike.io.checkpoints.numbered import NumberedCheckpoints
from tests.distributed.conftest import token_file  # noqa: F401  (a fixture)
from tests.distributed.launch.clicks import find_process
from tests.distributed.launch.launcher import PROJECT, wait_until
from tests.distributed.processes import Process, Processes
from tests.helpers.fresh import fresh_programs
from tests.helpers.saved_files import read_variables
from tests.training import worker

pytest.importorskip("grpc", reason="gRPC is in the extra 'dist'")


def run_job(fork_server: str, run: dict[str, Any], **counts: int) -> list[Process]:
    """Run a job to its end; return its trainers."""
    with Processes(run, fork_server=fork_server, script="tests.training.worker", **counts) as job:
        servers, trainers = job.start()
        for process in [*trainers, *servers]:
            assert process.wait() == 0, process.errors
    return trainers


@pytest.mark.slow
@pytest.mark.obeys(
    "the earlier checkpoints are as they were",
    "if trainer.is_server: trainer.serve(), or let a training session do it",
)
def test_only_the_first_process_writes_and_each_restores_its_own_state(
    fork_server: str, tmp_path: Path
) -> None:
    """Rows C36, C37: on two trainers, then on three, of which the last is unknown to the checkpoint."""
    (tmp_path / "file").write_text("")
    trainers = run_job(fork_server, {"root": str(tmp_path), "steps": 3}, servers=1)
    assert [one.last("wrote") for one in trainers] == [True, False]
    assert [one.last("restored") for one in trainers] == [{"rank": rank, "of": 2} for rank in (0, 1)]
    assert trainers[0].last("parameters") == trainers[1].last("parameters")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "model"]
    for one in trainers:  # both know that the first could not save
        assert "file" in one.last("refused")
    assert trainers[1].last("refused").endswith("hint: the earlier checkpoints are as they were")
    (checkpoint,) = NumberedCheckpoints(tmp_path / "model").list()
    assert checkpoint.step == 24
    trained = trainers[0].last("parameters")
    more = run_job(fork_server, {"root": str(tmp_path), "steps": 0}, servers=2, trainers=3)
    assert [one.last("restored")["rank"] for one in more] == [0, 1, 0]
    assert [one.last("parameters") for one in more] == [trained] * 3
    with fresh_programs():  # and in one process, without servers
        alone, _ = worker.make_trainer()
        assert alone.restore_from_checkpoint(tmp_path / "model") == {"rank": 0, "of": 2}
        assert worker.parameters() == trained


@pytest.mark.slow
def test_a_killed_job_ends_with_the_same_bits(fork_server: str, tmp_path: Path) -> None:
    """Row C13 for C37: readers, dropout and the schedule of every process continue."""
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    want = run_job(fork_server, {"root": str(whole), "samples": 64}, servers=1)
    run = {"root": str(parts), "samples": 64}
    with Processes(run, servers=1, fork_server=fork_server, script="tests.training.worker") as job:
        _, trainers = job.start()
        wait_for_checkpoint(trainers[0], parts)  # at its end everything is killed
    found = run_job(fork_server, run, servers=1)
    assert [one.said for one in found] == [one.said for one in want]
    assert read_variables(parts / "model") == read_variables(whole / "model")


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="finds processes in /proc")
def test_killed_processes_under_the_launcher_do_not_change_the_result(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "paddlelike.distributed.launch", "--server_num=2", "--worker_num=2"]
    command += ["--max_restarts=10", "--grace=10", worker.__file__]

    def launch(name: str, mark: str) -> subprocess.Popen[str]:
        run = json.dumps({"root": str(tmp_path / name), "samples": 400})
        (tmp_path / name).mkdir()
        mine = {"PYTHONPATH": str(PROJECT), "PADDLELIKE_JOB_ID": mark, "RUN": run, "OMP_NUM_THREADS": "1"}
        return subprocess.Popen(
            command, cwd=tmp_path / name, env=os.environ | mine, stderr=subprocess.PIPE, text=True
        )

    def samples() -> int:
        found = NumberedCheckpoints(tmp_path / "killed" / "model").latest()
        return 0 if found is None else found.step

    with launch("whole", uuid.uuid4().hex) as job:
        assert job.wait(200) == 0
    mark = uuid.uuid4().hex
    with launch("killed", mark) as job:
        for victim, after in (("TRAINER", 16), ("PSERVER", 120), ("TRAINER", 240)):
            wait_until(lambda after=after: samples() >= after, f"{after} samples")  # type: ignore[misc]
            os.kill(find_process(mark, f"TRAINING_ROLE={victim}"), signal.SIGKILL)
        _, errors = job.communicate(timeout=200)
        assert job.returncode == 0, errors
    assert errors.count("was killed by SIGKILL") == 3
    assert read_variables(tmp_path / "killed" / "model") == read_variables(tmp_path / "whole" / "model")


def wait_for_checkpoint(process: Process, root: Path) -> None:
    while not (root / "model").exists():
        assert process.popen.poll() is None, process.errors
        time.sleep(0.005)


def test_a_distributed_learner_in_one_process_equals_its_optimizer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TRAINING_ROLE", raising=False)
    trainer, source = worker.make_trainer()
    assert (trainer.is_server, trainer.workers.size) == (False, 1)
    assert trainer.train_minibatch(source.next_minibatch(8))
    with pytest.raises(GraphError, match="this process is a trainer"):
        trainer.serve()
    with pytest.raises(UnsupportedError, match="num_quantization_bits=1"):
        training.data_parallel_distributed_learner(trainer.parameter_learners[0].optimizer, 1)
