"""``fluid.io.Checkpoints`` with parameter servers: trainer 0 saves them, servers restore their rows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import paddlelike as fluid
from tests.distributed.checkpoint.jobs import SavingJob
from tests.distributed.checkpoint.test_costs import MB, tall
from tests.distributed.checkpoint.test_resume import ADAM
from tests.distributed.jobs import Job, Network, perceptron_feeds, sgd
from tests.io.load.reads import counting_reads, needs_read_counts


class Restoring(SavingJob):
    """A job whose servers restore the latest checkpoint below a directory."""

    def serve(self, endpoint: str, values: Any = None) -> None:
        programs, scope = self.server(endpoint), fluid.Scope()
        executor = fluid.Executor()
        with fluid.scope_guard(scope):
            executor.run(programs.startup)
            with counting_reads() as count:
                state = fluid.io.Checkpoints(self.loaded).restore(executor, programs.main)
                self.reports[endpoint] = state, count()
        self.scopes[endpoint] = scope
        future = self._pool.submit(lambda: executor.run(programs.main, scope=scope))
        self._serving.append((executor, future))


def trained(job: Job, steps: int, root: Path, *, number: int = 0) -> list[float]:
    """The losses of a trainer that makes a checkpoint after every second step."""
    programs, exe = job.trainer(number), fluid.Executor()
    checkpoints = fluid.io.Checkpoints(root, keep_last=1, every=2)
    losses = []
    exe.run(programs.startup)
    for step in range(steps):
        value = exe.run(programs.main, feed=perceptron_feeds(step, number), fetch_list=[programs.loss.name])
        losses.append(float(value[0]))
        checkpoints.save(exe, programs.main, step + 1, state={"epoch": 3})
    exe.close()
    return losses


def test_servers_resume_from_the_latest_checkpoint(tmp_path: Path) -> None:
    with SavingJob(ADAM, servers=2, trainers=1) as job:
        losses = trained(job, 7, tmp_path)
    assert [path.name for path in tmp_path.iterdir() if path.is_dir()] == ["step-00000006"]
    with Restoring(ADAM, servers=3, trainers=1, loaded=tmp_path) as job:
        (again,) = job.go(perceptron_feeds, 6, 7)
    assert again == losses[6:]
    assert [state for state, _ in job.reports.values()] == [{"epoch": 3, "step": 6}] * 3


@needs_read_counts
def test_a_restore_reads_each_piece_of_the_rows_of_a_server_once(tmp_path: Path) -> None:
    network = Network(tall, sgd)
    feed = {"x": np.zeros((2, 1300), "float32"), "y": np.zeros((2, 1), "float32")}
    with SavingJob(network, servers=2, trainers=1) as job:
        programs, exe = job.trainer(0), fluid.Executor()
        exe.run(programs.startup)
        exe.run(programs.main, feed=feed, fetch_list=[programs.loss.name])
        fluid.io.Checkpoints(tmp_path).save(exe, programs.main, 1)
        exe.close()
    saved = tmp_path / "step-00000001"
    whole = sum(path.stat().st_size for path in saved.iterdir())
    with Restoring(network, servers=3, trainers=1, loaded=tmp_path) as job:
        job.go(lambda step, trainer: feed, 1, 2)
        for endpoint, (_, read) in job.reports.items():
            slices = job.server(endpoint).main._parameters_on_pservers.on(endpoint)
            own = sum(one.nbytes for one in slices)
            most = own + 3 * MB + 64 * 1024  # the pieces at both ends, the first one; headers and manifest
            assert own <= read <= most
            assert most < 0.7 * whole  # so the bound above means something


def test_only_trainer_0_makes_checkpoints(tmp_path: Path) -> None:
    with SavingJob(ADAM, servers=2) as job:
        program = job.trainer(1).main
        with pytest.warns(UserWarning, match="trainer 0 saves for all"):
            report = fluid.io.Checkpoints(tmp_path).save(fluid.Executor(), program, 1)
        job.go(perceptron_feeds, 0, 1)
    assert not report
    assert not list(tmp_path.iterdir())
