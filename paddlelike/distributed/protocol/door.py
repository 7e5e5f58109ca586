"""Who may speak to a server: the right job, the right program, of each trainer only the newest session."""

from __future__ import annotations

import hmac
from typing import TypeAlias

from paddlelike.distributed.protocol.messages import Hello, Mode, Reason, Request

__all__ = ["Denial", "Door"]

Denial: TypeAlias = tuple[Reason, str] | None


class Door:
    """What a server knows of those who call it.

    Parameters
    ----------
    trainers, mode, plan, job
        What a caller must agree with.
    lease
        Seconds without a word after which a trainer counts as silent.

    >>> door = Door(trainers=2, mode="sync", plan="p", job="j", lease=30.0, now=0.0)
    >>> hello = Hello(job="j", trainer=1, process=7, session=1, plan="p", mode="sync", trainers=2)
    >>> door.deny_program(hello), door.let_in(hello, 0.0)
    (None, None)
    >>> door.deny_stranger(Hello(job="j", trainer=1, process=6, session=1, plan="p", mode="sync", trainers=2))
    ('fenced', 'a newer process has taken the place of trainer 1')
    """

    def __init__(self, *, trainers: int, mode: Mode, plan: str, job: str, lease: float, now: float) -> None:
        self.trainers, self.mode, self.plan, self.lease = trainers, mode, plan, lease
        self._job = job
        self._started = now
        self._newest: dict[int, tuple[int, int]] = {}  # trainer -> (process, session)
        self._seen: dict[int, float] = {}

    def deny_stranger(self, request: Request) -> Denial:
        """For every request."""
        if not hmac.compare_digest(request.job.encode(), self._job.encode()):
            return "job", "this server belongs to another job"
        if request.trainer >= self.trainers:
            return "trainer", f"trainer {request.trainer} of {self.trainers} (they count from 0)"
        if request.process < self._newest.get(request.trainer, (0, 0))[0]:
            return "fenced", f"a newer process has taken the place of trainer {request.trainer}"
        return None

    def deny_program(self, request: Hello) -> Denial:
        """For those who introduce themselves."""
        if request.mode != self.mode:
            return "mode", f"the trainer's program is {request.mode}, the server's {self.mode}"
        if request.trainers != self.trainers:
            return "trainer", f"{request.trainers} trainers are meant, here {self.trainers}"
        return self.deny_plan(request.plan)

    def deny_plan(self, plan: str) -> Denial:
        """For those who send gradients as well."""
        return (
            None if plan == self.plan else ("plan", "the trainer's program places other rows on this server")
        )

    def let_in(self, request: Hello, now: float) -> Denial:
        """From now on only this session of this process speaks for the trainer."""
        me = (request.process, request.session)
        if me < self._newest.get(request.trainer, me):
            return "stale", "a later session of this process has said Hello"
        self._newest[request.trainer] = me
        self.hear(request, now)
        return None

    def deny_session(self, request: Request) -> Denial:
        """For all but those who introduce themselves."""
        if (request.process, request.session) == self._newest.get(request.trainer):
            return None
        return "stale", "this session has not said Hello, or another one has since"

    def hear(self, request: Request, now: float) -> None:
        """A trainer has given a sign of life."""
        self._seen[request.trainer] = now

    def is_silent(self, trainer: int, now: float) -> bool:
        """Whether a trainer (or its start) has given no sign of life for longer than the lease."""
        return now - self._seen.get(trainer, self._started) > self.lease
