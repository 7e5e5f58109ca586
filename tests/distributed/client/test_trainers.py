"""A program says which trainer it belongs to and which servers it needs."""

from __future__ import annotations

import pytest

import paddlelike as fluid
from paddlelike.distributed.client.trainers import find_trainer_id, resumable_steps, root_scope
from tests.distributed.jobs import MOMENTUM, SEED, Job
from tests.helpers.fresh import fresh_programs


@pytest.mark.parametrize("trainer", [0, 1, 4])
def test_a_trainers_program_has_its_id(trainer: int) -> None:
    with fresh_programs(SEED):
        job, _ = Job(MOMENTUM, trainers=5).transpiler(trainer=trainer)
        program = job.get_trainer_program(wait_port=False)
    assert find_trainer_id(program.global_block()) == trainer


def test_an_ordinary_program_counts_as_trainer_0() -> None:
    assert find_trainer_id(fluid.Program().global_block()) == 0


def test_without_servers_the_steps_are_a_range() -> None:
    assert list(resumable_steps(3, fluid.Scope())) == [0, 1, 2]


def test_inner_scopes_share_the_clients_of_the_outermost() -> None:
    scope = fluid.Scope()
    assert root_scope(scope.new_scope().new_scope()) is scope
