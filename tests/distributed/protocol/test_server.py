"""The server's state machine, one step at a time."""

from __future__ import annotations

from typing import Any

import pytest

from paddlelike.distributed.protocol.messages import (
    REQUESTS,
    BeatReply,
    CommitReply,
    CompleteReply,
    HelloReply,
    PrefetchReply,
    PullReply,
    Push,
    PushReply,
    Refused,
    RollbackReply,
    SaveReply,
    ShareReply,
    Staged,
    Waiting,
)
from paddlelike.distributed.protocol.server import ServerState
from paddlelike.distributed.protocol.server.exchanges import Apply, Restore, Write
from paddlelike.distributed.protocol.server.round_barrier import Round


class Talk:
    """A server, and requests with default fields."""

    def __init__(self, **options: Any) -> None:
        fields = {"incarnation": "a", "trainers": 2, "mode": "sync", "plan": "p", "job": "j", "now": 0.0}
        self.state = ServerState(**fields | {"checkpoints": lambda: (0, 4)} | options)

    def say(self, verb: str, trainer: int, *, now: float = 1.0, **fields: Any) -> Any:
        me = {"job": "j", "trainer": trainer, "process": 10 + trainer, "session": 1}
        here = {"incarnation": self.state.incarnation, "generation": self.state.generation}
        defaults: dict[str, dict[str, Any]] = {
            "Hello": {"plan": "p", "mode": self.state.mode, "trainers": 2},
            "Push": here | {"plan": "p", "number": self.state.round},
            "Commit": here | {"round": self.state.round, "poll": 1.0},
            "Pull": here | {"version": None, "slices": None},
            "Prefetch": here | {"table": "t", "count": 3},
            "Beat": {},
            "Rollback": {"to": 4, "generation": 1},
            "Save": here | {"number": 1, "directory": "d", "version": None},
            "Share": here | {"number": 1, "size": 1, "poll": 1.0},
            "Complete": here | {"round": self.state.round},
        }
        request = REQUESTS[verb](**me | defaults[verb] | fields)
        return getattr(self.state, "begin_push" if verb == "Push" else verb.lower())(request, now)

    def push(self, trainer: int, what: Any = "g", **fields: Any) -> Any:
        reply = self.say("Push", trainer, **fields)
        if reply is not None:
            return reply
        me = {"job": "j", "trainer": trainer, "process": 10 + trainer, "session": 1, "plan": "p"}
        here = {"incarnation": self.state.incarnation, "generation": self.state.generation}
        request = REQUESTS["Push"](**me | here | {"number": self.state.round} | fields)
        return self.state.end_push(request, what, 1.0)

    def share(self, trainer: int, text: bytes, number: int = 1) -> Any:
        me = {"job": "j", "trainer": trainer, "process": 10 + trainer, "session": 1}
        here = {"incarnation": self.state.incarnation, "generation": self.state.generation}
        request = REQUESTS["Share"](number=number, size=len(text), poll=1.0, **me, **here)
        self.state.take_share(request, text, 1.0)
        return self.state.share(request, 1.0)

    def work(self) -> Any:
        work = self.state.take_work()
        assert work is not None
        return work


@pytest.fixture
def talk():
    talk = Talk()
    talk.say("Hello", 0)
    talk.say("Hello", 1)
    return talk


def refusal_reason(reply: Any) -> str:
    assert isinstance(reply, Refused)
    assert reply.text
    return reply.reason


def test_a_round_waits_for_the_push_and_commit_of_both_trainers(talk):
    """Proves D4, D7."""
    assert talk.push(1, "g1") == PushReply(incarnation="a", generation=0, round=0)
    assert talk.push(0, "g0").duplicate is False
    assert talk.state.take_work() is None
    assert talk.say("Commit", 1).missing == (0,)
    assert talk.state.take_work() is None
    assert talk.say("Commit", 0).missing == ()
    work = talk.work()
    assert work == Apply(0, ((0, "g0"), (1, "g1")))
    talk.state.end_apply(work)
    assert talk.say("Commit", 0, round=0) == CommitReply(incarnation="a", generation=0, round=1)
    assert talk.push(0, number=0).duplicate is True


def test_a_gradient_is_added_only_after_the_trainers_with_lower_ids_committed():
    """Proves D7."""
    staged = Round()
    for trainer in (2, 1):
        caller = {"job": "", "trainer": trainer, "process": 1, "session": 1}
        staged.stage(Push(**caller, incarnation="a", generation=0, plan="p", number=0), f"g{trainer}")
        staged.marks.add(trainer)
    assert staged.find_merge({0}) is None
    merge = staged.find_merge({3})
    assert (merge.into, merge.other) == ((1, "g1"), (2, "g2"))


def test_a_repeated_push_is_acknowledged_without_its_bytes(talk):
    """Proves D6."""
    talk.push(0, "g0")
    assert talk.push(0, "again").duplicate is True
    talk.push(1)
    talk.say("Commit", 0)
    talk.say("Commit", 1)
    assert dict(talk.work().contributions)[0] == "g0"


def test_a_push_whose_bytes_come_after_a_rollback_is_not_staged(talk):
    assert talk.say("Push", 0) is None
    talk.say("Rollback", 1, to=0, generation=1)
    talk.state.end_apply(talk.work())
    late = {"incarnation": "a", "generation": 0, "number": 0}
    assert refusal_reason(talk.push(0, **late)) == "stale"
    assert talk.say("Hello", 0).staged is None


def test_a_later_session_overwrites_an_uncommitted_push(talk):
    """Proves D1."""
    talk.push(0, "old")
    talk.say("Hello", 0, session=2)
    assert refusal_reason(talk.push(0, "older")) == "stale"
    assert talk.push(0, "new", session=2).duplicate is False
    assert talk.say("Hello", 0, session=3).staged == Staged(0, 10, 2)


def test_a_hello_of_an_earlier_session_is_refused_as_stale(talk):
    """Proves D1."""
    talk.say("Hello", 0, session=3)
    assert refusal_reason(talk.say("Hello", 0, session=2)) == "stale"
    assert talk.push(0, "new", session=3).duplicate is False


def test_a_committed_push_is_not_overwritten(talk):
    """Proves D5."""
    talk.push(0, "old")
    talk.say("Commit", 0)
    talk.say("Hello", 0, session=2)
    assert refusal_reason(talk.push(0, "new", session=2)) == "stale"


def test_a_hello_reply_lists_the_staged_and_committed_rounds(talk):
    talk.push(0)
    hello = talk.say("Hello", 0, process=99)
    assert isinstance(hello, HelloReply)
    assert (hello.staged, hello.marked) == (Staged(0, 10, 1), False)
    assert talk.say("Commit", 0, process=99).missing == (1,)
    assert talk.say("Hello", 0, process=99).marked


@pytest.mark.parametrize("verb", sorted(set(REQUESTS) - {"Complete"}))
def test_an_older_process_is_fenced(talk, verb):
    """Proves D1."""
    talk.say("Hello", 0, process=99)
    assert refusal_reason(talk.say(verb, 0)) == "fenced"


@pytest.mark.parametrize("verb", sorted(set(REQUESTS) - {"Hello", "Beat", "Rollback"}))
@pytest.mark.parametrize("field", [{"incarnation": "b"}, {"generation": 3}, {"session": 0}, {"process": 11}])
def test_a_request_of_another_incarnation_generation_or_session_is_stale(talk, verb, field):
    """Proves D1, D2."""
    assert refusal_reason(talk.say(verb, 0, **field)) == "stale"


@pytest.mark.parametrize("verb", sorted(REQUESTS))
def test_requests_of_unknown_trainers_are_refused(talk, verb):
    """Proves D3."""
    assert refusal_reason(talk.say(verb, 0, job="other")) == "job"
    assert refusal_reason(talk.say(verb, 2)) == "trainer"


@pytest.mark.parametrize(
    ("field", "reason"), [({"plan": "q"}, "plan"), ({"mode": "async"}, "mode"), ({"trainers": 3}, "trainer")]
)
def test_another_program_is_refused_and_fences_nobody(talk, field, reason):
    """Proves D3."""
    assert refusal_reason(talk.say("Hello", 0, process=99, **field)) == reason
    assert isinstance(talk.say("Beat", 0), BeatReply)


def test_rounds_out_of_order_are_refused(talk):
    assert refusal_reason(talk.push(0, number=1)) == "ahead"
    assert refusal_reason(talk.say("Commit", 0, round=1)) == "ahead"
    assert refusal_reason(talk.say("Commit", 0)) == "nopush"
    assert refusal_reason(talk.say("Pull", 0, version=1)) == "version"
    assert refusal_reason(talk.say("Save", 0, version=1)) == "version"
    assert refusal_reason(talk.say("Complete", 0, round=1)) == "ahead"


def test_parameters_are_not_read_while_a_round_is_applied(talk):
    """Proves D8."""
    for trainer in (0, 1):
        talk.push(trainer)
    for trainer in (0, 1):
        talk.say("Commit", trainer)
    work = talk.work()
    for verb in ("Pull", "Prefetch", "Save"):
        assert isinstance(talk.say(verb, 0), Waiting)
    assert isinstance(talk.say("Commit", 0), Waiting)
    talk.state.end_apply(work)
    assert isinstance(talk.say("Pull", 0, version=1), PullReply)
    assert isinstance(talk.say("Prefetch", 0), PrefetchReply)


def test_a_barrier_distinguishes_silent_from_slow_trainers(talk):
    talk.push(0)
    assert talk.say("Commit", 0, now=20.0).silent == ()
    assert talk.say("Commit", 0, now=50.0).silent == (1,)
    talk.say("Beat", 1, now=45.0)
    assert talk.say("Commit", 0, now=50.0).silent == ()


def test_a_trainer_that_never_connected_is_silent_after_the_lease():
    talk = Talk()
    talk.say("Hello", 0)
    talk.push(0)
    assert talk.say("Commit", 0, now=29.0).silent == ()
    assert talk.say("Commit", 0, now=31.0).silent == (1,)


def test_rounds_continue_without_trainers_that_closed(talk):
    """Proves D4."""
    assert isinstance(talk.say("Complete", 1), CompleteReply)
    assert isinstance(talk.say("Complete", 1), CompleteReply)
    talk.push(0, "g0")
    talk.say("Commit", 0)
    work = talk.work()
    assert work == Apply(0, ((0, "g0"),))
    talk.state.end_apply(work)
    assert not talk.state.is_finished
    talk.say("Complete", 0)
    assert not talk.state.is_finished
    talk.say("Complete", 0, last=True)
    talk.say("Complete", 1, last=True)
    assert talk.state.is_finished


def test_a_restarted_server_accepts_a_closing_message(talk):
    for trainer in (0, 1):
        reply = talk.say("Complete", trainer, last=True, round=9, incarnation="earlier", session=7)
        assert isinstance(reply, CompleteReply)
    assert talk.state.is_finished


def test_nobody_waits_for_a_trainer_lost_before_its_closing_message(talk):
    talk.say("Complete", 0, last=True, now=5.0)
    assert not talk.state.may_end(99.0)
    talk.say("Complete", 1, now=10.0)
    assert not talk.state.may_end(39.0)
    assert talk.state.may_end(41.0)


def test_a_restarted_server_learns_from_trainers_who_has_left(talk):
    talk.say("Complete", 0, last=True)
    assert talk.say("Hello", 1).left == (0,)
    later = Talk(incarnation="b")
    later.say("Hello", 1)
    later.say("Complete", 1)
    later.say("Complete", 1, last=True, left=(0,))
    assert later.state.is_finished


def test_a_close_completes_the_round_the_others_wait_in(talk):
    talk.push(0, "g0")
    talk.say("Commit", 0)
    assert talk.state.take_work() is None
    talk.say("Complete", 1)
    assert talk.work() == Apply(0, ((0, "g0"),))


def test_a_rollback_restores_values_and_clears_pushes_exactly_once(talk):
    """Proves D10."""
    talk.push(0)
    assert isinstance(talk.say("Rollback", 0), Waiting)
    assert talk.say("Hello", 0, session=1).busy
    work = talk.work()
    assert work == Restore(4)
    talk.state.end_apply(work)
    assert isinstance(talk.say("Rollback", 0), RollbackReply)
    assert isinstance(talk.say("Rollback", 1, to=0), RollbackReply)
    hello = talk.say("Hello", 0)
    assert (hello.round, hello.base, hello.generation, hello.staged) == (4, 4, 1, None)
    assert talk.state.take_work() is None


def test_a_checkpoint_that_cannot_be_read_is_reported_and_another_one_taken(talk):
    talk.say("Rollback", 0)
    talk.state.fail_work(talk.work(), "no such file")
    assert refusal_reason(talk.say("Rollback", 0)) == "checkpoint"
    assert refusal_reason(talk.say("Pull", 0)) == "stale"
    assert talk.say("Hello", 0).lost
    assert talk.state.take_work() is None
    talk.say("Rollback", 0, to=0, generation=2)
    talk.state.end_apply(talk.work())
    assert isinstance(talk.say("Rollback", 0, to=0, generation=2), RollbackReply)
    assert not talk.say("Hello", 0).lost


def test_a_rollback_to_a_missing_checkpoint_changes_nothing(talk):
    """Proves D11."""
    assert refusal_reason(talk.say("Rollback", 0, to=3)) == "checkpoint"
    assert talk.state.generation == 0


def test_a_server_without_a_round_adopts_one_and_restores_nothing():
    talk = Talk(adopts=True, checkpoints=tuple)
    assert talk.say("Hello", 0).adopts
    assert isinstance(talk.say("Rollback", 0, to=8), RollbackReply)
    assert talk.state.take_work() is None
    assert (talk.state.round, talk.state.base, talk.state.start, talk.state.generation) == (8, 8, 8, 1)
    assert not talk.say("Hello", 1).adopts
    assert isinstance(talk.say("Rollback", 1, to=8), RollbackReply)  # the other trainer decided the same
    assert refusal_reason(talk.say("Rollback", 1, to=9, generation=2)) == "checkpoint"


def test_a_server_confirms_the_round_of_its_start_values_until_a_round_is_applied():
    talk = Talk(saved={"round": 8}, checkpoints=tuple)
    talk.say("Hello", 0)
    talk.say("Hello", 1)
    assert isinstance(talk.say("Rollback", 0, to=8), RollbackReply)
    for trainer in range(2):
        talk.push(trainer)
        talk.say("Commit", trainer)
    work = talk.state.take_work()
    assert refusal_reason(talk.say("Rollback", 0, to=8, generation=2)) == "checkpoint"
    talk.state.end_apply(work)
    assert refusal_reason(talk.say("Rollback", 0, to=8, generation=2)) == "checkpoint"


def test_a_rollback_during_a_round_drops_that_round(talk):
    for trainer in (0, 1):
        talk.push(trainer)
    for trainer in (0, 1):
        talk.say("Commit", trainer)
    work = talk.work()
    talk.say("Rollback", 0)
    talk.state.end_apply(work)
    assert talk.state.round == 4
    assert talk.work() == Restore(4)


def test_a_rollback_undoes_later_departures_and_learns_of_earlier_ones():
    talk = Talk(trainers=3, saved={"round": 6})
    for trainer in (0, 1):
        talk.say("Hello", trainer, trainers=3)
    talk.say("Complete", 1)
    talk.say("Rollback", 0, completed=((2, 3), (1, 6)))
    assert talk.state.completed == {2: 3}


def test_the_answer_to_a_save_request_is_kept_for_repeats(talk):
    """Proves D16."""
    assert isinstance(talk.say("Save", 0), Waiting)
    work = talk.work()
    assert isinstance(work, Write)
    assert work.request.directory == "d"
    talk.state.end_write(work, {"files": 2})
    assert talk.say("Save", 0).manifest == {"files": 2}
    assert talk.state.take_work() is None
    assert isinstance(talk.say("Save", 0, number=2), Waiting)
    assert isinstance(talk.work(), Write)


def test_a_failed_save_is_refused_and_the_server_continues(talk):
    talk.say("Save", 0)
    talk.state.fail_work(talk.work(), "disk full")
    reply = talk.say("Save", 0)
    assert (refusal_reason(reply), reply.text) == ("failed", "disk full")
    assert isinstance(talk.say("Pull", 0), PullReply)
    talk.say("Save", 0, number=2)
    talk.state.end_write(talk.work(), {})
    assert isinstance(talk.say("Save", 0, number=2), SaveReply)


def test_shared_texts_are_returned_once_every_trainer_has_sent_one(talk):
    assert talk.share(1, b"b").missing == (0,)
    assert talk.share(1, b"repeated").missing == (0,)
    assert talk.share(0, b"a") == ShareReply(incarnation="a", generation=0, round=0)
    assert talk.share(0, b"a", number=2).missing == (1,)  # while trainer 1 still waits for the first
    assert talk.say("Share", 1).kind == "ok"
    assert talk.state.shared_texts(1) == [b"a", b"b"]
    assert talk.share(1, b"", number=2).kind == "ok"
    talk.share(0, b"a", number=3)
    assert talk.state.shared_texts(1) == []
    assert talk.state.shared_texts(2) == [b"a", b""]


def test_a_rollback_forgets_shared_texts(talk):
    """Proves D10."""
    talk.share(0, b"a")
    talk.say("Rollback", 1, to=0, generation=1)
    talk.state.end_apply(talk.work())
    assert talk.share(1, b"b").missing == (0,)


@pytest.mark.parametrize("verb", sorted(REQUESTS))
def test_a_failed_round_is_reported_to_every_trainer(talk, verb):
    """Proves D17."""
    for trainer in (0, 1):
        talk.push(trainer)
    for trainer in (0, 1):
        talk.say("Commit", trainer)
    talk.state.fail_work(talk.work(), "adam: shapes differ")
    reply = talk.say(verb, 0)
    assert (refusal_reason(reply), reply.text) == ("failed", "adam: shapes differ")
    assert talk.state.take_work() is None


# Asynchronous


@pytest.fixture
def free():
    talk = Talk(mode="async")
    talk.say("Hello", 0)
    talk.say("Hello", 1)
    return talk


def test_updates_are_applied_one_by_one_in_order_of_arrival(free):
    free.push(1, "b", number=1)
    free.push(0, "a", number=1)
    first = free.work()
    assert first == Apply(0, ((1, "b"),))
    free.state.end_apply(first)
    second = free.work()
    assert second == Apply(1, ((0, "a"),))
    free.state.end_apply(second)
    assert free.state.round == 2


def test_an_update_is_applied_once(free):
    """Proves D9."""
    free.push(0, number=1)
    assert free.push(0, number=1).duplicate
    free.state.end_apply(free.work())
    assert free.push(0, number=1).duplicate
    assert free.state.take_work() is None


def test_a_trainer_waits_for_its_own_update(free):
    free.push(0, number=1)
    assert isinstance(free.push(0, number=2), Waiting)
    assert isinstance(free.say("Pull", 0), Waiting)
    assert isinstance(free.say("Pull", 1), PullReply)
    free.state.end_apply(free.work())
    assert isinstance(free.say("Pull", 0), PullReply)
    assert free.push(0, number=2).duplicate is False


def test_a_restarted_server_still_recognizes_pushes_it_has_applied(free):
    """Proves D9."""
    free.push(0, number=1)
    free.state.end_apply(free.work())
    saved = free.state.position()
    assert saved == {"round": 1, "completed": [], "updates": [[0, 10, 1]]}
    later = Talk(mode="async", incarnation="b", saved=saved)
    later.say("Hello", 0)
    assert later.push(0, number=1).duplicate
    later.say("Hello", 0, process=99)
    assert later.push(0, number=1, process=99).duplicate is False


def test_an_asynchronous_server_ends_after_its_last_update(free):
    free.push(0, number=1)
    free.say("Complete", 0, last=True)
    free.say("Complete", 1, last=True)
    assert not free.state.is_finished
    free.state.end_apply(free.work())
    assert free.state.is_finished


@pytest.mark.parametrize("verb", ["Commit", "Rollback"])
def test_an_asynchronous_server_refuses_requests_about_rounds(free, verb):
    assert refusal_reason(free.say(verb, 0)) == "mode"
