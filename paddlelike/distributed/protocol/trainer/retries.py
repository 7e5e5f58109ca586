"""The state of a trainer's calls to one server."""

from __future__ import annotations

import math
from dataclasses import dataclass


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
        Since when the server replies Waiting in this stage.
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
        """Begin a stage. A call under way is abandoned, but must end before the next one."""
        self.done = done
        self.ticket = -abs(self.ticket)
        self.waiting_since = None

    def begin_call(self, ticket: int, now: float) -> None:
        """Note that a call begins."""
        self.ticket, self.issued = ticket, now

    def end_call(self, ticket: int) -> bool:
        """Note that a call has ended; return whether it was of this stage."""
        # D14
        is_awaited = self.ticket == ticket
        if abs(self.ticket) == ticket:
            self.ticket = 0
        return is_awaited

    def record_reply(self) -> None:
        """Note that the server replied."""
        self.failing_since, self.failures = None, 0

    def record_failure(self, now: float, timeout: float) -> float:
        """Note that a call failed and back off; return for how long calls have been failing.

        ``timeout``: of the call. One that lasted longer had been sending what was still being computed.
        """
        self.failures += 1
        if self.failing_since is None:
            self.failing_since = max(self.issued, now - timeout)
        self.retry_at = now + min(0.05 * 2 ** min(self.failures - 1, 8), 1.0)
        return now - self.failing_since

    def record_wait(self, now: float, pause: float) -> float:
        """Note a reply of Waiting; return for how long the server has replied so."""
        self.retry_at = now + pause
        if self.waiting_since is None:
            self.waiting_since = self.issued
        return now - self.waiting_since

    def record_incarnation(self, incarnation: str) -> None:
        """Note the server's incarnation."""
        self.restarted |= self.incarnation not in ("", incarnation)
        self.incarnation = incarnation
