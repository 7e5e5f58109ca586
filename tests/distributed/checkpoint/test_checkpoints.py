"""``fluid.io.Checkpoints`` with parameter servers: trainer 0 saves them, servers restore their rows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import paddlelike as fluid
from tests.distributed.checkpoint.jobs import SavingJob
from tests.distributed.checkpoint.test_costs import read_so_far
from tests.distributed.checkpoint.test_resume import ADAM
from tests.distributed.jobs import Job, perceptron_feeds


class Restoring(SavingJob):
    """A job whose servers restore the latest checkpoint below a directory."""

    def serve(self, endpoint: str, values: Any = None) -> None:
        programs, scope = self.server(endpoint), fluid.Scope()
        executor = fluid.Executor(fluid.CPUPlace())
        with fluid.scope_guard(scope):
            executor.run(programs.startup)
            before = read_so_far()
            state = fluid.io.Checkpoints(self.loaded).restore(executor, programs.main)
            self.reports[endpoint] = state, read_so_far() - before
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


@pytest.mark.skipif(not Path("/proc/self/io").exists(), reason="this system does not count what is read")
def test_servers_resume_from_the_latest_checkpoint(tmp_path: Path) -> None:
    with SavingJob(ADAM, servers=2, trainers=1) as job:
        losses = trained(job, 7, tmp_path)
    assert [path.name for path in tmp_path.iterdir() if path.is_dir()] == ["step-00000006"]
    size = sum(path.stat().st_size for path in (tmp_path / "step-00000006").iterdir())
    with Restoring(ADAM, servers=3, trainers=1, loaded=tmp_path) as job:
        (again,) = job.go(perceptron_feeds, 6, 7)
    assert again == losses[6:]
    for state, read in job.reports.values():
        assert state == {"epoch": 3, "step": 6}
        assert read < 1.2 * size  # files below a megabyte are compared whole, once


def test_another_trainer_makes_no_checkpoint(tmp_path: Path) -> None:
    with SavingJob(ADAM, servers=2) as job:
        program = job.trainer(1).main
        with pytest.warns(UserWarning, match="trainer 0 saves for all"):
            report = fluid.io.Checkpoints(tmp_path).save(fluid.Executor(), program, 1)
        job.go(perceptron_feeds, 0, 1)
    assert not report
    assert not list(tmp_path.iterdir())
