"""N servers resume from what M servers saved, bit for bit."""

from __future__ import annotations

import os
import shutil
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import paddlelike as fluid
from tests.distributed.checkpoint.jobs import SavingJob, alone
from tests.distributed.jobs import Network, adam_with_schedule, perceptron, perceptron_feeds, sgd


def wide() -> Any:
    """130 -> 320 -> 1: the first weight is cut into as many slices as there are servers, up to five."""
    return perceptron(320)


ADAM = Network(wide, adam_with_schedule)


#: Numbers of servers; two more are for those who wait.
COUNTS = [1, 2, pytest.param(3, marks=pytest.mark.slow), pytest.param(4, marks=pytest.mark.slow), 5]


@pytest.fixture(scope="module", params=COUNTS, ids=lambda m: f"from{m}")
def run(request: Any, tmp_path_factory: Any) -> Any:
    """An uninterrupted run that saves before step 4: losses, values at the end, directory."""
    directory = tmp_path_factory.mktemp("saved") / f"by{request.param}"
    with SavingJob(ADAM, servers=request.param) as job:
        losses = job.go(perceptron_feeds, 0, 7, save=(4, directory))
    return losses, job.on_servers(), directory


@pytest.mark.parametrize("servers", COUNTS, ids=lambda n: f"to{n}")
def test_n_servers_resume_with_the_same_bits(run: Any, servers: int) -> None:
    losses, values, directory = run
    form = "main" if servers % 2 else "startup"
    with SavingJob(ADAM, servers=servers, loaded=directory, form=form) as job:
        again = job.go(perceptron_feeds, 4, 7)
    assert again == [one[4:] for one in losses]
    found = job.on_servers()
    assert found.keys() == values.keys()
    for name, value in values.items():
        assert np.array_equal(found[name], value), name


def test_the_directory_equals_a_save_of_one_process(tmp_path: Path) -> None:
    """One trainer trains as one process does, so the two directories must be equal, byte for byte."""
    with SavingJob(ADAM, servers=3, trainers=1) as job:
        (losses,) = job.go(perceptron_feeds, 0, 5, save=(3, tmp_path / "servers"))
    again, values = alone(ADAM, lambda step: perceptron_feeds(step, 0), 3, 5, tmp_path / "servers")
    assert again == losses[3:]
    held = job.on_servers()
    assert {"fc_0.w_0_moment1_0", "@LR_DECAY_COUNTER@", "fc_0.w_0_beta1_pow_acc_0"} <= held.keys()
    for name in held.keys() & values.keys():
        assert np.array_equal(held[name], values[name]), name


def test_a_note_warns_that_a_save_of_fluid_lacks_the_schedule_counter(tmp_path: Path) -> None:
    """Fluid's own trainer saves its counter, which nothing counts up, beside what the servers have."""
    with SavingJob(ADAM, trainers=1) as job:
        job.go(perceptron_feeds, 0, 2, save=(1, tmp_path / "model"))
    for notes in (0, 1):
        with SavingJob(ADAM, trainers=1, loaded=tmp_path / "model") as job:
            job.go(perceptron_feeds, 1, 2)
        for report in job.reports.values():
            assert sum("begins again" in note for note in report.notes) == notes
        (tmp_path / "model" / "__manifest__").unlink(missing_ok=True)


def test_real_fluid_may_save_over_a_directory_that_we_saved(tmp_path: Path) -> None:
    """Its powers of beta are four bytes longer for each further server that has them."""
    with SavingJob(ADAM, trainers=1) as job:
        (losses,) = job.go(perceptron_feeds, 0, 3, save=(1, tmp_path / "model"))
    path = tmp_path / "model" / "fc_0.w_0_beta1_pow_acc_0"
    path.write_bytes(path.read_bytes() + path.read_bytes()[-4:])
    for path in (tmp_path / "model").iterdir():
        if path.name != "__manifest__":  # Fluid writes all of its files again
            shutil.copy(path, tmp_path / "written")
            path.unlink()
            shutil.copy(tmp_path / "written", path)
            os.utime(path, (time.time() + 10, time.time() + 10))
    replaced = pytest.warns(
        UserWarning, match="has 32 bytes, the manifest says 28|files differ from the manifest"
    )
    with replaced as warned, SavingJob(ADAM, trainers=1, loaded=tmp_path / "model") as job:
        (again,) = job.go(perceptron_feeds, 1, 3)
    assert sum("has 32 bytes" in str(one.message) for one in warned) == 2  # one for each server
    assert again == losses[1:]


def line() -> Any:
    """13 -> 1: two small variables, for servers to have nothing to do."""
    x = fluid.data(name="x", shape=[None, 13], dtype="float32")
    y = fluid.data(name="y", shape=[None, 1], dtype="float32")
    return fluid.layers.mean(fluid.layers.square_error_cost(input=fluid.layers.fc(input=x, size=1), label=y))


def line_feeds(step: int, trainer: int) -> Any:
    x = np.random.RandomState(step).uniform(-1, 1, (4, 13)).astype("float32")
    return {"x": x, "y": x.sum(1, keepdims=True)}


@pytest.mark.parametrize("optimizer", [sgd, adam_with_schedule])
@pytest.mark.filterwarnings("ignore:server .* keeps no variable")
def test_servers_without_variables_load_nothing_and_serve(tmp_path: Path, optimizer: Any) -> None:
    network = Network(line, optimizer)
    with SavingJob(network, servers=1, trainers=1) as job:
        (losses,) = job.go(line_feeds, 0, 4, save=(2, tmp_path / "model"))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with SavingJob(network, servers=5, trainers=1, loaded=tmp_path / "model") as job:
            (again,) = job.go(line_feeds, 2, 4)
    assert again == losses[2:]
    idle = [one for one in caught if "keeps no variable at all" in str(one.message)]
    assert len(idle) == (3 if optimizer is sgd else 0)  # counters of schedules are everywhere
    assert [bool(report) for report in job.reports.values()].count(False) == len(idle)
