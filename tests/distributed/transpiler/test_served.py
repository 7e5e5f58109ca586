"""Transpiled jobs over a real wire: one trainer and three servers train to the bits of one process."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import paddlelike as fluid
from tests.distributed.checkpoint.jobs import SavingJob
from tests.distributed.jobs import SEED, Job, Network
from tests.distributed.transpiler.test_meaning import (
    OPTIMIZERS,
    batches,
    mlp,
    nce,
    tied,
    with_weight_norm,
    word2vec,
    words,
)
from tests.helpers.fresh import fresh_programs

STEPS = 4


class Averaged:
    """SGD, and a moving average of every parameter beside it."""

    def minimize(self, loss: Any) -> None:
        fluid.optimizer.SGD(0.1).minimize(loss)
        fluid.optimizer.ExponentialMovingAverage(0.9).update()


HASHED = {"split_method": fluid.transpiler.HashName}
JOBS: dict[str, tuple[Network, Callable[..., Any]]] = {
    **{name: (Network(mlp, optimizer), batches) for name, optimizer in OPTIMIZERS.items()},
    "averages": (Network(mlp, Averaged), batches),
    "by_name": (Network(mlp, OPTIMIZERS["adam"], HASHED), batches),
    "weight_norm": (Network(with_weight_norm, OPTIMIZERS["adam"]), batches),
    "sparse": (Network(word2vec, OPTIMIZERS["adam"]), words),
    "sparse_l2": (Network(word2vec, OPTIMIZERS["l2"]), words),
    "dependent": (Network(lambda: word2vec(dependent=True), OPTIMIZERS["sgd"]), words),
    "nce": (Network(nce, OPTIMIZERS["sgd"]), words),
    "tied": (Network(tied, OPTIMIZERS["sgd"]), words),
}


@pytest.mark.parametrize("name", JOBS)
def test_one_trainer_and_three_servers_train_like_one_process(name: str) -> None:
    network, draw = JOBS[name]
    feeds = [draw(np.random.default_rng(step)) for step in range(STEPS)]
    expected, begun = alone(network, feeds)
    with Job(network, servers=3, trainers=1) as job:
        job.start_with(begun)
        (losses,) = job.train(lambda step, trainer: feeds[step], STEPS)
    assert losses == expected
    assert losses[-1] != losses[0]


@pytest.mark.slow
@pytest.mark.parametrize("name", JOBS)
def test_a_save_of_three_servers_continues_on_two(name: str, tmp_path: Path) -> None:
    """Any state of the optimizer is served, cut or whole."""
    network, draw = JOBS[name]

    def feeds(step: int, trainer: int) -> Any:
        return draw(np.random.default_rng(step))

    with SavingJob(network, servers=3, trainers=1) as job:
        (losses,) = job.go(feeds, 0, STEPS, save=(2, tmp_path / "model"))
    with SavingJob(network, servers=2, trainers=1, loaded=tmp_path / "model") as job:
        (again,) = job.go(feeds, 2, STEPS)
    assert again == losses[2:]


def alone(network: Network, feeds: list[Any]) -> tuple[list[float], dict[str, Any]]:
    """The losses of the network in one process, and all values that it began with."""
    with fresh_programs(SEED) as (main, startup):
        loss = network.build()
        network.optimizer().minimize(loss)
    exe, scope = fluid.Executor(), fluid.Scope()
    exe.run(startup, scope=scope)
    names = [v.name for v in main.list_vars() if v.persistable]
    begun = {name: np.array(scope.find_var(name).get_tensor()) for name in names}
    losses = [exe.run(main, feed=feed, fetch_list=[loss], scope=scope)[0][0] for feed in feeds]
    return [float(value) for value in losses], begun
