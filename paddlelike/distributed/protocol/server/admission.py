"""The requests that a server accepts: for its job and program, and only from each trainer's newest
session.
"""

from __future__ import annotations

import hmac
from typing import TypeAlias

from paddlelike.distributed.protocol.messages import Hello, Mode, Reason, Request

Denial: TypeAlias = tuple[Reason, str] | None  #: why a request is refused; None: it is accepted


class Admission:
    """The trainers of a server: their newest sessions, and when each was last heard of.

    Parameters
    ----------
    trainers, mode, plan, job
        The values that a caller must have too.
    lease
        Seconds without a request after which a trainer counts as silent.

    >>> admission = Admission(trainers=2, mode="sync", plan="p", job="j", lease=30.0, now=0.0)
    >>> hello = Hello(job="j", trainer=1, process=7, session=1, plan="p", mode="sync", trainers=2)
    >>> admission.check_program(hello), admission.admit(hello, 0.0)
    (None, None)
    >>> older = Hello(job="j", trainer=1, process=6, session=1, plan="p", mode="sync", trainers=2)
    >>> admission.check_caller(older)
    ('fenced', 'a newer process has taken the place of trainer 1')
    """

    def __init__(self, *, trainers: int, mode: Mode, plan: str, job: str, lease: float, now: float) -> None:
        self.trainers, self.mode, self.plan, self.lease = trainers, mode, plan, lease
        self._job = job
        self._started = now
        self._newest: dict[int, tuple[int, int]] = {}  # by trainer: process, session
        self._seen: dict[int, float] = {}

    def check_caller(self, request: Request) -> Denial:
        """Deny any request of another job, of an unknown trainer, or of a process that was replaced."""
        # D3
        if not hmac.compare_digest(request.job.encode(), self._job.encode()):
            return "job", "this server belongs to another job"
        if request.trainer >= self.trainers:
            return "trainer", f"trainer id {request.trainer}, expected 0 to {self.trainers - 1}"
        # D1
        if request.process < self._newest.get(request.trainer, (0, 0))[0]:
            return "fenced", f"a newer process has taken the place of trainer {request.trainer}"
        return None

    def check_program(self, request: Hello) -> Denial:
        """Deny a Hello whose mode, trainer count or plan differs."""
        if request.mode != self.mode:
            return "mode", f"the trainer's program is {request.mode}, the server's {self.mode}"
        if request.trainers != self.trainers:
            return "trainer", f"a job of {request.trainers} trainers, expected {self.trainers}"
        return self.check_plan(request.plan)

    def check_plan(self, plan: str) -> Denial:
        """Deny a Hello or Push of a program that places other rows on this server."""
        # D3
        if plan == self.plan:
            return None
        return "plan", "the trainer's program places other rows on this server"

    def admit(self, request: Hello, now: float) -> Denial:
        """Make this session the trainer's newest; deny it if a later one was admitted."""
        session = (request.process, request.session)
        # D1
        if session < self._newest.get(request.trainer, session):
            return "stale", "a later session of this process has said Hello"
        self._newest[request.trainer] = session
        self.record_life(request, now)
        return None

    def check_session(self, request: Request) -> Denial:
        """Deny a request of a session that is not the trainer's newest."""
        # D1
        if (request.process, request.session) == self._newest.get(request.trainer):
            return None
        return "stale", "this session has not said Hello, or another one has since"

    def record_life(self, request: Request, now: float) -> None:
        """Record that the trainer is alive."""
        self._seen[request.trainer] = now

    def is_silent(self, trainer: int, now: float) -> bool:
        """Return whether a trainer has given no sign of life (since the start) for longer than the lease."""
        return now - self._seen.get(trainer, self._started) > self.lease
