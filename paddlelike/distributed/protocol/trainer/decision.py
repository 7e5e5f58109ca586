"""The decision of a trainer after every server has replied to its Hello, in sync mode: one pure function.

All servers must be at the same round of the same generation before a trainer pushes. If they are not, and
every server that has not applied this trainer's last round holds the same push of it, that round is finished.
Otherwise all roll back to the newest checkpoint that all can read, under a new generation. Trainers that
decide at the same time decide alike; otherwise the next Hello shows the difference and they decide again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

from paddlelike.distributed.protocol.messages import HelloReply


@dataclass(frozen=True, slots=True)
class Proceed:
    """All servers are at the beginning of ``round``."""

    round: int


@dataclass(frozen=True, slots=True)
class Finish:
    """This trainer's push of ``round`` is complete on every server: commit it."""

    round: int


@dataclass(frozen=True, slots=True)
class RollBack:
    """All servers must return to checkpoint ``to`` and start ``generation``."""

    to: int
    generation: int
    completed: tuple[tuple[int, int], ...]
    why: str


@dataclass(frozen=True, slots=True)
class Adopt:
    """Servers that loaded values of an unknown round must use ``round``, in ``generation``."""

    round: int
    generation: int


@dataclass(frozen=True, slots=True)
class Leave:
    """This trainer had begun to leave the job before ``round``: continue to leave."""

    round: int


@dataclass(frozen=True, slots=True)
class Retry:
    """The replies belong to different moments: say Hello again."""

    why: str


@dataclass(frozen=True, slots=True)
class Conflict:
    """The servers are at different rounds and have no common checkpoint."""

    why: str


@dataclass(frozen=True, slots=True)
class Mismatch:
    """The servers began at different rounds and no trainer has trained. A restart would change nothing."""

    why: str


Decision: TypeAlias = Proceed | Finish | RollBack | Adopt | Leave | Retry | Conflict | Mismatch


def decide(trainer: int, endpoints: Sequence[str], hellos: Sequence[HelloReply]) -> Decision:
    """Return what ``trainer`` must do after the answers ``hellos``, one per endpoint.

    >>> def at(round):
    ...     fields = dict(incarnation="a", generation=0, round=round, base=0, busy=False, lost=False)
    ...     return HelloReply(**fields, staged=None, marked=False, checkpoints=(0, 4), completed=())
    >>> decide(1, ["h:1", "h:2"], [at(5), at(5)])
    Proceed(round=5)
    >>> decide(1, ["h:1", "h:2"], [at(5), at(4)]).to
    4
    """
    if any(hello.busy for hello in hellos):
        return Retry("a server is rolling back to a checkpoint")
    rounds = [hello.round for hello in hellos]
    generations = {hello.generation for hello in hellos}
    left_at = max((dict(hello.completed).get(trainer, -1) for hello in hellos), default=-1)
    if len(generations) == 1 and not any(hello.lost for hello in hellos):
        if left_at >= 0 and min(rounds) >= left_at:
            return Leave(left_at)
        # D12
        if left_at < 0 and len(set(rounds)) == 1 and not any(hello.marked for hello in hellos):
            return Proceed(rounds[0])
        if left_at < 0 and _all_hold_push(hellos):
            return Finish(min(rounds))
    return _adopt(hellos) or _roll_back(trainer, endpoints, hellos)


def describe_rounds(endpoints: Sequence[str], hellos: Sequence[HelloReply]) -> str:
    """Return the round and generation of every server as text."""
    return ", ".join(
        f"{endpoint} at round {hello.round} of generation {hello.generation}"
        for endpoint, hello in zip(endpoints, hellos, strict=True)
    )


def _is_untrained(hellos: Sequence[HelloReply]) -> bool:
    """Return whether every server still has its initial values."""
    return all(hello.round == hello.base and not hello.marked and not hello.lost for hello in hellos)


def _adopt(hellos: Sequence[HelloReply]) -> Adopt | None:
    """Return the round for all servers, if the servers that know their round began at the same one.

    If some servers are in a later generation, another trainer has already begun this. Join that generation,
    since a further one would roll back the trainers that have continued.
    """
    known = {hello.round for hello in hellos if not hello.adopts}
    if len(known) != 1 or all(not hello.adopts for hello in hellos) or not _is_untrained(hellos):
        return None
    newest = max(hello.generation for hello in hellos)
    has_begun = any(hello.generation < newest for hello in hellos)
    return Adopt(known.pop(), newest if has_begun else newest + 1)


def _all_hold_push(hellos: Sequence[HelloReply]) -> bool:
    """Return whether each server has applied the lowest round or holds the same push for it."""
    low = min(hello.round for hello in hellos)
    held = {hello.staged for hello in hellos if hello.round == low}
    # D13
    is_one_push = len(held) == 1 and all(push is not None and push.round == low for push in held)
    return is_one_push and max(hello.round for hello in hellos) <= low + 1


def _roll_back(
    trainer: int, endpoints: Sequence[str], hellos: Sequence[HelloReply]
) -> RollBack | Retry | Conflict | Mismatch:
    rounds = describe_rounds(endpoints, hellos)
    common = set.intersection(*(set(hello.checkpoints) for hello in hellos))
    if not all(hello.checkpoints for hello in hellos):
        if _is_untrained(hellos) and all(hello.generation == 0 for hello in hellos):
            return Mismatch(f"the servers began at different rounds: {rounds}")
        return Conflict(f"the servers are at different rounds ({rounds}), and not all have a checkpoint")
    if not common:  # a save was made between the replies
        return Retry(f"the servers are at different rounds ({rounds}) and see different checkpoints")
    newest = max(hello.generation for hello in hellos)
    of_newest = {(hello.round, hello.base) for hello in hellos if hello.generation == newest}
    round, base = min(of_newest)
    some_behind = any(hello.generation < newest for hello in hellos) and not any(
        hello.lost for hello in hellos
    )
    if len(of_newest) == 1 and round == base and base in common and some_behind:
        to, generation = base, newest  # another trainer has begun this rollback: join it
    else:
        to, generation = max(common), newest + 1
    # Trainers that left after round `to` are needed again. One that is just leaving notices and rejoins; for
    # one that has ended, the barrier will report that it shows no sign of life.
    completed = {who: first for hello in hellos for who, first in hello.completed if who != trainer}
    why = f"the servers are at different rounds: {rounds}"
    return RollBack(to, generation, tuple(sorted(completed.items())), why)
