"""Jobs under thousands of seeded schedules: messages lost, repeated, late; processes killed, doubled."""

from __future__ import annotations

import pytest

from paddlelike.distributed.protocol.trainer.retries import Limits
from tests.distributed.protocol.schedules import faults_of, run_async, run_sync
from tests.distributed.protocol.world import Faults, reference


def check_sync(seeds: range) -> None:
    for seed in seeds:
        world = run_sync(seed)
        assert world.check_sync() == reference(len(world.servers), world.rounds), f"seed {seed}"
        world.check_replaced()
        world.settle()


def check_noisy(seeds: range) -> None:
    for seed in seeds:
        run_sync(seed, noisy=True).check_sync()


def check_shrinking(seeds: range) -> None:
    for seed in seeds:
        faults = faults_of(seed)
        faults.server_kills = 0
        rounds = [8, 3 + seed % 4, 8 - seed % 3]
        world = run_sync(seed, rounds=rounds, faults=faults)
        assert world.check_sync() == reference(len(world.servers), rounds), f"seed {seed}"


def check_async(seeds: range) -> None:
    for seed in seeds:
        world = run_async(seed)
        world.check_async()
        world.check_replaced()
        world.settle()


CHECKS = (check_sync, check_noisy, check_shrinking, check_async)


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__[6:])
def test_forty_schedules_of_faults_give_the_undisturbed_result(check):
    """Proves D14."""
    check(range(40))


@pytest.mark.slow
@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__[6:])
def test_thousands_of_schedules_of_faults_give_the_undisturbed_result(check):
    check(range(40, 400))


def test_a_job_without_faults_ends_with_the_reference_result():
    world = run_sync(0, servers=3, rounds=[6, 6], faults=Faults())
    assert world.check_sync() == reference(3, [6, 6])
    assert {s.state.generation for s in world.servers} == {0}


def test_without_rollback_a_lost_server_is_an_error_that_names_it():
    errors = 0
    limits = Limits(call=0.3, window=1e6, barrier=5.0, poll=0.02)
    for seed in range(50):
        world = run_sync(seed, rollback=False, limits=limits)
        for error in world.errors():
            assert "server:" in str(error)
        if world.errors():
            errors += 1
        else:
            world.check_sync()
    assert errors > 10  # or the seeds prove nothing


def test_without_rollback_and_without_lost_servers_trainers_may_join_and_leave():
    for seed in range(40):
        faults = faults_of(seed)
        faults.server_kills = 0
        world = run_sync(seed, rollback=False, faults=faults)
        assert world.check_sync() == reference(len(world.servers), world.rounds)


@pytest.mark.parametrize("mode", ["sync", "async"])
def test_a_server_that_never_returns_is_named_within_the_window(mode):
    """Proves D15."""
    run = run_sync if mode == "sync" else run_async
    limits = Limits(call=0.3, window=5.0, barrier=1e6, poll=0.02)
    for seed in range(20):
        faults = Faults(server_kills=1, down=1e9, quiet=0.3)
        world = run(seed, servers=2, rounds=[40, 40], mode=mode, faults=faults, limits=limits)
        dead = [index for index, server in enumerate(world.servers) if not server.alive]
        for trainer in world.newest_trainers():
            assert f"server:{dead[0]} did not answer" in str(trainer.error)
        assert world.now < 0.3 + 5.0 + 1.5  # the last call, its pause and its deadline


def test_a_trainer_that_never_returns_is_named_within_the_patience_at_barriers():
    """Proves D15."""
    limits = Limits(call=0.3, window=1e6, barrier=5.0, poll=0.02)
    for seed in range(20):
        faults = Faults(trainer_kills=1, down=1e9, first=0.25, quiet=0.3)
        world = run_sync(seed, servers=2, rounds=[40, 40], faults=faults, limits=limits, until_stuck=True)
        dead = [t.tid for t in world.trainers if not t.alive]
        errors = [t.error for t in world.trainers if t.alive]
        assert len(dead) == 1
        assert len(errors) == 1
        assert f"waits for trainers {dead}" in str(errors[0])
