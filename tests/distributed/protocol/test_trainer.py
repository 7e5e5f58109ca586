"""One trainer, one step at a time: whom it joins."""

from __future__ import annotations

from typing import Any

import pytest

from paddlelike.distributed.protocol.messages import Hello, HelloReply, Pull, PullReply, Push
from paddlelike.distributed.protocol.trainer import TrainerState
from paddlelike.distributed.protocol.trainer.retries import Call, Done, Success
from paddlelike.errors import FaultError

HERE = {"incarnation": "a", "generation": 0}


def hello_at(round: int, base: int = 4) -> HelloReply:
    fields: dict[str, Any] = {"base": base, "busy": False, "lost": False, "staged": None, "marked": False}
    return HelloReply(**HERE, round=round, **fields, checkpoints=(), completed=())


def join_at(rounds: list[int], bases: list[int] | None = None, **options: Any) -> TrainerState:
    """A trainer that has asked servers at these rounds to join; each began at round 4, or at its base."""
    fields: dict[str, Any] = {"trainer": 1, "trainers": 2, "process": 9, "mode": "sync"}
    trainer = TrainerState(
        **fields,
        endpoints=[f"h:{index}" for index in range(len(rounds))],
        plans=["p"] * len(rounds),
        **options,
    )
    trainer.join(0.0)
    calls = [trainer.next_step(server, 0.0) for server in range(len(rounds))]
    for call, round, base in zip(calls, rounds, bases or [4] * len(rounds), strict=True):
        assert isinstance(call, Call)
        assert isinstance(call.request, Hello)
        trainer.take_reply(call, hello_at(round, base), 0.1)
    return trainer


def finish_join(trainer: TrainerState, round: int) -> None:
    """Answer the pull of all parameters that follows the Hellos."""
    for server in range(len(trainer.endpoints)):
        call = trainer.next_step(server, 0.2)
        assert isinstance(call, Call)
        assert call.request == Pull(
            job="", trainer=1, process=9, session=1, **HERE, version=round, slices=None
        )
        trainer.take_reply(call, PullReply(**HERE, round=round), 0.3)
    assert trainer.outcome == Success(round)


@pytest.mark.parametrize("follows", [False, True])
def test_a_trainer_joins_servers_that_start_at_the_step_of_its_script(follows: bool) -> None:
    trainer = join_at([4, 4])  # the round that they loaded
    finish_join(trainer, 4)
    trainer.push(0.4, follows_servers=follows)
    assert isinstance(trainer.next_step(0, 0.4), Call)


def test_a_trainer_of_another_run_is_refused_before_it_pushes() -> None:
    trainer = join_at([8, 8])
    finish_join(trainer, 8)
    trainer.push(0.4, follows_servers=False)
    assert isinstance(trainer.outcome, FaultError)
    text = str(trainer.outcome)
    assert "h:0 began at round 4 and is at round 8, h:1 began at round 4 and is at round 8" in text
    assert "They belong to another run" in text
    assert "paddlelike.distributed.resumable_steps" in text
    assert trainer.next_step(0, 0.5) == Done()
    trainer.complete(0.6)  # it does not leave the job of the others either
    assert isinstance(trainer.outcome, FaultError)


def test_a_trainer_that_follows_the_step_of_the_servers_joins_a_running_job() -> None:
    trainer = join_at([8, 8])
    finish_join(trainer, 8)
    trainer.push(0.4)
    call = trainer.next_step(0, 0.4)
    assert isinstance(call, Call)
    assert isinstance(call.request, Push)
    assert call.request.number == 8
