"""Calls of a trainer to one server: limits, back-off and failures; the steps and outcomes of a trainer."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TypeAlias

from paddlelike.distributed.protocol.messages import Request
from paddlelike.errors import FaultError


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """The timeouts of a trainer, in seconds."""

    call: float = 60.0  #: for one call
    window: float = 180.0  #: for a server that does not answer (FLAGS_rpc_deadline)
    #: For a server that replies Waiting, as at a barrier (FLAGS_worker_update_interval_secs).
    barrier: float = 900.0
    poll: float = 10.0  #: for which one call waits at a barrier
    attempts: int = 1  #: calls made at least before a server is given up (FLAGS_rpc_retry_times)


@dataclass(frozen=True, slots=True)
class Call:
    """Call the server of this index; copy the parameters that the reply brings to their arrays."""

    server: int
    request: Request
    timeout: float
    ticket: int  #: the id of the call, by which a late reply is distinguished from the awaited one


@dataclass(frozen=True, slots=True)
class Pause:
    """Do not call this server before ``until``, or before the state changes."""

    until: float


@dataclass(frozen=True, slots=True)
class Done:
    """The goal was reached or failed: see ``outcome``."""


Step: TypeAlias = Call | Pause | Done


@dataclass(frozen=True, slots=True)
class Success:
    """The goal was reached; ``round`` is the next round of this trainer."""

    round: int


@dataclass(frozen=True, slots=True)
class Resumed:
    """The job continues at ``round`` instead, which must be computed again. Its parameters are loaded."""

    round: int


@dataclass(frozen=True, slots=True)
class Closed:
    """An earlier process of this trainer has left the job; this process has nothing to do."""

    round: int


#: A FaultError names the endpoint or the trainers; the caller raises it.
Outcome: TypeAlias = Success | Resumed | Closed | FaultError


@dataclass(slots=True)
class Link:
    """The calls of a trainer to one server.

    Attributes
    ----------
    done
        Whether the server has done its part of the stage.
    ticket
        The id of the call under way; 0: none; negative: a call of an earlier stage.
    failures, failing_since
        Failed calls in a row, and the time of the first.
    waiting_since
        The time of the server's first Waiting reply in this stage.
    retry_at
        The time before which the server is not called.
    incarnation, restarted
        The server's incarnation, and whether it has changed since the trainer joined.
    """

    done: bool = False
    ticket: int = 0
    issued: float = 0.0
    failing_since: float | None = None
    failures: int = 0
    waiting_since: float | None = None
    retry_at: float = -math.inf
    incarnation: str = ""
    restarted: bool = False

    def begin_stage(self, *, done: bool) -> None:
        """Begin a stage. The current call is abandoned, but must end before the next call."""
        self.done = done
        self.ticket = -abs(self.ticket)
        self.waiting_since = None

    def begin_call(self, ticket: int, now: float) -> None:
        """Record that a call begins."""
        self.ticket, self.issued = ticket, now

    def end_call(self, ticket: int) -> bool:
        """Record the end of a call; return whether it belongs to this stage."""
        # D14
        is_awaited = self.ticket == ticket
        if abs(self.ticket) == ticket:
            self.ticket = 0
        return is_awaited

    def record_reply(self) -> None:
        """Record that the server replied."""
        self.failing_since, self.failures = None, 0

    def record_failure(self, now: float, timeout: float) -> float:
        """Record a failed call and back off; return the seconds since calls began to fail.

        ``timeout`` is the timeout of the call, in seconds. A call that lasts longer was sending values while
        they were being computed.
        """
        self.failures += 1
        if self.failing_since is None:
            self.failing_since = max(self.issued, now - timeout)
        self.retry_at = now + min(0.05 * 2 ** min(self.failures - 1, 8), 1.0)
        return now - self.failing_since

    def record_wait(self, now: float, pause: float) -> float:
        """Record a Waiting reply; return the seconds since the server began to give such replies."""
        self.retry_at = now + pause
        if self.waiting_since is None:
            self.waiting_since = self.issued
        return now - self.waiting_since

    def record_incarnation(self, incarnation: str) -> None:
        """Record the server's incarnation."""
        self.restarted |= self.incarnation not in ("", incarnation)
        self.incarnation = incarnation
