"""One trainer, one step at a time: whom it joins."""

from __future__ import annotations

from typing import Any

import pytest

from paddlelike.distributed.protocol.messages import Hello, HelloReply, Pull, PullReply
from paddlelike.distributed.protocol.steps import Call, Success
from paddlelike.distributed.protocol.trainer import TrainerState
from paddlelike.errors import FaultError

HERE = {"incarnation": "a", "generation": 0}


def hello_at(round: int) -> HelloReply:
    fields: dict[str, Any] = {"base": 4, "busy": False, "lost": False, "staged": None, "marked": False}
    return HelloReply(**HERE, round=round, **fields, checkpoints=(), completed=())


def joined_at(rounds: list[int], **options: Any) -> TrainerState:
    """A trainer that has asked servers at these rounds to join."""
    fields: dict[str, Any] = {"trainer": 1, "trainers": 2, "process": 9, "mode": "sync"}
    trainer = TrainerState(
        **fields,
        endpoints=[f"h:{index}" for index in range(len(rounds))],
        plans=["p"] * len(rounds),
        **options,
    )
    trainer.join(0.0)
    calls = [trainer.next_step(server, 0.0) for server in range(len(rounds))]
    for call, round in zip(calls, rounds, strict=True):
        assert isinstance(call, Call)
        assert isinstance(call.request, Hello)
        trainer.take_reply(call, hello_at(round), 0.1)
    return trainer


@pytest.mark.parametrize("resumes_at", [None, 8])
def test_a_trainer_joins_servers_at_its_round(resumes_at: int | None) -> None:
    trainer = joined_at([8, 8], resumes_at=resumes_at)
    for server in range(2):
        call = trainer.next_step(server, 0.2)
        assert isinstance(call, Call)
        assert call.request == Pull(job="", trainer=1, process=9, session=1, **HERE, version=8, slices=None)
        trainer.take_reply(call, PullReply(**HERE, round=8), 0.3)
    assert trainer.outcome == Success(8)


def test_a_trainer_of_another_run_is_refused_with_both_rounds() -> None:
    trainer = joined_at([8, 8], resumes_at=4)
    assert isinstance(trainer.outcome, FaultError)
    text = str(trainer.outcome)
    assert "trainer 1 resumes from the checkpoint of round 4" in text
    assert "h:0 at round 8 of generation 0, h:1 at round 8 of generation 0" in text
    assert "the servers belong to another run" in text
    assert "start all servers and trainers again from the same save" in text


def test_servers_that_differ_are_said_to_differ_before_their_run_is_asked_for() -> None:
    trainer = joined_at([8, 4], resumes_at=4)
    assert isinstance(trainer.outcome, FaultError)
    assert "the servers are at different rounds (h:0 at round 8" in str(trainer.outcome)
