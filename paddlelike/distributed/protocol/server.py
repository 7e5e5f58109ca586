"""What a server does with each request, and when a round is complete: no sockets, no threads, no clock.

Every method is one step under one lock that the caller holds. Waiting is a reply, never a blocked call:
whoever serves asks again until its patience ends (and may wait on a condition between, woken by what
changed). Contributions (gradients) are opaque here.

A synchronous round in two phases: a trainer stages its push on *every* server, then commits to every server.
When all trainers that have not completed are marked, :meth:`ServerState.ready` hands the round to the thread
that owns the parameters; :meth:`ServerState.applied` publishes it. So *if any server applied round r, every
server holds every gradient of r*, and a trainer lost anywhere can be finished by its successor.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from paddlelike.distributed.protocol.messages import (
    Beat,
    Commit,
    Complete,
    Hello,
    Mode,
    Prefetch,
    Pull,
    Push,
    Reply,
    Rollback,
    Save,
)

__all__ = ["Apply", "Restore", "ServerState", "Work", "Write"]


@dataclass(frozen=True, slots=True)
class Apply:
    """Work: one synchronous round, or one update of one trainer (async).

    ``contributions`` are (trainer, contribution) in trainer-id order: sum them in this order.
    """

    number: int
    contributions: tuple[tuple[int, Any], ...]


@dataclass(frozen=True, slots=True)
class Restore:
    """Work: put every variable back to what it was when round ``number`` began (0: the start values)."""

    number: int


@dataclass(frozen=True, slots=True)
class Write:
    """Work: write the rows this server owns as the request says."""

    request: Save


Work: TypeAlias = Apply | Restore | Write


class ServerState:
    """One server's side of the protocol.

    Parameters
    ----------
    incarnation
        Names this process among all that served this endpoint; unique.
    trainers
        How many trainers take part (Fluid's Fanin): ids 0 .. trainers - 1.
    plan
        Digest of what lives on this server, as in Hello and Push.
    round, completed, updates
        Where the loaded state stands: as :meth:`saved_with` gave them when it was saved.
    lease
        Seconds without a word after which a trainer counts as silent.
    checkpoints
        The rounds this server could go back to at this moment (0: its start values).
    """

    def __init__(
        self,
        *,
        incarnation: str,
        trainers: int,
        mode: Mode,
        plan: str,
        job: str = "",
        now: float,
        round: int = 0,
        completed: Mapping[int, int] | None = None,
        updates: Mapping[tuple[int, int], int] | None = None,
        lease: float = 30.0,
        checkpoints: Callable[[], Sequence[int]] = tuple,
    ) -> None:
        raise NotImplementedError

    # Verbs: (request, now) -> reply. Push has two halves, because its bytes come between.

    def hello(self, request: Hello, now: float) -> Reply: ...

    def push_begin(self, request: Push, now: float) -> Reply | None:
        """None: take the bytes, then call push_end. A reply (duplicate, refused, waiting): take none."""

    def push_end(self, request: Push, contribution: Any, now: float) -> Reply:
        """Stages a whole contribution; checks everything again, since time has passed."""

    def commit(self, request: Commit, now: float) -> Reply:
        """CommitReply: send the parameters with it. Waiting: ask again until ``request.poll`` is over."""

    def pull(self, request: Pull, now: float) -> Reply: ...

    def prefetch(self, request: Prefetch, now: float) -> Reply: ...

    def beat(self, request: Beat, now: float) -> Reply: ...

    def rollback(self, request: Rollback, now: float) -> Reply: ...

    def save(self, request: Save, now: float) -> Reply: ...

    def complete(self, request: Complete, now: float) -> Reply: ...

    # The thread that owns the parameters

    def ready(self) -> Work | None:
        """What to do now; it stays "under way" until :meth:`applied`, :meth:`written` or :meth:`failed`."""

    def applied(self, work: Apply | Restore) -> None: ...

    def written(self, work: Write, manifest: Mapping[str, Any]) -> None: ...

    def failed(self, work: Work, text: str) -> None:
        """The work broke. A save is refused with ``text``; else every later request is refused with it."""

    @property
    def finished(self) -> bool:
        """Every trainer has completed and nothing is left to do."""
        raise NotImplementedError

    def saved_with(self) -> dict[str, Any]:
        """What a manifest must hold for a successor: round, completed, updates, as keyword arguments."""
        raise NotImplementedError
