"""Processes that do not fit together are errors that name both; status, pulls and checks of sizes."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pytest

import paddlelike as fluid
from paddlelike.distributed.client.client import Client
from paddlelike.distributed.client.description import describe
from paddlelike.distributed.client.driver import Driver
from paddlelike.distributed.placement import Kind
from paddlelike.distributed.wire import Channel, Into, Part, as_bytes
from paddlelike.errors import (
    DeadlineError,
    EnforceNotMet,
    FaultError,
    GraphError,
    NotInitializedError,
    OperatorError,
    RejectedError,
    UnsupportedError,
)
from tests.distributed.jobs import (
    MOMENTUM,
    Job,
    Network,
    free_endpoints,
    momentum,
    perceptron,
    perceptron_feeds,
)
from tests.distributed.training.test_sparse import bag_feeds, embedding_bag, sgd


def narrower() -> Any:
    """As the perceptron, with half of its hidden units."""
    return perceptron(64)


def test_a_server_without_values_names_its_endpoint_and_the_startup_program() -> None:
    job = Job(MOMENTUM)
    programs = job.server(job.endpoints[0])
    with pytest.raises(NotInitializedError, match=job.endpoints[0]) as caught:
        fluid.Executor().run(programs.main, scope=fluid.Scope())
    assert "get_startup_program" in str(caught.value)


def test_the_error_for_an_endpoint_in_use_names_it() -> None:
    with Job(MOMENTUM).start() as job:
        job.train(perceptron_feeds, 1)  # now both listen, and have ended
    with Job(MOMENTUM) as job:
        job.serve(job.endpoints[0])
        with Channel(job.endpoints[0]) as channel:
            describe(channel, 20.0)  # listens
        programs, scope = job.server(job.endpoints[0]), fluid.Scope()
        executor = fluid.Executor()
        executor.run(programs.startup, scope=scope)
        with pytest.raises(OperatorError, match=f"{job.endpoints[0]} cannot be bound"):
            executor.run(programs.main, scope=scope)


def test_an_endpoint_without_a_server_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FLAGS_rpc_deadline", "300")
    (endpoint,) = free_endpoints(1)
    with pytest.raises(FaultError, match=f"no parameter server at {endpoint} within 0.3 s"):
        Client(0, [endpoint])


def test_a_trainer_of_another_network_is_refused_with_both_shapes() -> None:
    with Job(MOMENTUM, trainers=1).start() as job:
        other = Job(Network(narrower, momentum), trainers=1)
        other.endpoints = job.endpoints
        programs = other.trainer(0)
        with pytest.raises(OperatorError, match="same network") as caught:
            job.train_one(0, programs, perceptron_feeds, 1)
    assert "'fc_0.b_0' is [64] in this trainer's program, [128] on servers" in str(caught.value)


def test_the_error_for_a_gradient_of_another_shape_shows_both_shapes() -> None:
    with Job(MOMENTUM, servers=1, trainers=1).start() as job:
        trainer = Client(0, job.endpoints)
        with pytest.raises(GraphError, match=r"expected float32\[1\], got float32\[2\]"):
            trainer.stage(job.endpoints[0], "fc_1.b_0@GRAD", np.zeros(2, "float32"))
        with pytest.raises(GraphError, match="its kind there is parameter"):
            trainer.stage(job.endpoints[0], "fc_1.b_0", np.zeros(1, "float32"))
        trainer.close()


def test_a_step_without_all_gradients_is_refused_before_sending() -> None:
    with Job(MOMENTUM, servers=1, trainers=1).start() as job:
        trainer = Client(0, job.endpoints)
        trainer.stage(job.endpoints[0], "fc_1.b_0@GRAD.trainer_0", np.zeros(1, "float32"))
        with pytest.raises(EnforceNotMet, match=r"this step does not send fc_0\.b_0@GRAD, fc_0\.w_0@GRAD"):
            trainer.push()
        trainer.abandon()


def test_waiting_trainers_name_the_one_that_never_arrives(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FLAGS_worker_update_interval_secs", "1")
    monkeypatch.setenv("PADDLELIKE_LEASE", "0.5")
    with Job(MOMENTUM, trainers=3).start() as job:
        programs = job.trainer(1)
        with pytest.raises(FaultError, match=r"waits for trainers \[0, 2\].*no sign of life from \[0, 2\]"):
            job.train_one(1, programs, perceptron_feeds, 1)


def test_the_second_process_of_a_trainer_fences_the_first() -> None:
    with Job(MOMENTUM, servers=1, trainers=2).start() as job:
        first = Client(0, job.endpoints)
        second = Client(0, job.endpoints)
        with pytest.raises(FaultError, match="another process has taken its place"):
            first.pull_parameters()
        second.pull_parameters()
        first.abandon()
        second.abandon()


def test_an_interrupted_trainer_leaves_the_job(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(driver: Driver, server: int, begun: Any = None) -> None:
        raise KeyboardInterrupt

    with Job(MOMENTUM, trainers=1).start() as job:
        trainer = Client(0, job.endpoints)
        with monkeypatch.context() as patch:
            patch.setattr(Driver, "_drive", interrupted)
            with pytest.raises(KeyboardInterrupt):
                trainer.pull_parameters()
        with pytest.raises(FaultError, match="was interrupted"):
            trainer.pull_parameters()
        trainer.close()


def test_servers_of_two_jobs_are_an_error() -> None:
    with (
        Job(MOMENTUM, trainers=1).start() as one,
        Job(MOMENTUM, trainers=2).start() as two,
        pytest.raises(FaultError, match=r"1 trainers.*2 trainers"),
    ):
        Client(0, [one.endpoints[0], two.endpoints[1]])


def test_a_trainer_with_another_token_is_refused_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PADDLELIKE_JOB_TOKEN", "one")
    with Job(MOMENTUM, servers=1, trainers=1).start() as job:
        with Channel(job.endpoints[0]) as channel:
            describe(channel, 20.0)
        monkeypatch.setenv("PADDLELIKE_JOB_TOKEN", "another")
        with pytest.raises(RejectedError, match=f"{job.endpoints[0]}.*job token"):
            Client(0, job.endpoints)
        monkeypatch.setenv("PADDLELIKE_JOB_TOKEN", "one")
        assert len(job.train(perceptron_feeds, 2)[0]) == 2


def test_a_trainer_of_another_job_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with Job(MOMENTUM, servers=1, trainers=1).start() as job:
        with Channel(job.endpoints[0]) as channel:
            describe(channel, 20.0)  # it has read its environment
        monkeypatch.setenv("PADDLELIKE_JOB_ID", "another")
        with pytest.raises(FaultError, match="another job"):
            Client(0, job.endpoints)


def test_operators_that_communicate_need_a_connected_executor() -> None:
    job = Job(MOMENTUM)
    programs = job.server(job.endpoints[0])
    executor = fluid.Executor()
    executor.run(programs.startup)
    executor._services.clear()
    with pytest.raises(UnsupportedError, match="not connected"):
        executor.run(programs.main)


# Beside training


def test_optimizer_state_can_be_pulled_while_the_servers_stand_still() -> None:
    with Job(MOMENTUM, trainers=1).start() as job:
        programs, scope = job.trainer(0), fluid.Scope()
        executor = fluid.Executor()
        executor.run(programs.startup, scope=scope)
        for step in range(2):
            executor.run(programs.main, feed=perceptron_feeds(step, 0), scope=scope)
        trainer = executor._remote.open().client(scope, programs.main.global_block())  # type: ignore[attr-defined]
        wanted = [
            (endpoint, entry.name)
            for endpoint, table in zip(trainer.endpoints, trainer.tables, strict=True)
            for entry in table.having(Kind.OPTIMIZER, Kind.SCHEDULE, Kind.PARAMETER)
        ]
        pulled = dict(zip(wanted, trainer.pull(wanted), strict=True))
        executor.close()
        for (endpoint, name), value in pulled.items():
            assert np.array_equal(value, job.values(endpoint)[name]), name
    assert any("velocity" in name and np.abs(value).max() > 0 for (_, name), value in pulled.items())


def test_the_ids_of_a_shard_can_be_pulled() -> None:
    network = Network(embedding_bag(is_distributed=True), sgd)
    with Job(network, trainers=1).start() as job:
        programs, scope = job.trainer(0), fluid.Scope()
        executor = fluid.Executor()
        executor.run(programs.startup, scope=scope)
        executor.run(programs.main, feed=bag_feeds(0, 0), scope=scope)
        trainer = executor._remote.open().client(scope, programs.main.global_block())  # type: ignore[attr-defined]
        ids = [trainer.row_ids((endpoint, "emb")) for endpoint in job.endpoints]
        executor.close()
    assert [int(one) for shard in ids for one in shard % 2] == [0] * len(ids[0]) + [1] * len(ids[1])
    assert sorted(np.concatenate(ids)) == sorted(set(np.array(bag_feeds(0, 0)["ids"]).reshape(-1)))


def test_status_counts_rounds_and_bytes_and_names_silent_trainers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PADDLELIKE_LEASE", "0.5")
    network = Network(perceptron, momentum, sync=False)  # nobody waits for the trainer that never comes
    with Job(network, servers=1, trainers=2).start() as job, Channel(job.endpoints[0]) as channel:
        describe(channel, 20.0)
        before = channel.call("Status", {})
        programs, scope = job.trainer(0), fluid.Scope()
        executor = fluid.Executor()
        executor.run(programs.startup, scope=scope)
        for step in range(3):
            executor.run(programs.main, feed=perceptron_feeds(step, 0), scope=scope)
        after = channel.call("Status", {})
        end = time.monotonic() + 20
        while (late := channel.call("Status", {}))["silent"] != [1] and time.monotonic() < end:
            time.sleep(0.05)
        executor.close()
        closed = channel.call("Status", {})
    size = 4 * (130 * 128 + 128 + 128 + 1)
    assert (before["rounds"], before["bytes_in"], before["trainers"]) == (0, 0, 2)
    assert (after["rounds"], after["bytes_in"]) == (3, 3 * size)
    assert after["bytes_out"] == 4 * size  # the start values too
    assert (late["silent"], closed["silent"]) == ([1], [1])


@pytest.mark.parametrize(
    ("verb", "head"),
    [
        ("Push", {}),
        ("Push", {"v": 1, "trainer": "0"}),
        ("Pull", {"v": 1, "job": "", "trainer": 0, "process": 1, "session": 1}),
        ("Prefetch", {"v": 99}),
        ("Hello", {"v": 1, "job": 7}),
    ],
)
def test_malformed_requests_are_refused_and_training_continues(verb: str, head: dict[str, Any]) -> None:
    with Job(MOMENTUM, servers=1, trainers=1).start() as job:
        with Channel(job.endpoints[0]) as channel:
            describe(channel, 20.0)
            with pytest.raises(RejectedError, match=r"holds|lacks|expected|protocol"):
                channel.call(verb, head)
        assert len(job.train(perceptron_feeds, 2)[0]) == 2


@pytest.mark.parametrize(
    "what", ["ids outside", "count too large", "no table", "rows too many", "number too large"]
)
def test_sizes_and_counts_are_checked_before_memory_is_allocated(what: str) -> None:
    network = Network(embedding_bag(is_distributed=False, rows=50), sgd)
    with Job(network, servers=1, trainers=1).start() as job:
        trainer = Client(0, job.endpoints)
        link, state = trainer.driver.state._links[0], trainer.driver.state
        me = {"v": 1, **state._session_fields(), "incarnation": link.incarnation, "generation": 0}
        channel, ids = trainer.driver.channels[0], np.array([49, 50], "int64")
        asked: tuple[str, dict[str, Any], Any] = {
            "ids outside": ("Prefetch", {"table": "emb", "count": 2}, [Part(0, 0, as_bytes(ids))]),
            "count too large": ("Prefetch", {"table": "emb", "count": 1 << 40}, ()),
            "no table": ("Prefetch", {"table": "fc_0.b_0x", "count": 2}, [Part(0, 0, as_bytes(ids))]),
            "rows too many": (
                "Push",
                {"plan": state.plans[0], "number": 0, "rows": [[trainer.tables[0]["emb@GRAD"].index, 51]]},
                (),
            ),
            "number too large": ("Pull", {"version": 0, "slices": [1 << 40]}, ()),
        }[what]
        verb, head, parts = asked
        with pytest.raises((RejectedError, DeadlineError)):
            channel.call(verb, me | head, parts, Into({0: np.zeros((2, 8), "float32")}))
        trainer.pull_parameters()  # the server is well
        trainer.close()
