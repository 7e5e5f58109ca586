"""What M servers trained goes on with N servers, bit for bit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import paddlelike as fluid
from tests.distributed.persist.jobs import SavingJob, alone
from tests.distributed.runtime.jobs import Network, adam_with_schedule, perceptron_feeds


def wide() -> Any:
    """130 -> 320 -> 1: the first weight is cut into as many slices as there are servers, up to five."""
    x = fluid.data(name="x", shape=[None, 130], dtype="float32")
    y = fluid.data(name="y", shape=[None, 1], dtype="float32")
    hidden = fluid.layers.fc(input=x, size=320, act="tanh")
    out = fluid.layers.fc(input=hidden, size=1)
    return fluid.layers.mean(fluid.layers.square_error_cost(input=out, label=y))


ADAM = Network(wide, adam_with_schedule)


@pytest.fixture(scope="module", params=[1, 2, 3, 4, 5], ids=lambda m: f"from{m}")
def run(request: Any, tmp_path_factory: Any) -> Any:
    """An uninterrupted run that saves before step 4: losses, values at the end, directory."""
    directory = tmp_path_factory.mktemp("saved") / f"by{request.param}"
    with SavingJob(ADAM, servers=request.param) as job:
        losses = job.go(perceptron_feeds, 0, 7, save=(4, directory))
    return losses, job.on_servers(), directory


@pytest.mark.parametrize("servers", [1, 2, 3, 4, 5], ids=lambda n: f"to{n}")
def test_n_servers_go_on_as_if_nothing_had_happened(run: Any, servers: int) -> None:
    losses, values, directory = run
    form = "main" if servers % 2 else "startup"
    with SavingJob(ADAM, servers=servers, loaded=directory, form=form) as job:
        again = job.go(perceptron_feeds, 4, 7)
    assert again == [one[4:] for one in losses]
    found = job.on_servers()
    assert found.keys() == values.keys()
    for name, value in values.items():
        assert np.array_equal(found[name], value), name


def test_the_directory_holds_what_one_process_would_have_saved(tmp_path: Path) -> None:
    """One trainer trains as one process does, so the two directories must be equal, byte for byte."""
    with SavingJob(ADAM, servers=3, trainers=1) as job:
        (losses,) = job.go(perceptron_feeds, 0, 5, save=(3, tmp_path / "servers"))
    again, values = alone(ADAM, lambda step: perceptron_feeds(step, 0), 3, 5, tmp_path / "servers")
    assert again == losses[3:]
    held = job.on_servers()
    assert {"fc_0.w_0_moment1_0", "@LR_DECAY_COUNTER@", "fc_0.w_0_beta1_pow_acc_0"} <= held.keys()
    for name in held.keys() & values.keys():
        assert np.array_equal(held[name], values[name]), name


def test_a_directory_without_a_manifest_may_have_forgotten_the_schedule(tmp_path: Path) -> None:
    """Fluid's own trainer saves its counter, which nothing counts up, beside what the servers have."""
    with SavingJob(ADAM, trainers=1) as job:
        job.go(perceptron_feeds, 0, 2, save=(1, tmp_path / "model"))
    for notes in (0, 1):
        with SavingJob(ADAM, trainers=1, loaded=tmp_path / "model") as job:
            job.go(perceptron_feeds, 1, 2)
        for report in job.reports.values():
            assert sum("begins anew" in note for note in report.notes) == notes
        (tmp_path / "model.manifest.json").unlink(missing_ok=True)


def test_real_fluid_may_save_over_a_directory_of_ours(tmp_path: Path) -> None:
    """Its powers of beta are four bytes longer for each further server that has them."""
    with SavingJob(ADAM, trainers=1) as job:
        (losses,) = job.go(perceptron_feeds, 0, 3, save=(1, tmp_path / "model"))
    path = tmp_path / "model" / "fc_0.w_0_beta1_pow_acc_0"
    path.write_bytes(path.read_bytes() + path.read_bytes()[-4:])
    replaced = pytest.warns(UserWarning, match="has 32 bytes, the manifest says 28")
    with replaced as warned, SavingJob(ADAM, trainers=1, loaded=tmp_path / "model") as job:
        (again,) = job.go(perceptron_feeds, 1, 3)
    assert len(warned) == 2  # one for each server
    assert again == losses[1:]
