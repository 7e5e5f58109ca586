"""Asynchronous training: every update once, whoever comes first."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import paddlelike as fluid
from paddlelike.distributed.client.client import Client
from paddlelike.distributed.communicator import Communicator
from paddlelike.errors import FaultError
from tests.distributed.jobs import (
    Job,
    Network,
    adam_with_schedule,
    perceptron,
    perceptron_feeds,
    sgd,
    train_locally,
)
from tests.distributed.training.test_sparse import bag_feeds, embedding_bag

MODES: dict[str, dict[str, Any]] = {
    "default": {},
    "runtime split": {"sync_mode": False, "runtime_split_send_recv": True},
    "half": {"sync_mode": False, "runtime_split_send_recv": False},
}


def rates_of_their_own() -> Any:
    """Parameters with a factor for the learning rate: the servers compute the products, without a counter."""
    x, y = fluid.data("x", [None, 6]), fluid.data("y", [None, 1])
    attrs = [fluid.ParamAttr(learning_rate=rate) for rate in (5.0, 0.5)]
    hidden = fluid.layers.fc(x, 5, act="tanh", param_attr=attrs[0], bias_attr=attrs[1])
    return fluid.layers.mean(fluid.layers.square_error_cost(fluid.layers.fc(hidden, 1), y))


def rate_feeds(step: int, trainer: int) -> Any:
    rng = np.random.RandomState(step)
    return {"x": rng.rand(4, 6).astype("float32"), "y": rng.rand(4, 1).astype("float32")}


@pytest.mark.parametrize("mode", MODES)
def test_parameters_may_have_their_own_learning_rates(mode: str) -> None:
    network = Network(rates_of_their_own, lambda: fluid.optimizer.Adam(0.01), MODES[mode], sync=False)
    expected, begun = train_locally(network, lambda step: rate_feeds(step, 0), 4)
    with Job(network, trainers=1) as job:
        job.start_with(begun)
        (losses,) = job.train(rate_feeds, 4)
    assert losses == expected


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("optimizer", [sgd, adam_with_schedule])
def test_one_trainer_has_the_same_bits_as_training_without_servers(mode: str, optimizer: Any) -> None:
    network = Network(perceptron, optimizer, MODES[mode], sync=False)
    expected, begun = train_locally(network, lambda step: perceptron_feeds(step, 0), 6)
    with Job(network, trainers=1) as job:
        job.start_with(begun)
        (losses,) = job.train(perceptron_feeds, 6)
    assert losses == expected


@pytest.mark.parametrize("mode", MODES)
def test_every_update_is_applied_once(mode: str) -> None:
    """Gradients of a linear loss do not depend on the parameters, so neither does their sum on the order."""

    def feeds(step: int, trainer: int) -> Any:
        return {"x": np.full((2, 4), 2.0**trainer, "float32")}

    def sgd_of_one() -> Any:
        return fluid.optimizer.SGD(1.0)

    with Job(Network(linear, sgd_of_one, MODES[mode], sync=False), trainers=3, servers=1).start() as job:
        job.train(feeds, 8)
        weight = job.values(job.endpoints[0])["fc_0.w_0"]
    assert np.array_equal(weight, np.full((4, 1), -8.0 * (1 + 2 + 4)))


@pytest.mark.parametrize("mode", MODES)
def test_two_asynchronous_trainers_lower_the_loss(mode: str) -> None:
    network = Network(perceptron, lambda: fluid.optimizer.SGD(0.02), MODES[mode], sync=False)

    def feeds(step: int, trainer: int) -> Any:
        return perceptron_feeds(step % 5, trainer)

    with Job(network).start() as job:
        losses = np.array(job.train(feeds, 40))
    assert losses[:, -5:].mean() < 0.2 * losses[:, :5].mean()


def linear() -> Any:
    x = fluid.data(name="x", shape=[None, 4], dtype="float32")
    zero = fluid.initializer.Constant(0.0)
    return fluid.layers.mean(fluid.layers.fc(x, 1, param_attr=fluid.ParamAttr(initializer=zero)))


@pytest.mark.parametrize("most", ["1", "3", "20"])
def test_a_communicator_sends_every_gradient_once(most: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FLAGS_communicator_max_merge_var_num", most)
    network = Network(linear, lambda: fluid.optimizer.SGD(1.0), MODES["runtime split"], sync=False)
    with Job(network, trainers=1).start() as job:
        programs = job.trainer(0)
        executor = fluid.Executor()
        executor.run(programs.startup)
        communicator = Communicator(programs.main)
        communicator.start()
        assert communicator.is_running()
        for _ in range(12):
            executor.run(programs.main, feed={"x": np.ones((2, 4), "float32")})
        communicator.stop()
        assert not communicator.is_running()
        executor.run(programs.main, feed={"x": np.ones((2, 4), "float32")})  # by itself again
        held = np.array(fluid.global_scope().find_var("fc_0.w_0").get_tensor())
        executor.close()
        values = [job.values(endpoint) for endpoint in job.endpoints]
    (weight,) = [one["fc_0.w_0"] for one in values if "fc_0.w_0" in one]
    assert np.array_equal(weight, np.full((4, 1), -13.0))
    assert np.array_equal(held, weight)


@pytest.mark.parametrize("is_run_first", [False, True])
def test_a_communicator_that_starts_outside_of_the_scope_of_training_pushes_its_gradients(
    is_run_first: bool,
) -> None:
    network = Network(linear, lambda: fluid.optimizer.SGD(1.0), MODES["runtime split"], sync=False)
    scope = fluid.Scope()
    with Job(network, trainers=1, servers=1).start() as job:
        programs = job.trainer(0)
        executor, communicator = fluid.Executor(), Communicator(programs.main)
        if is_run_first:
            executor.run(programs.startup, scope=scope)
        communicator.start()
        executor.run(programs.startup, scope=scope)
        for _ in range(5):
            executor.run(programs.main, feed={"x": np.ones((2, 4), "float32")}, scope=scope)
        communicator.stop()
        executor.close()
        weight = job.values(job.endpoints[0])["fc_0.w_0"]
    assert np.array_equal(weight, np.full((4, 1), -5.0))


def test_a_save_has_the_steps_that_a_communicator_holds_back(tmp_path: Path) -> None:
    network = Network(linear, lambda: fluid.optimizer.SGD(1.0), MODES["runtime split"], sync=False)
    with Job(network, trainers=1).start() as job:
        programs = job.trainer(0)
        executor = fluid.Executor()
        executor.run(programs.startup)
        communicator = Communicator(programs.main, envs={"communicator_send_wait_times": "100000"})
        communicator.start()
        for _ in range(3):
            executor.run(programs.main, feed={"x": np.ones((2, 4), "float32")})
        fluid.io.save_persistables(executor, str(tmp_path), programs.main)
        communicator.stop()
        executor.close()
    saved = fluid.io.load_program_state(str(tmp_path))
    assert np.array_equal(saved["fc_0.w_0"], np.full((4, 1), -3.0))


@pytest.mark.parametrize("is_distributed", [False, True])
def test_a_communicator_trains_embeddings(is_distributed: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    # A busy machine lets many steps pass before the thread sends; the sum of 20 stale gradients overshoots.
    monkeypatch.setenv("FLAGS_communicator_max_merge_var_num", "2")

    def fast() -> Any:
        return fluid.optimizer.SGD(0.1)

    network = Network(embedding_bag(is_distributed=is_distributed), fast, MODES["half"], sync=False)
    with Job(network, trainers=1).start() as job:
        programs = job.trainer(0)
        executor = fluid.Executor()
        executor.run(programs.startup)
        communicator = Communicator(programs.main)
        communicator.start()
        losses = [
            float(executor.run(programs.main, feed=bag_feeds(step % 4, 0), fetch_list=[programs.loss])[0])
            for step in range(120)
        ]
        executor.close()  # sends what is left
    assert np.mean(losses[-4:]) < 0.5 * np.mean(losses[:4])


def test_an_error_that_ends_a_communicator_is_raised_in_training() -> None:
    with Job(Network(linear, sgd, sync=False), trainers=2).start() as job:
        programs = job.trainer(0)
        executor = fluid.Executor()
        executor.run(programs.startup)
        communicator = Communicator(programs.main)
        communicator.start()
        successor = Client(0, job.endpoints)
        feed = {"x": np.ones((2, 4), "float32")}

        def train_on() -> None:
            for _ in range(10000):
                executor.run(programs.main, feed=feed)

        with pytest.raises(FaultError, match="another process has taken its place"):
            train_on()
        with pytest.raises(FaultError):
            communicator.stop()
        executor.close()
        successor.close()
        other = Client(1, job.endpoints)
        other.close()


def test_a_communicator_accepts_only_a_program() -> None:
    with pytest.raises(TypeError, match="takes a trainer's Program"):
        Communicator("program")  # type: ignore[arg-type]


@pytest.mark.parametrize("is_distributed", [False, True])
def test_embeddings_train_asynchronously(is_distributed: bool) -> None:
    local = Network(embedding_bag(is_distributed=False), sgd)
    expected, _ = train_locally(local, lambda step: bag_feeds(step, 0), 5)
    network = Network(embedding_bag(is_distributed=is_distributed), sgd, sync=False)
    with Job(network, trainers=1).start() as job:
        (losses,) = job.train(bag_feeds, 5)
    assert losses == expected


def test_a_schedule_continues_with_fewer_trainers() -> None:
    with Job(Network(perceptron, adam_with_schedule, sync=False), servers=1, trainers=2) as job:
        programs, scope = job.server(job.endpoints[0]), fluid.Scope()
        fluid.Executor().run(programs.startup, scope=scope)
        saved = {"@LR_DECAY_COUNTER@": 299, "@LR_DECAY_COUNTER@.trainer_0": 100}  # there were three
        for name, value in saved.items():
            scope.find_var(name).get_tensor().set(np.array([value]))
        programs.startup = None
        job.start_server(job.endpoints[0], programs, scope)
        job.train(perceptron_feeds, 4)
        values = job.values(job.endpoints[0])
    assert values["@LR_DECAY_COUNTER@"].tolist() == [299 + 8]
