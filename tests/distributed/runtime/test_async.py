"""Asynchronous training: every update once, whoever comes first."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import paddlelike as fluid
from tests.distributed.runtime.jobs import (
    Job,
    Network,
    adam_with_schedule,
    perceptron,
    perceptron_feeds,
    sgd,
    train_locally,
)
from tests.distributed.runtime.test_sparse import bag_feeds, embedding_bag

MODES: dict[str, dict[str, Any]] = {
    "default": {},
    "runtime split": {"sync_mode": False, "runtime_split_send_recv": True},
    "half": {"sync_mode": False, "runtime_split_send_recv": False},
}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("optimizer", [sgd, adam_with_schedule])
def test_one_trainer_has_the_bits_of_training_without_servers(mode: str, optimizer: Any) -> None:
    network = Network(perceptron, optimizer, MODES[mode], sync=False)
    expected, begun = train_locally(network, lambda step: perceptron_feeds(step, 0), 6)
    with Job(network, trainers=1) as job:
        job.start_with(begun)
        (losses,) = job.train(perceptron_feeds, 6)
    assert losses == expected


@pytest.mark.parametrize("mode", MODES)
def test_every_update_is_applied_once(mode: str) -> None:
    """Gradients of a linear loss do not depend on the parameters, so neither does their sum on the order."""

    def linear() -> Any:
        x = fluid.data(name="x", shape=[None, 4], dtype="float32")
        out = fluid.layers.fc(x, 1, param_attr=fluid.ParamAttr(initializer=fluid.initializer.Constant(0.0)))
        return fluid.layers.mean(out)

    def feeds(step: int, trainer: int) -> Any:
        return {"x": np.full((2, 4), 2.0**trainer, "float32")}

    def sgd_of_one() -> Any:
        return fluid.optimizer.SGD(1.0)

    with Job(Network(linear, sgd_of_one, MODES[mode], sync=False), trainers=3, servers=1).start() as job:
        job.train(feeds, 8)
        weight = job.values(job.endpoints[0])["fc_0.w_0"]
    assert np.array_equal(weight, np.full((4, 1), -8.0 * (1 + 2 + 4)))


@pytest.mark.parametrize("mode", MODES)
def test_two_trainers_learn(mode: str) -> None:
    network = Network(perceptron, lambda: fluid.optimizer.SGD(0.02), MODES[mode], sync=False)

    def feeds(step: int, trainer: int) -> Any:
        return perceptron_feeds(step % 5, trainer)

    with Job(network).start() as job:
        losses = np.array(job.train(feeds, 40))
    assert losses[:, -5:].mean() < 0.2 * losses[:, :5].mean()


@pytest.mark.parametrize("is_distributed", [False, True])
def test_embeddings_train_asynchronously(is_distributed: bool) -> None:
    local = Network(embedding_bag(is_distributed=False), sgd)
    expected, _ = train_locally(local, lambda step: bag_feeds(step, 0), 5)
    network = Network(embedding_bag(is_distributed=is_distributed), sgd, sync=False)
    with Job(network, trainers=1).start() as job:
        (losses,) = job.train(bag_feeds, 5)
    assert losses == expected
