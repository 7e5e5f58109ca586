"""A trainer's goal, its current stage, and the requests of that stage."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, Literal

from paddlelike.distributed.protocol.messages import (
    Commit,
    Complete,
    Hello,
    HelloReply,
    Mode,
    Prefetch,
    Pull,
    Push,
    Request,
    Rollback,
    Save,
    Share,
)
from paddlelike.distributed.protocol.trainer.decision import RollBack
from paddlelike.distributed.protocol.trainer.retries import Limits, Link, Outcome, Success
from paddlelike.errors import FaultError

Stage = Literal[
    "push", "commit", "pull", "prefetch", "save", "share", "complete", "leave",  # goals
    "hello", "rollback", "finish", "fetch",  # an agreement
]  # fmt: skip
AGREEING = ("hello", "rollback", "finish", "fetch")


class TrainerRequests:
    """The pending requests of a trainer to its servers; see :class:`.TrainerState`."""

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
        limits: Limits | None = None,
    ) -> None:
        self.trainer, self.trainers, self.process, self.job = trainer, trainers, process, job
        self.endpoints, self.plans, self.mode = tuple(endpoints), tuple(plans), mode
        self.may_roll_back, self.limits = rollback, limits if limits is not None else Limits()
        self.session = self.generation = self.round = 0
        self.has_joined = False
        self._other_run = ""  # the servers' rounds, if they had trained before this process joined
        self.update = 0  # the id of the last update of this process, in the asynchronous modes
        self.manifests: list[Any] = [None for _ in endpoints]  # of the last save
        self.outcome: Outcome | None = Success(0)
        self._saves = self._shares = 0
        self._links = [Link() for _ in endpoints]
        self._ticket = 0
        self._stage: Stage = "hello"
        self._goal: Stage | None = None  # interrupted by an agreement; None: join
        self._details: Any = None  # of the goal
        self._servers: Collection[int] | None = None  # of the goal; None: all
        self._left: set[int] = set()  # other trainers that have ended, by the last Hellos
        self._hellos: dict[int, HelloReply] = {}
        self._rollback = RollBack(0, 0, (), "")
        self._agreeing_since: float | None = None
        self._failure: FaultError | None = None

    def _session_fields(self) -> dict[str, Any]:
        return {"job": self.job, "trainer": self.trainer, "process": self.process, "session": self.session}

    def _request(self, server: int) -> Request:
        stage, fields = self._stage, self._session_fields()
        if stage == "hello":
            return Hello(**fields, plan=self.plans[server], mode=self.mode, trainers=self.trainers)
        if stage == "rollback":
            to, generation = self._rollback.to, self._rollback.generation
            return Rollback(**fields, to=to, generation=generation, completed=self._rollback.completed)
        fields |= {"incarnation": self._links[server].incarnation, "generation": self.generation}
        version = self.round if self.mode == "sync" else None
        current = self.round if self.mode == "sync" else self.update
        if stage == "push":
            return Push(**fields, plan=self.plans[server], number=current)
        if stage in ("commit", "finish"):
            return Commit(**fields, round=self.round, poll=self.limits.poll)
        if stage == "pull":
            return Pull(**fields, version=version, slices=self._details[server])
        if stage == "fetch":
            return Pull(**fields, version=version, slices=None)
        if stage == "prefetch":
            table, count = self._details[server]
            return Prefetch(**fields, table=table, count=count)
        if stage == "save":
            directory, options = self._details
            return Save(**fields, number=self._saves, directory=directory, version=version, options=options)
        if stage == "share":
            return Share(**fields, number=self._shares, size=self._details, poll=self.limits.poll)
        return Complete(**fields, round=current, last=stage == "leave", left=tuple(sorted(self._left)))

    # Helpers

    def _open(self, goal: Stage | None, details: Any = None, servers: Collection[int] | None = None) -> None:
        assert self.outcome is not None, f"{self._goal or 'join'} is still open"
        self.outcome = self._failure
        self._goal, self._details, self._servers = goal, details, servers
        if goal is not None:
            self._begin(goal, servers)

    def _begin(self, stage: Stage, servers: Collection[int] | None = None) -> None:
        self._stage = stage
        for server, link in enumerate(self._links):
            link.begin_stage(done=servers is not None and server not in servers)
        if all(link.done for link in self._links) and self.outcome is None:
            self.outcome = Success(self.round)

    def _fail(self, text: str, *, hint: str | None = None, exit_code: int = FaultError.exit_code) -> None:
        error = FaultError(text, hint=hint)
        error.exit_code = exit_code
        self.outcome = self._failure = error
