"""With one check turned off, some schedule must end wrong: else the schedules prove nothing about it."""

from __future__ import annotations

import pytest

from tests.distributed.protocol import mutants
from tests.distributed.protocol.schedules import run_async, run_sync
from tests.distributed.protocol.world import Faults

SEEDS = 1500
ROUGH = {"repeat": 0.5, "late": 0.3, "server_kills": 10, "down": 0.001, "quiet": 1.5, "lose": 0.02}


def first_failure(run, check):
    for seed in range(SEEDS):
        try:
            check(run(seed))
        except (AssertionError, KeyError) as error:
            return seed, error
    return None


@pytest.mark.slow
@pytest.mark.parametrize("mutant", mutants.SYNC_SERVERS, ids=lambda one: one.__name__)
def test_tests_detect_a_server_with_any_check_removed(mutant):
    def run(seed):
        if seed % 2:
            return run_sync(seed, noisy=True, server_class=mutant)
        faults = Faults(**ROUGH)
        return run_sync(
            seed, noisy=True, every=1, rounds=[8, 8], servers=2, faults=faults, server_class=mutant
        )

    assert first_failure(run, lambda world: world.check_sync()) is not None


@pytest.mark.slow
@pytest.mark.parametrize("mutant", mutants.SYNC_TRAINERS, ids=lambda one: one.__name__)
def test_tests_detect_a_trainer_with_any_check_removed(mutant):
    found = first_failure(
        lambda seed: run_sync(seed, noisy=True, trainer_class=mutant), lambda world: world.check_sync()
    )
    assert found is not None


@pytest.mark.slow
@pytest.mark.parametrize("mutant", mutants.ASYNC_SERVERS, ids=lambda one: one.__name__)
def test_tests_detect_an_asynchronous_server_with_any_check_removed(mutant):
    found = first_failure(
        lambda seed: run_async(seed, server_class=mutant), lambda world: world.check_async()
    )
    assert found is not None
