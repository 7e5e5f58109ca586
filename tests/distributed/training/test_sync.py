"""Synchronous training: the losses of real runs, and the same bits as without servers."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

import paddlelike as fluid
from paddlelike.distributed.placement import Kind
from tests.distributed.jobs import (
    MOMENTUM,
    Job,
    Network,
    adam_with_schedule,
    momentum,
    perceptron,
    perceptron_feeds,
    sgd,
    train_locally,
)
from tests.helpers.golden_data import GOLDEN


def recorded(run: str) -> Any:
    return json.loads((GOLDEN / "distributed_runs" / run / "run.json").read_text())


@pytest.mark.parametrize(
    ("run", "optimizer"),
    [("mlp_momentum_sync_2x2", momentum), ("mlp_sgd_sync_2x2", sgd)],
    ids=["momentum", "sgd"],
)
def test_two_trainers_and_two_servers_have_the_losses_of_real_fluid(run: str, optimizer: Any) -> None:
    with Job(Network(perceptron, optimizer)).start() as job:
        losses = job.train(perceptron_feeds, 10)
    # Sums in float32 go in another order than in Eigen: a few units in the last place after ten steps.
    np.testing.assert_allclose(losses, recorded(run)["losses_uninterrupted"], rtol=2e-6)


@pytest.mark.parametrize("optimizer", [sgd, momentum, adam_with_schedule])
@pytest.mark.parametrize("servers", [1, 2, 3])
def test_one_trainer_has_the_same_bits_as_training_without_servers(optimizer: Any, servers: int) -> None:
    network = Network(perceptron, optimizer)
    expected, begun = train_locally(network, lambda step: perceptron_feeds(step, 0), 6)
    with Job(network, servers=servers, trainers=1) as job:
        job.start_with(begun)
        (losses,) = job.train(perceptron_feeds, 6)
    assert losses == expected


@pytest.mark.filterwarnings("ignore:.*keeps no variable", "ignore:the program to run is empty")
def test_servers_without_variables_serve() -> None:
    expected, begun = train_locally(MOMENTUM, lambda step: perceptron_feeds(step, 0), 3)
    with Job(MOMENTUM, servers=7, trainers=1) as job:
        job.start_with(begun)
        (losses,) = job.train(perceptron_feeds, 3)
    assert losses == expected


def test_two_runs_have_the_same_bits() -> None:
    def once() -> tuple[list[list[float]], list[dict[str, Any]]]:
        with Job(Network(perceptron, adam_with_schedule)).start() as job:
            losses = job.train(perceptron_feeds, 5)
        return losses, [job.values(endpoint) for endpoint in job.endpoints]

    (losses, values), (again, values_again) = once(), once()
    assert losses == again
    for first, second in zip(values, values_again, strict=True):
        assert first.keys() == second.keys()
        for name, value in first.items():
            assert np.array_equal(value, second[name]), name


def test_trainers_hold_the_values_of_the_servers() -> None:
    with Job(MOMENTUM).start() as job:
        job.train(perceptron_feeds, 3)
    first, second = job.values("trainer 0"), job.values("trainer 1")
    servers = [job.values(endpoint) for endpoint in job.endpoints]
    blocks = {name: value for one in servers for name, value in one.items()}
    whole = np.concatenate([blocks["fc_0.w_0.block0"], blocks["fc_0.w_0.block1"]])
    for held in (first, second):
        assert np.array_equal(held["fc_0.w_0"], whole)
        for name in ("fc_0.b_0", "fc_1.w_0", "fc_1.b_0"):
            assert np.array_equal(held[name], blocks[name])


def test_a_trainer_that_closes_early_does_not_delay_the_others() -> None:
    def feeds_until(step: int, trainer: int) -> Any:
        if trainer == 1 and step == 2:
            raise StopIteration
        return perceptron_feeds(step, trainer)

    with Job(MOMENTUM).start() as job:
        programs = [job.trainer(number) for number in range(2)]
        long = job._pool.submit(job.train_one, 0, programs[0], perceptron_feeds, 5)
        short = job._pool.submit(job.train_one, 1, programs[1], feeds_until, 5)
        with pytest.raises(StopIteration):
            short.result(timeout=60)
        assert len(long.result(timeout=60)) == 5


@pytest.mark.parametrize("places", [None, 1, 2])
def test_compiled_programs_train_to_the_same_losses(places: int | None) -> None:
    def compiled(main: Any, loss: Any) -> Any:
        program = fluid.CompiledProgram(main)
        if places is None:
            return program
        return program.with_data_parallel(loss.name, places=[fluid.CPUPlace()] * places)

    with Job(MOMENTUM).start() as job:
        plain = job.train(perceptron_feeds, 3)
    with Job(MOMENTUM).start() as job:
        losses = job.train(perceptron_feeds, 3, program=compiled)
    if places == 2:  # the mean of two means of half a batch each rounds differently
        np.testing.assert_allclose(losses, plain, rtol=1e-5)
    else:
        assert losses == plain


def test_a_parallel_executor_has_the_same_losses_and_the_executor_beside_it_closes() -> None:
    with Job(MOMENTUM, trainers=1).start() as job:
        (plain,) = job.train(perceptron_feeds, 3)
    with Job(MOMENTUM, trainers=1).start() as job:
        programs, scope = job.trainer(0), fluid.Scope()
        executor = fluid.Executor()
        executor.run(programs.startup, scope=scope)
        parallel = fluid.ParallelExecutor(
            use_cuda=False, loss_name=programs.loss.name, main_program=programs.main, scope=scope
        )
        losses = [
            parallel.run(feed=perceptron_feeds(step, 0), fetch_list=[programs.loss.name])[0].item()
            for step in range(3)
        ]
        executor.close()
    assert losses == plain


def test_an_aborted_step_leaves_no_state() -> None:
    with Job(MOMENTUM, trainers=1).start() as job:
        (expected,) = job.train(perceptron_feeds, 2)
    with Job(MOMENTUM, trainers=1).start() as job:
        programs, scope = job.trainer(0), fluid.Scope()
        executor = fluid.Executor()
        executor.run(programs.startup, scope=scope)
        trainer = executor._remote.open().client(scope, programs.main.global_block())  # type: ignore[attr-defined]
        losses = []
        for step in range(2):
            broken = zip(trainer.endpoints, trainer.tables, strict=True)  # sent, but the barrier never came
            for endpoint, table in broken:
                for entry in table.having(Kind.GRADIENT):
                    trainer.stage(endpoint, entry.name, np.full(entry.shape, np.nan, "float32"))
            feed, fetches = perceptron_feeds(step, 0), [programs.loss]
            losses += executor.run(programs.main, feed=feed, fetch_list=fetches, scope=scope)
        executor.close()
    assert [float(loss) for loss in losses] == expected
