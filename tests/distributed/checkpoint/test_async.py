"""Asynchronous training is saved from the servers: a trainer's parameters may be older than theirs."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import paddlelike as fluid
from paddlelike.distributed.server.position import read_position
from tests.distributed.checkpoint.jobs import SavingJob
from tests.distributed.checkpoint.test_resume import ADAM
from tests.distributed.checkpoint.test_tables import BLOCKS, SHARDS, feeds
from tests.distributed.jobs import Network, perceptron_feeds

ASYNC = Network(ADAM.build, ADAM.optimizer, {"sync_mode": False, "runtime_split_send_recv": True}, sync=False)
TABLES = [Network(one.build, one.optimizer, ASYNC.config, sync=False) for one in (BLOCKS, SHARDS)]


def test_saved_parameters_and_optimizer_state_come_from_the_same_step(tmp_path: Path) -> None:
    with SavingJob(ASYNC, servers=2, trainers=1) as job:
        job.go(perceptron_feeds, 0, 3, save=(2, tmp_path / "model"))
    position = read_position(tmp_path / "model", job.endpoints[0])
    assert position is not None
    assert position["round"] == 2
    assert [update[-1] for update in position["updates"]] == [2]
    with SavingJob(ASYNC, servers=3, trainers=1, loaded=tmp_path / "model") as other:
        other.go(perceptron_feeds, 2, 3)
    before, after = job.on_servers(), other.on_servers()
    assert before["@LR_DECAY_COUNTER@"] == 2
    for name, value in before.items():
        assert np.array_equal(value, after[name]), name


@pytest.mark.parametrize("network", TABLES, ids=["blocks", "shards"])
def test_tables_are_saved_whole(tmp_path: Path, network: Network) -> None:
    with SavingJob(network, servers=2, trainers=2) as job:
        job.go(feeds, 0, 4, save=(3, tmp_path / "model"))
    assert fluid.io.verify(str(tmp_path / "model"))
    with SavingJob(network, servers=3, trainers=2, loaded=tmp_path / "model") as job:
        losses = job.go(feeds, 3, 6)
    assert np.isfinite(losses).all()
    assert all(job.reports[endpoint] for endpoint in job.endpoints)
