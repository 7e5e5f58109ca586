"""Memory of a round does not grow with trainers; asynchronous updates are applied side by side, each once."""

from __future__ import annotations

import os
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

import paddlelike as fluid
from paddlelike.distributed.client import gradients
from paddlelike.distributed.client.client import Client
from paddlelike.distributed.protocol.server import ServerState
from paddlelike.distributed.server import update_threads, verbs
from paddlelike.distributed.server.staging import Contribution, Staging
from paddlelike.distributed.server.variables import Variables
from tests.distributed.jobs import Job, Network, momentum, perceptron, perceptron_feeds
from tests.distributed.training.test_sparse import bag_feeds, embedding_bag

ROUNDS = 3
SPARSE = Network(embedding_bag(is_distributed=False), momentum)
DENSE = Network(perceptron, momentum)


def train(network: Network, feeds: Any, trainers: int) -> dict[str, Any]:
    """The parameters of one server after some rounds."""
    with Job(network, servers=1, trainers=trainers).start() as job:
        job.train(feeds, ROUNDS)
        return job.values(job.endpoints[0])


def count_sets(patch: pytest.MonkeyPatch) -> list[int]:
    """Note after each allocation for a push how many pushes the server holds."""
    counts: list[int] = []
    take = Staging.take

    def noted(self: Staging, rows: Any) -> Contribution:
        found = take(self, rows)
        counts.append(len(self._used))
        return found

    patch.setattr(Staging, "take", noted)
    return counts


@pytest.mark.parametrize("early", [1, 1 << 60], ids=["as they are computed", "at the barrier"])
@pytest.mark.parametrize(
    ("network", "feeds"), [(DENSE, perceptron_feeds), (SPARSE, bag_feeds)], ids=["dense", "rows"]
)
def test_a_round_needs_no_memory_for_each_trainer_and_keeps_its_bits(
    monkeypatch: pytest.MonkeyPatch, network: Network, feeds: Any, early: int
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(
            ServerState, "find_merge", lambda self: None
        )  # the sum operator adds them all in the end
        expected = train(network, feeds, 6)
    monkeypatch.setattr(update_threads, "STAGED", 1)
    monkeypatch.setattr(verbs, "_LONGEST_TURN", 0.1)  # those that wait longer push again
    monkeypatch.setattr(gradients, "EARLY", early)
    counts = count_sets(monkeypatch)
    found = train(network, feeds, 6)
    assert len(counts) >= 6 * ROUNDS
    assert max(counts) <= 3  # the sum, a push that waits for its turn, and the one whose turn it is
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        np.testing.assert_array_equal(found[name], value, err_msg=name)


def test_gradients_are_added_as_their_trainers_commit(monkeypatch: pytest.MonkeyPatch) -> None:
    """Trainers 0 to 2 have committed and trainer 3 has not come: one sum is kept, not three gradients."""
    added = threading.Semaphore(0)
    merge = Contribution.merge

    def noted(self: Contribution, trainer: int, other: Contribution) -> None:
        merge(self, trainer, other)
        added.release()

    monkeypatch.setattr(Contribution, "merge", noted)
    network = Network(perceptron, lambda: fluid.optimizer.SGD(1.0))
    with Job(network, servers=1, trainers=4).start() as job, ThreadPoolExecutor(4) as pool:
        (endpoint,) = job.endpoints
        begun = job.values(endpoint)["fc_1.b_0"]
        trainers = [Client(number, job.endpoints) for number in range(4)]

        def push(number: int) -> None:
            for entry in trainers[number].tables[0]:
                if entry.kind == "gradient":
                    value = np.full(entry.shape, 2.0**number, "float32")
                    trainers[number].stage(endpoint, entry.name, value)
            trainers[number].push()

        waiting = [pool.submit(push, number) for number in range(3)]
        assert added.acquire(timeout=30)
        assert added.acquire(timeout=30)
        waiting.append(pool.submit(push, 3))
        for one in waiting:
            one.result(60)
        # The mean of 1, 2, 4 and 8; the sums are whole numbers, so exact
        assert np.array_equal(begun - job.values(endpoint)["fc_1.b_0"], [np.float32(15 / 4)])
        list(pool.map(Client.close, trainers))


# Asynchronous updates


STEPS = 12


def whole_numbers() -> Any:
    """A network whose parameters begin at 0, so that sums of whole gradients are exact."""
    x = fluid.data(name="x", shape=[None, 3], dtype="float32")
    zero = fluid.ParamAttr(initializer=fluid.initializer.Constant(0.0))
    hidden = fluid.layers.fc(x, size=50, param_attr=zero)
    return fluid.layers.mean(fluid.layers.fc(hidden, size=2, param_attr=zero))


def test_updates_of_several_trainers_are_applied_in_parallel_and_each_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(os, "cpu_count", lambda: 4)
    together = threading.Barrier(3, timeout=30)
    threads: set[int] = set()
    applied = 0
    lock = threading.Lock()
    apply = Variables.apply_update

    def noted(self: Variables, trainer: int, contribution: Contribution) -> None:
        nonlocal applied
        with lock:
            threads.add(threading.get_ident())
            applied += 1
            is_first = applied <= 3
        if is_first:
            together.wait()  # three threads are inside at once, or this fails
        apply(self, trainer, contribution)

    monkeypatch.setattr(Variables, "apply_update", noted)
    network = Network(whole_numbers, lambda: fluid.optimizer.SGD(1.0), sync=False)
    rng = np.random.default_rng(0)
    with Job(network, servers=1, trainers=3).start() as job, ThreadPoolExecutor(3) as pool:
        (endpoint,) = job.endpoints
        trainers = [Client(number, job.endpoints) for number in range(3)]
        shapes = {e.name: e.shape for e in trainers[0].tables[0] if e.kind == "gradient"}
        given = {
            name: rng.integers(-9, 10, (3, STEPS, *shape)).astype("float32") for name, shape in shapes.items()
        }

        def train_one(number: int) -> None:
            for step in range(STEPS):
                for name, values in given.items():
                    trainers[number].stage(endpoint, name, values[number, step])
                trainers[number].push()
            trainers[number].close()

        list(pool.map(train_one, range(3)))
    assert applied == 3 * STEPS
    assert len(threads) >= 3
    values = job.values(endpoint)
    for name, one in given.items():
        np.testing.assert_array_equal(values[name.removesuffix("@GRAD")], -one.sum((0, 1)), err_msg=name)


def test_an_update_that_fails_in_another_thread_ends_the_server(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "cpu_count", lambda: 4)
    monkeypatch.setattr(update_threads, "_LAST_WORDS", 0.2)

    def fail(self: Variables, trainer: int, contribution: Contribution) -> None:
        raise ArithmeticError("no such update")

    monkeypatch.setattr(Variables, "apply_update", fail)
    network = Network(whole_numbers, lambda: fluid.optimizer.SGD(1.0), sync=False)
    job = Job(network, servers=1, trainers=2).start()
    trainer = Client(0, job.endpoints)
    trainer.stage(job.endpoints[0], "fc_1.b_0@GRAD", np.ones(2, "float32"))
    with pytest.raises(fluid.errors.FaultError, match="no such update"):
        trainer.pull_parameters()
    trainer.abandon()
    with pytest.raises(fluid.errors.OperatorError, match="failed in round 0: no such update"):
        job.__exit__()
