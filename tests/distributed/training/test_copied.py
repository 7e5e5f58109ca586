"""Servers that load copies of a saved directory, some of which lost the manifest, or of several saves."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import paddlelike as fluid
from paddlelike.errors import FaultError
from paddlelike.storage.location import locate
from tests.distributed.checkpoint.jobs import SavingJob
from tests.distributed.checkpoint.test_resume import ADAM
from tests.distributed.jobs import perceptron_feeds


class CopiesJob(SavingJob):
    """A job each of whose servers loads a directory of its own (or none)."""

    copies: tuple[Path | None, ...] = ()

    def serve(self, endpoint: str, values: Any = None) -> None:
        self.loaded = self.copies[self.endpoints.index(endpoint)]
        super().serve(endpoint, values)

    def round_and_losses(self, steps: int) -> tuple[int, list[float]]:
        """Train with the one trainer; return the round that it joined at, and its losses."""
        programs, scope, exe = self.trainer(0), fluid.Scope(), fluid.Executor()
        losses = []
        try:
            exe.run(programs.startup, scope=scope)
            client = exe._remote.open().client(scope, programs.main.global_block())  # type: ignore[attr-defined]
            begin = client.round
            for step in range(4, 4 + steps):
                feed = perceptron_feeds(step, 0)
                losses += exe.run(programs.main, feed=feed, fetch_list=[programs.loss], scope=scope)
        finally:
            exe.close()
        return begin, [float(loss) for loss in losses]


@pytest.fixture(scope="module")
def saved(tmp_path_factory: Any) -> Any:
    """Two saves of a run, before step 2 and before step 4, and its losses."""
    root = tmp_path_factory.mktemp("saved")
    for step in (2, 4):
        with SavingJob(ADAM, servers=2, trainers=1) as job:
            (losses,) = job.go(perceptron_feeds, 0, 7, save=(step, root / f"at{step}"))
    return root, losses


@pytest.fixture
def copy(saved: Any, tmp_path: Path) -> Callable[..., Path]:
    """Copies a save, with its manifest or without."""
    root, _ = saved

    def make(name: str, save: str = "at4", *, manifest: bool = True) -> Path:
        shutil.copytree(root / save, tmp_path / name)
        beside = root / f"{save}.manifest.json"  # where saves of earlier versions have it
        if manifest and beside.exists():
            shutil.copy(beside, tmp_path / f"{name}.manifest.json")
        if not manifest:
            (tmp_path / name / "__manifest__").unlink(missing_ok=True)
        assert (locate(tmp_path / name).manifest() is not None) == manifest
        return tmp_path / name

    return make


@pytest.mark.parametrize("which", [0, 1], ids=["first", "second"])
def test_a_server_whose_copy_has_no_manifest_takes_the_round_of_the_other(
    saved: Any, copy: Callable[..., Path], which: int
) -> None:
    job = CopiesJob(ADAM, servers=2, trainers=1)
    job.copies = tuple(copy(f"copy{index}", manifest=index != which) for index in range(2))
    with job:
        assert job.round_and_losses(3) == (4, saved[1][4:])
    notes = [" ".join(job.reports[endpoint].notes) for endpoint in job.endpoints]
    assert ["does not say at which round" in one for one in notes] == [index == which for index in range(2)]


def test_servers_without_any_manifest_begin_at_round_0_and_say_so(
    saved: Any, copy: Callable[..., Path]
) -> None:
    job = CopiesJob(ADAM, servers=2, trainers=1)
    job.copies = tuple(copy(f"copy{index}", manifest=False) for index in range(2))
    with job:
        assert job.round_and_losses(3) == (0, saved[1][4:])
    for endpoint in job.endpoints:
        assert "takes the round of the other servers, or begins at round 0" in " ".join(
            job.reports[endpoint].notes
        )


@pytest.mark.parametrize("other", ["at2", None], ids=["another save", "nothing"])
def test_servers_that_loaded_different_saves_are_an_error_that_a_restart_does_not_fix(
    copy: Callable[..., Path], other: str | None
) -> None:
    job = CopiesJob(ADAM, servers=2, trainers=1)
    job.copies = (copy("copy0"), None if other is None else copy("copy1", other))
    with job, pytest.raises(FaultError, match="began at different rounds") as caught:
        job.round_and_losses(1)
    assert caught.value.exit_code == 1
    for endpoint, round in zip(job.endpoints, (4, 0 if other is None else 2), strict=True):
        assert f"{endpoint} at round {round}" in str(caught.value)


def test_two_trainers_adopt_one_round(copy: Callable[..., Path], monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where servers may roll back: the adopted round is that of their start values."""
    monkeypatch.setenv("PADDLELIKE_RESUME_POLICY", "rollback")
    job = CopiesJob(ADAM, servers=2, trainers=2)
    job.copies = (copy("copy0"), copy("copy1", manifest=False))
    with job:
        losses = job.go(perceptron_feeds, 4, 6)
    assert [len(one) for one in losses] == [2, 2]
