"""Programs of servers that real Fluid 1.8.5 wrote, read from their bytes, serve trainers of ours."""

from __future__ import annotations

import numpy as np
import pytest

import paddlelike as fluid
from tests.distributed.jobs import MOMENTUM, Job, Programs, perceptron_feeds
from tests.distributed.training.test_sync import recorded
from tests.helpers.golden_data import GOLDEN

PROGRAMS = GOLDEN / "distributed_runs" / "mlp_momentum_sync_2x2" / "programs"


class RealServers(Job):
    """A job whose servers run programs of the real system."""

    def server(self, endpoint: str) -> Programs:
        number = self.endpoints.index(endpoint)
        startup, main = (
            fluid.Program.parse_from_string(
                (PROGRAMS / f"pserver{number}{part}.pb").read_bytes(), trusted=True
            )
            for part in ("_startup", "")
        )
        (op,) = main.global_block().ops
        op._set_attr("endpoint", endpoint)  # it was made for ports that may be taken here
        return Programs(startup, main)

    def serve(self, endpoint: str, values: None = None) -> None:
        """Start a server; a program from bytes does not say whose rows it keeps, and need not."""
        self.start_server(endpoint, self.server(endpoint))


class TrainersFromBytes(Job):
    """A job whose trainers run programs that were written and read again."""

    def trainer(self, number: int) -> Programs:
        made = super().trainer(number)
        startup, main = (
            fluid.Program.parse_from_string(one.desc.serialize_to_string(), trusted=True)
            for one in (made.startup, made.main)
        )
        return Programs(startup, main, main.global_block().var(made.loss.name))


def test_trainers_with_programs_read_from_bytes_have_the_same_losses() -> None:
    with TrainersFromBytes(MOMENTUM).start() as job:
        losses = job.train(perceptron_feeds, 4)
    with Job(MOMENTUM).start() as job:
        assert job.train(perceptron_feeds, 4) == losses


def test_servers_of_real_fluid_have_its_losses() -> None:
    with RealServers(MOMENTUM).start() as job:
        losses = job.train(perceptron_feeds, 10)
    # Sums in float32 go in another order than in Eigen: a few units in the last place after ten steps.
    real = recorded("mlp_momentum_sync_2x2")["losses_uninterrupted"]
    np.testing.assert_allclose(losses, real, rtol=2e-6)
    with Job(MOMENTUM).start() as job:
        assert job.train(perceptron_feeds, 10) == losses


def test_a_trainer_takes_its_first_parameters_from_the_servers() -> None:
    with RealServers(MOMENTUM).start() as job:
        job.train(perceptron_feeds, 0)
        held = job.values("trainer 0")
        there = {name: value for one in job.endpoints for name, value in job.values(one).items()}
    whole = np.concatenate([there["fc_0.w_0.block0"], there["fc_0.w_0.block1"]])
    assert np.array_equal(held["fc_0.w_0"], whole)
    real = recorded("mlp_momentum_sync_2x2")["pserver_values_after_startup"]
    first = real[1]["fc_0.w_0.block0"]["first"]
    assert there["fc_0.w_0.block0"].reshape(-1)[:3].tolist() == pytest.approx(first, rel=1e-6)
