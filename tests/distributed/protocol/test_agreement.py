"""The decision of a trainer about servers at the same or at different rounds."""

from __future__ import annotations

from paddlelike.distributed.protocol.messages import HelloReply, Staged
from paddlelike.distributed.protocol.trainer.decision import (
    Adopt,
    Conflict,
    Finish,
    Leave,
    Mismatch,
    Proceed,
    Retry,
    RollBack,
    decide,
)


def at(round, **more):
    fields = {
        "incarnation": "a",
        "generation": 0,
        "round": round,
        "base": 0,
        "busy": False,
        "lost": False,
        "staged": None,
        "marked": False,
        "checkpoints": (0, 4),
        "completed": (),
    }
    return HelloReply(**fields | more)


def decide_at(*hellos):
    return decide(1, [f"h:{index}" for index in range(len(hellos))], hellos)


PUSH = Staged(5, 9, 1)


def test_servers_at_one_round_continue():
    assert decide_at(at(5), at(5)) == Proceed(5)


def test_a_push_without_a_commit_is_repeated():
    assert decide_at(at(5, staged=PUSH), at(5, staged=PUSH)) == Proceed(5)


def test_a_committed_round_is_finished():
    assert decide_at(at(5, staged=PUSH, marked=True), at(5, staged=PUSH)) == Finish(5)


def test_a_round_that_one_server_has_applied_is_finished():
    assert decide_at(at(6), at(5, staged=PUSH)) == Finish(5)


def test_two_different_pushes_are_not_one_round():
    """Proves D13."""
    other = Staged(5, 9, 2)
    assert isinstance(decide_at(at(5, staged=PUSH, marked=True), at(5, staged=other)), RollBack)


def test_a_server_that_lost_the_push_makes_all_servers_roll_back():
    """Proves D12."""
    back = decide_at(at(6), at(5))
    assert (back.to, back.generation) == (4, 1)
    assert "h:0 at round 6 of generation 0, h:1 at round 5" in back.why


def test_the_newest_checkpoint_that_all_can_read_is_taken():
    assert decide_at(at(9, checkpoints=(0, 4, 8)), at(4, checkpoints=(0, 4))).to == 4


def test_servers_join_a_rollback_in_progress():
    back = decide_at(at(4, generation=2, base=4), at(9, generation=1))
    assert (back.to, back.generation) == (4, 2)


def test_servers_of_two_generations_do_not_continue_even_at_the_same_round():
    """Proves D12."""
    decision = decide_at(at(4, base=4, generation=1), at(4))
    assert isinstance(decision, RollBack)
    assert (decision.to, decision.generation) == (4, 1)


def test_servers_do_not_join_an_outdated_generation():
    back = decide_at(at(6, generation=2, base=4), at(4))
    assert (back.to, back.generation) == (4, 3)


def test_servers_wait_for_one_that_is_rolling_back():
    assert isinstance(decide_at(at(4, generation=1, busy=True), at(9)), Retry)


def test_the_conflict_without_a_common_checkpoint_lists_the_rounds_of_the_servers():
    conflict = decide_at(at(9, checkpoints=()), at(0, checkpoints=(0,)))
    assert isinstance(conflict, Conflict)
    assert "h:0 at round 9" in conflict.why


def test_checkpoints_that_differ_are_requested_again():
    retry = decide_at(at(9, checkpoints=(8,)), at(4, checkpoints=(4,)))
    assert isinstance(retry, Retry)
    assert "checkpoints" in retry.why


def test_an_announced_departure_of_a_trainer_is_completed():
    assert decide_at(at(7, completed=((1, 7),)), at(7)) == Leave(7)
    assert decide_at(at(9, completed=((1, 7),)), at(7)) == Leave(7)


def test_a_departure_unknown_to_a_restarted_server_is_undone():
    back = decide_at(at(7, completed=((0, 3), (1, 7))), at(4))
    assert isinstance(back, RollBack)
    assert back.completed == ((0, 3),)


def test_a_server_that_could_not_roll_back_makes_all_servers_roll_back_again():
    back = decide_at(at(4, generation=1, base=4, lost=True), at(4, generation=1, base=4))
    assert (back.to, back.generation) == (4, 2)
    back = decide_at(at(4, generation=1, base=4, lost=True), at(4, generation=0))
    assert (back.to, back.generation) == (4, 2)


def test_a_server_without_a_round_adopts_the_round_of_the_others():
    unknown = at(0, adopts=True, checkpoints=())
    assert decide_at(at(8, base=8, checkpoints=()), unknown) == Adopt(8, generation=1)
    assert decide_at(at(8, base=8), unknown, at(8, base=8)) == Adopt(8, generation=1)


def test_a_round_adopted_by_some_servers_is_adopted_in_the_same_generation():
    unknown = at(0, adopts=True, checkpoints=())
    assert decide_at(at(8, base=8, generation=1), unknown) == Adopt(8, generation=1)
    assert decide_at(at(8, base=8), unknown, at(8, base=8, generation=3)) == Adopt(8, generation=3)


def test_servers_begin_at_round_0_when_none_knows_its_round():
    assert decide_at(at(0, adopts=True), at(0, adopts=True)) == Proceed(0)


def test_a_new_server_beside_trained_servers_without_checkpoints_is_a_conflict():
    unknown = at(0, adopts=True, checkpoints=())
    assert isinstance(decide_at(at(9, base=8, checkpoints=()), unknown), Conflict)


def test_servers_that_loaded_different_rounds_are_a_permanent_error():
    here, there = at(8, base=8, checkpoints=()), at(4, base=4, checkpoints=())
    assert isinstance(decide_at(here, there), Mismatch)
    assert isinstance(decide_at(here, there, at(0, adopts=True, checkpoints=())), Mismatch)
    assert isinstance(decide_at(here, at(0, checkpoints=())), Mismatch)
