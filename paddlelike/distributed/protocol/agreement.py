"""What a trainer concludes from every server's answer to its Hello, in sync mode: one pure function.

All servers must stand at the same round of the same generation before a trainer pushes. Where they do not,
either this trainer's own last round is finished (every server that has not applied it holds the same push
of it), or all go back to the newest checkpoint that all can read, under a new generation. Trainers that
decide at the same time come to the same numbers; where not, the next Hello shows it and they decide again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

from paddlelike.distributed.protocol.messages import HelloReply

__all__ = ["Again", "Back", "Close", "Decision", "Finish", "Go", "Stuck", "decide"]


@dataclass(frozen=True, slots=True)
class Go:
    """All servers are at the beginning of ``round``."""

    round: int


@dataclass(frozen=True, slots=True)
class Finish:
    """This trainer's push of ``round`` is complete everywhere: commit it."""

    round: int


@dataclass(frozen=True, slots=True)
class Back:
    """All servers must go back to checkpoint ``to`` and call the new time ``generation``."""

    to: int
    generation: int
    completed: tuple[tuple[int, int], ...]
    why: str


@dataclass(frozen=True, slots=True)
class Close:
    """This trainer had begun to close before ``round``: go on with that."""

    round: int


@dataclass(frozen=True, slots=True)
class Again:
    """The answers do not fit together yet: say Hello again."""

    why: str


@dataclass(frozen=True, slots=True)
class Stuck:
    """The servers differ and no checkpoint brings them together."""

    why: str


Decision: TypeAlias = Go | Finish | Back | Close | Again | Stuck


def decide(trainer: int, endpoints: Sequence[str], hellos: Sequence[HelloReply]) -> Decision:
    """What follows from ``hellos``, one per endpoint.

    >>> def at(round):
    ...     stands = dict(incarnation="a", generation=0, round=round, base=0, busy=False, lost=False)
    ...     return HelloReply(**stands, staged=None, marked=False, checkpoints=(0, 4), completed=())
    >>> decide(1, ["h:1", "h:2"], [at(5), at(5)])
    Go(round=5)
    >>> decide(1, ["h:1", "h:2"], [at(5), at(4)]).to
    4
    """
    if any(one.busy for one in hellos):
        return Again("a server is going back to a checkpoint")
    rounds = [one.round for one in hellos]
    generations = {one.generation for one in hellos}
    closed = max((dict(one.completed).get(trainer, -1) for one in hellos), default=-1)
    lost = any(one.lost for one in hellos)
    if len(generations) == 1 and not lost:
        if closed >= 0 and min(rounds) >= closed:
            return Close(closed)
        if closed < 0 and len(set(rounds)) == 1 and not any(one.marked for one in hellos):
            return Go(rounds[0])
        if closed < 0 and _all_hold_push(hellos):
            return Finish(min(rounds))
    return _back(trainer, endpoints, hellos)


def _all_hold_push(hellos: Sequence[HelloReply]) -> bool:
    """Whether each server has applied the lowest round or holds the same push for it."""
    low = min(one.round for one in hellos)
    held = {one.staged for one in hellos if one.round == low}
    one_push = len(held) == 1 and all(push is not None and push.round == low for push in held)
    return one_push and max(one.round for one in hellos) <= low + 1


def _back(trainer: int, endpoints: Sequence[str], hellos: Sequence[HelloReply]) -> Back | Again | Stuck:
    stands = ", ".join(
        f"{endpoint} at round {one.round} of generation {one.generation}"
        for endpoint, one in zip(endpoints, hellos, strict=True)
    )
    common = set.intersection(*(set(one.checkpoints) for one in hellos))
    if not all(one.checkpoints for one in hellos):
        return Stuck(f"the servers differ ({stands}), and no checkpoint is there for all of them")
    if not common:  # a save has come between the answers
        return Again(f"the servers differ ({stands}), and so do the checkpoints that they can read")
    newest = max(one.generation for one in hellos)
    there = {(one.round, one.base) for one in hellos if one.generation == newest}
    round, base = min(there)
    behind = any(one.generation < newest for one in hellos) and not any(one.lost for one in hellos)
    if len(there) == 1 and round == base and base in common and behind:
        to, generation = base, newest  # another trainer has begun: bring the others there
    else:
        to, generation = max(common), newest + 1
    # Trainers that closed later than `to` are needed again. One that is closing just now finds out and comes
    # back; of one that has ended the barrier will say that there is no sign of life.
    completed = {who: first for one in hellos for who, first in one.completed if who != trainer}
    return Back(to, generation, tuple(sorted(completed.items())), f"the servers differ: {stands}")
