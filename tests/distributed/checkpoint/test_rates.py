"""Learning rates after a resume: servers take the script's, as Fluid's do; a local load takes the file's."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import paddlelike as fluid
from tests.distributed.checkpoint.jobs import SavingJob, alone
from tests.distributed.jobs import Network, adam_with_schedule, perceptron, perceptron_feeds


def momentum_of(rate: float) -> Network:
    return Network(perceptron, lambda: fluid.optimizer.Momentum(rate, 0.9))


def rates_on_servers(job: SavingJob) -> set[float]:
    return {
        float(value[0])
        for endpoint in job.endpoints
        for name, value in job.values(endpoint).items()
        if name.startswith("learning_rate")
    }


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    """A directory that servers saved whose learning rate was 0.01."""
    with SavingJob(momentum_of(0.01), trainers=1) as job:
        job.go(perceptron_feeds, 0, 3, save=(2, tmp_path / "model"))
    return tmp_path / "model"


@pytest.mark.parametrize("form", ["main", "startup"])
def test_servers_take_the_learning_rate_of_the_script(saved: Path, form: str) -> None:
    with SavingJob(momentum_of(0.5), trainers=1, loaded=saved, form=form) as job:
        job.go(perceptron_feeds, 2, 3)
    assert rates_on_servers(job) == {float(np.float32(0.5))}
    for report in job.reports.values():
        assert "learning_rate_0" not in report.loaded
        (note,) = [note for note in report.notes if "learning rate" in note]
        assert "'learning_rate_0' stays 0.5, as the script sets it; the directory has 0.01" in note


def test_an_unchanged_learning_rate_adds_no_note(saved: Path) -> None:
    with SavingJob(momentum_of(0.01), trainers=1, loaded=saved) as job:
        job.go(perceptron_feeds, 2, 3)
    assert not [n for report in job.reports.values() for n in report.notes if "learning rate" in n]


def test_one_process_loads_the_learning_rate_that_was_saved(saved: Path) -> None:
    _, values = alone(momentum_of(0.5), lambda step: perceptron_feeds(step, 0), 2, 3, saved)
    assert values["learning_rate_0"].tolist() == [float(np.float32(0.01))]


def test_directories_of_real_fluid_cause_no_note_on_the_learning_rate(saved: Path) -> None:
    (saved / "learning_rate_0").unlink()
    with SavingJob(momentum_of(0.5), trainers=1, loaded=saved) as job:
        job.go(perceptron_feeds, 2, 3)
    assert rates_on_servers(job) == {float(np.float32(0.5))}
    assert not [n for report in job.reports.values() for n in report.notes if "learning rate" in n]


def test_a_schedule_continues_from_its_counter(tmp_path: Path) -> None:
    network: Any = Network(perceptron, adam_with_schedule)
    with SavingJob(network, trainers=1) as job:
        (losses,) = job.go(perceptron_feeds, 0, 6, save=(4, tmp_path / "model"))
    with SavingJob(network, trainers=1, loaded=tmp_path / "model") as job:
        assert job.go(perceptron_feeds, 4, 6) == [losses[4:]]
