"""A trainer of parameter servers computes with JAX; servers send and receive what it has on the device."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytest.importorskip("jax", reason="the extra `jax` is not installed", exc_type=ImportError)

import paddlelike as fluid
from tests.compiled.harness.nets import use
from tests.distributed.jobs import (
    Job,
    Network,
    adam_with_schedule,
    perceptron,
    perceptron_feeds,
    sgd,
    train_locally,
)

pytestmark = pytest.mark.slow


def test_a_trainer_with_jax_has_the_losses_of_training_with_numpy() -> None:
    network = Network(perceptron, adam_with_schedule, {}, sync=False)
    expected, begun = train_locally(network, lambda step: perceptron_feeds(step, 0), 6)
    with use("jax"), Job(network, trainers=1) as job:
        job.start_with(begun)
        (losses,) = job.train(perceptron_feeds, 6)
    # Another order of float32 sums.
    np.testing.assert_allclose(losses, expected, rtol=1e-5)


@pytest.mark.parametrize("way", ["flag", "with_backend"])
def test_two_trainers_with_jax_have_the_losses_of_two_with_numpy_round_by_round(way: str) -> None:
    network = Network(perceptron, adam_with_schedule)
    with Job(network).start() as job:
        expected = job.train(perceptron_feeds, 6)
    with use("jax" if way == "flag" else "numpy"), Job(network).start() as job:
        found = job.train(
            perceptron_feeds,
            6,
            program=lambda main, loss: (
                main if way == "flag" else fluid.CompiledProgram(main).with_backend("jax")
            ),
        )
    np.testing.assert_allclose(found, expected, rtol=1e-5)  # another order of float32 sums


def test_two_synchronous_trainers_with_jax_send_the_rows_of_sparse_gradients() -> None:
    def build() -> Any:
        ids = fluid.data("ids", [None, 1], "int64")
        embedded = fluid.embedding(ids, [12, 4], is_sparse=True)
        hidden = fluid.layers.fc(fluid.layers.reshape(embedded, [-1, 4]), 1)
        return fluid.layers.mean(fluid.layers.square(hidden - fluid.data("y", [None, 1])))

    def feeds(step: int, trainer: int) -> dict[str, Any]:
        rng = np.random.default_rng([step, trainer])
        return {"ids": rng.integers(0, 12, (6, 1)), "y": rng.standard_normal((6, 1)).astype("float32")}

    def run(backend: str) -> Any:
        with Job(Network(build, sgd)).start() as job:
            return job.train(
                feeds, 5, program=lambda main, loss: fluid.CompiledProgram(main).with_backend(backend)
            )

    np.testing.assert_allclose(run("jax"), run("numpy"), rtol=1e-5)  # another order of float32 sums
