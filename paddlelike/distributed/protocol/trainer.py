"""What a trainer calls next, and what an answer or a failure means: no sockets, no threads, no clock.

A trainer has one *goal* at a time (:meth:`TrainerState.join`, :meth:`~TrainerState.push`, ...), which takes
calls to several servers side by side. For each server, whoever drives asks :meth:`TrainerState.next` until
it says Done::

    trainer.push()
    # one thread per server i, all under one lock but for the call itself:
    while not isinstance(step := trainer.next(i, now), Done):
        if isinstance(step, Call):
            try: reply = channel[i].call(step.request, timeout=step.timeout)
            except WireError as error: trainer.failed(step, str(error), now)
            else: trainer.answered(step, reply, now)
        else: sleep until step.until, or until another server's answer changes something
    outcome = trainer.outcome
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

from paddlelike.distributed.protocol.messages import Mode, Reply, Request
from paddlelike.errors import FaultError

__all__ = ["Call", "Done", "Limits", "Outcome", "Pause", "Resumed", "Step", "Success", "TrainerState"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """How patient a trainer is, in seconds."""

    call: float = 60.0  #: one call
    window: float = 180.0  #: one server that does not answer (FLAGS_rpc_deadline)
    barrier: float = 900.0  #: other trainers at a barrier (FLAGS_worker_update_interval_secs)
    poll: float = 10.0  #: one turn of waiting at a barrier
    attempts: int = 1  #: calls before a server is given up, also where the window is over (rpc_retry_times)


@dataclass(frozen=True, slots=True)
class Call:
    """Call server ``server`` with ``request``; where it brings parameters, take them into place."""

    server: int
    request: Request
    timeout: float
    ticket: int  #: tells answers to abandoned calls apart


@dataclass(frozen=True, slots=True)
class Pause:
    """Nothing to call on this server before ``until``, or before something else changes."""

    until: float


@dataclass(frozen=True, slots=True)
class Done:
    """The goal is reached or lost: see ``outcome``."""


Step: TypeAlias = Call | Pause | Done


@dataclass(frozen=True, slots=True)
class Success:
    """The goal is reached; ``round`` is the next round of this trainer."""

    round: int


@dataclass(frozen=True, slots=True)
class Resumed:
    """The job goes on from ``round`` instead, whose parameters are in place: compute it anew."""

    round: int


#: A FaultError names the endpoint or the trainers; whoever drives raises it.
Outcome: TypeAlias = Success | Resumed | FaultError


class TrainerState:
    """One trainer's side of the protocol.

    Parameters
    ----------
    process
        Orders the processes of one trainer id: start time in ns.
    endpoints, plans
        Each server's address (for errors) and the digest of what lives there.
    rollback
        Whether to go back to the last checkpoint when a server was restarted; else that is an error.
    """

    def __init__(
        self,
        *,
        trainer: int,
        trainers: int,
        process: int,
        endpoints: Sequence[str],
        plans: Sequence[str],
        mode: Mode,
        job: str = "",
        rollback: bool = False,
        limits: Limits = Limits(),
    ) -> None:
        raise NotImplementedError

    # Goals. A second goal while one is open is an assertion.
    def join(self, now: float) -> None:
        """Agree with every server on the round, finish a predecessor's round, pull all parameters."""

    def push(self, now: float) -> None:
        """Stage this round's gradients (async: apply an update) on every server."""

    def commit(self, now: float) -> None:
        """Sync, after push: the barrier; CommitReply brings the new parameters."""

    def pull(self, now: float, slices: Sequence[tuple[int, ...] | None]) -> None:
        """Pull slices; one entry per server: (): nothing from it; None: all its parameters."""

    def save(self, now: float, directory: str) -> None: ...

    def complete(self, now: float) -> None: ...

    # Driving
    def next(self, server: int, now: float) -> Step: ...

    def answered(self, call: Call, reply: Reply, now: float) -> None: ...

    def failed(self, call: Call, why: str, now: float) -> None: ...

    @property
    def outcome(self) -> Outcome | None: ...

    # One server only, beside any goal: built here so that job, process, session, incarnation are right
    def beat(self) -> Request: ...

    def prefetch(self, server: int, table: str, count: int) -> Request: ...
