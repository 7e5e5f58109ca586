"""Gradients leave while further ones are computed; a push that ends early or is repeated changes nothing."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import paddlelike as fluid
from paddlelike.core import SelectedRows, VarType
from paddlelike.distributed.client import gradients
from paddlelike.distributed.client.client import Client
from paddlelike.distributed.client.gradients import Abandoned, Gradients
from paddlelike.distributed.placement import Kind, ServerTable, rows_at, values_at
from paddlelike.distributed.remote import RemoteOperators
from paddlelike.distributed.server.staging import Contribution, Staging
from paddlelike.distributed.wire import FLUSH, Item, Note, Part
from tests.distributed.jobs import MOMENTUM, Job, Network, momentum, perceptron, perceptron_feeds
from tests.distributed.training.test_sparse import bag_feeds, embedding_bag, sgd

NEVER = 1 << 60
ASYNCHRONOUS = Network(perceptron, momentum, sync=False)
TABLE = ServerTable(
    [
        ("a@GRAD", Kind.GRADIENT, (4,), VarType.FP32),
        ("b@GRAD", Kind.GRADIENT, (9, 2), VarType.FP32),
        ("a", Kind.PARAMETER, (4,), VarType.FP32),
        ("b", Kind.PARAMETER, (9, 2), VarType.FP32),
    ]
)
A = np.arange(4, dtype="float32")
B = SelectedRows([1, 5], 9, np.ones((2, 2), "float32"))


@pytest.fixture
def early(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every gradient leaves at once."""
    monkeypatch.setattr(gradients, "EARLY", 1)


# The overlap, in a job


@pytest.mark.usefixtures("early")
@pytest.mark.parametrize("network", [MOMENTUM, ASYNCHRONOUS], ids=["sync", "async"])
def test_the_first_push_begins_before_the_last_gradient_is_computed(
    monkeypatch: pytest.MonkeyPatch, network: Network
) -> None:
    arrived, events = threading.Event(), []
    place, send = Contribution.place, RemoteOperators.send

    def notice(self: Contribution, index: int, offset: int, length: int) -> memoryview:
        events.append("a gradient arrives")
        arrived.set()
        return place(self, index, offset, length)

    def hold(self: RemoteOperators, ctx: Any, values: list[Any]) -> None:
        if ctx.op.input("X")[0].startswith("fc_0.w_0"):  # of the first layer: computed last
            assert arrived.wait(30), "nothing left before the last gradient"
            events.append("the last gradient is computed")
        send(self, ctx, values)

    monkeypatch.setattr(Contribution, "place", notice)
    monkeypatch.setattr(RemoteOperators, "send", hold)
    with Job(network, servers=1, trainers=1).start() as job:
        job.train(perceptron_feeds, 1)
    assert events[0] == "a gradient arrives"
    assert events.count("a gradient arrives") == 4
    assert "the last gradient is computed" in events


def values_after(monkeypatch: pytest.MonkeyPatch, network: Network, feeds: Any, early: int) -> dict[str, Any]:
    """The parameters of both servers after four steps of two trainers."""
    monkeypatch.setattr(gradients, "EARLY", early)
    with Job(network).start() as job:
        job.train(feeds, 4)
        return {f"{i} {n}": v for i, e in enumerate(job.endpoints) for n, v in job.values(e).items()}


@pytest.mark.parametrize("direct", ["1", "0"], ids=["direct", "gRPC alone"])
@pytest.mark.parametrize(
    ("network", "feeds"),
    [(MOMENTUM, perceptron_feeds), (Network(embedding_bag(is_distributed=False), sgd), bag_feeds)],
    ids=["dense", "selected rows"],
)
def test_gradients_sent_as_they_are_computed_give_the_same_bits(
    monkeypatch: pytest.MonkeyPatch, network: Network, feeds: Any, direct: str
) -> None:
    whole = values_after(monkeypatch, network, feeds, NEVER)
    monkeypatch.setenv("PADDLELIKE_DIRECT", direct)
    found = values_after(monkeypatch, network, feeds, 1)
    assert found.keys() == whole.keys()
    assert whole
    for name, value in whole.items():
        np.testing.assert_array_equal(found[name], value, err_msg=name)


# Faults in the midst of a step


NAMES = {"fc_0.w_0": (130, 128), "fc_0.b_0": (128,), "fc_1.w_0": (128, 1), "fc_1.b_0": (1,)}


def stage(trainer: Client, endpoint: str, value: float, names: Any = tuple(NAMES)) -> None:
    for name in names:
        trainer.stage(endpoint, f"{name}@GRAD.trainer_0", np.full(NAMES[name], value, "float32"))


def applied_steps(job: Job, endpoint: str, begun: dict[str, Any]) -> set[float]:
    """By how much SGD with a rate of 0.01 has changed the parameters, in gradients."""
    now = job.values(endpoint)
    return {round(float(x), 2) for name in NAMES for x in np.unique((begun[name] - now[name]) / 0.01)}


@pytest.fixture
def one() -> Iterator[tuple[Job, str, dict[str, Any], Client]]:
    """A server, its start values, and the client of its only trainer."""
    network = Network(perceptron, lambda: fluid.optimizer.SGD(0.01))
    with Job(network, servers=1, trainers=1).start() as job:
        (endpoint,) = job.endpoints
        trainer = Client(0, job.endpoints)
        yield job, endpoint, job.values(endpoint), trainer
        if not trainer.is_closed:
            trainer.close()


@pytest.mark.usefixtures("early")
def test_gradients_of_an_aborted_step_are_discarded(one: Any) -> None:
    job, endpoint, begun, trainer = one
    stage(trainer, endpoint, 5.0, ["fc_1.w_0", "fc_1.b_0"])
    stage(trainer, endpoint, 1.0, ["fc_1.w_0"])  # a new step: the one before failed in its midst
    stage(trainer, endpoint, 1.0, ["fc_0.w_0", "fc_0.b_0", "fc_1.b_0"])
    trainer.push()
    assert (trainer.round, applied_steps(job, endpoint, begun)) == (1, {1.0})


@pytest.mark.usefixtures("early")
def test_a_push_interrupted_by_another_call_is_repeated_at_the_barrier(one: Any) -> None:
    job, endpoint, begun, trainer = one
    stage(trainer, endpoint, 1.0, ["fc_1.w_0"])
    found = trainer.pull([(endpoint, "fc_1.b_0")])
    assert np.array_equal(found[0], begun["fc_1.b_0"])
    stage(trainer, endpoint, 1.0, ["fc_0.w_0", "fc_0.b_0", "fc_1.b_0"])
    trainer.push()
    assert (trainer.round, applied_steps(job, endpoint, begun)) == (1, {1.0})


@pytest.mark.usefixtures("early")
def test_a_broken_connection_is_replaced_and_everything_is_sent_again(
    one: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    job, endpoint, begun, trainer = one
    taken = threading.Semaphore(0)
    take = Staging.take

    def count(self: Staging, rows: Any) -> Contribution:
        taken.release()
        return take(self, rows)

    monkeypatch.setattr(Staging, "take", count)
    stage(trainer, endpoint, 1.0, ["fc_1.w_0", "fc_1.b_0"])
    assert taken.acquire(timeout=30)
    for connection in list(trainer.driver.channels[0]._direct._busy):
        connection.close()
    stage(trainer, endpoint, 1.0, ["fc_0.w_0", "fc_0.b_0"])
    trainer.push()
    assert taken.acquire(timeout=30)
    assert (trainer.round, applied_steps(job, endpoint, begun)) == (1, {1.0})


@pytest.mark.usefixtures("early")
def test_a_script_that_fails_during_a_step_can_end(one: Any) -> None:
    _, endpoint, _, trainer = one
    stage(trainer, endpoint, 1.0, ["fc_1.w_0"])
    sending = [thread for thread in threading.enumerate() if thread.name == "paddlelike-push"]
    assert sending
    assert all(thread.daemon for thread in sending)  # the interpreter does not wait for them
    trainer.abandon()
    for thread in sending:
        thread.join(30)
    assert not any(thread.is_alive() for thread in sending)


# What is sent, and when


def indexes(items: list[Item]) -> list[Any]:
    return [item.index if isinstance(item, Part) else item for item in items]


def test_gradients_ready_before_the_push_are_sent_without_a_flush() -> None:
    step = Gradients([TABLE])
    step.put(0, 0, A)
    step.put(0, 1, B)
    step.close()
    rows, items = step.start(0)
    assert rows == ((1, 2),)
    assert indexes(list(items)) == [values_at(0), rows_at(1), values_at(1)]


@pytest.mark.usefixtures("early")
def test_late_gradients_are_sent_after_a_flush_with_their_numbers_of_rows() -> None:
    step = Gradients([TABLE])
    step.put(0, 0, A)
    rows, items = step.start(0)
    assert rows == ()
    assert [next(items), next(items)] == [Part(values_at(0), 0, memoryview(A).cast("B")), FLUSH]
    step.has_begun = True
    step.put(0, 1, B)
    step.close()
    assert indexes(list(items)) == [Note({"rows": [[1, 2]]}), rows_at(1), values_at(1)]


def test_a_long_pause_tells_the_server_that_more_will_come(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gradients, "_ALIVE", 0.01)
    step = Gradients([TABLE])
    _, items = step.start(0)
    assert [next(items) for _ in range(3)] == [FLUSH, FLUSH, FLUSH]


def test_an_aborted_step_ends_its_calls() -> None:
    step = Gradients([TABLE])
    _, items = step.start(0)
    assert next(items) is FLUSH
    step.abandon()
    with pytest.raises(Abandoned):
        next(items)
    with pytest.raises(Abandoned):
        step.wait_until_closed(0)
