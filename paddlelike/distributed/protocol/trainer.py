"""What a trainer calls next, and what an answer or a failure means: no sockets, no threads, no clock.

A trainer has one *goal* at a time (:meth:`TrainerState.join`, :meth:`~TrainerState.push`, ...), which takes
calls to several servers side by side. For each server, whoever drives asks :meth:`TrainerState.next` until
it says Done, under one lock but for the call itself::

    trainer.push(now)
    # for each server i, in a thread of its own:
    while not isinstance(step := trainer.next(i, now), Done):
        if isinstance(step, Call):
            try:
                reply = channel[i].call(step.request, timeout=step.timeout)
            except RemoteError as error:
                trainer.failed(step, str(error), now)
            else:
                trainer.answered(step, reply, now)
        else:
            ...  # sleep until step.until, or until another server's answer changes something
    outcome = trainer.outcome

Every request may be repeated, so a failed call is simply made again until the server's window is over. What a
server says of a restart or a rollback (stale) leads to an agreement: Hello to all, then what
:func:`~paddlelike.distributed.protocol.agreement.decide` says, then a pull of all parameters.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from paddlelike.distributed.protocol.agreement import Again, Back, Close, Finish, Go, Stuck, decide
from paddlelike.distributed.protocol.messages import (
    Beat,
    Commit,
    Complete,
    Hello,
    HelloReply,
    Mode,
    Prefetch,
    Pull,
    Push,
    Refused,
    Reply,
    Request,
    Rollback,
    Save,
    SaveReply,
    Waiting,
)
from paddlelike.distributed.protocol.steps import (
    Call,
    Closed,
    Done,
    Limits,
    Outcome,
    Pause,
    Resumed,
    Step,
    Success,
)
from paddlelike.errors import FaultError

__all__ = [
    "Call",
    "Closed",
    "Done",
    "Limits",
    "Outcome",
    "Pause",
    "Resumed",
    "Step",
    "Success",
    "TrainerState",
]

_Stage = Literal[
    "push", "commit", "pull", "prefetch", "save", "complete", "leave",  # goals
    "hello", "rollback", "finish", "fetch",  # an agreement
]  # fmt: skip
_AGREEING = ("hello", "rollback", "finish", "fetch")
_LAST_WORDS = 5.0  # seconds for a server to hear that this trainer leaves; it may have ended with it
_SAY_HELLO = ("stale", "ahead", "version", "nopush", "checkpoint")  # refusals that an agreement cures


@dataclass(slots=True)
class _Link:
    """How calls to one server go."""

    done: bool = False  # its part of the stage
    ticket: int = 0  # of the call under way; 0: none
    issued: float = 0.0
    failing_since: float | None = None
    failures: int = 0
    busy_since: float | None = None  # since when it says "not yet" in this stage
    retry_at: float = -math.inf
    incarnation: str = ""
    restarted: bool = False  # since this trainer joined


class TrainerState:
    """One trainer's side of the protocol.

    Parameters
    ----------
    process
        Orders the processes of one trainer id: start time in ns.
    endpoints, plans
        Each server's address (for errors) and the digest of what lives there.
    rollback
        Whether to go back to the last checkpoint when a server was restarted; else that is an error. (In
        the asynchronous modes: whether to go on with what the restarted server has loaded.)

    >>> trainer = TrainerState(trainer=0, trainers=1, process=1, endpoints=["h:1"], plans=["p"], mode="sync")
    >>> trainer.join(0.0)
    >>> trainer.next(0, 0.0).request.verb
    'Hello'
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
        limits: Limits | None = None,
    ) -> None:
        self.trainer, self.trainers, self.process, self.job = trainer, trainers, process, job
        self.endpoints, self.plans, self.mode = tuple(endpoints), tuple(plans), mode
        self.may_roll_back, self.limits = rollback, limits if limits is not None else Limits()
        self.session = self.generation = self.round = 0
        self.joined = False
        self.update = 0  # the last one of this process, in the asynchronous modes
        self.manifests: list[Any] = [None for _ in endpoints]  # what the last save brought
        self._saves = 0
        self._links = [_Link() for _ in endpoints]
        self._ticket = 0
        self._stage: _Stage = "hello"
        self._goal: _Stage | None = None  # what an agreement interrupted; None: join
        self._details: Any = None  # of the goal
        self._servers: Collection[int] | None = None  # of the goal; None: all
        self._left: set[int] = set()  # other trainers that have ended, by the last Hellos
        self._hellos: dict[int, HelloReply] = {}
        self._back = Back(0, 0, (), "")
        self._agreeing_since: float | None = None
        self._stop: FaultError | None = None
        self.outcome: Outcome | None = Success(0)

    # Goals. Each is open until `outcome` is not None.

    def join(self, now: float) -> None:
        """Agree with every server, finish what a predecessor began, pull all parameters."""
        self._open(None)
        self._agree(now)

    def push(self, now: float, servers: Collection[int] | None = None) -> None:
        """Stage this round's gradients (async: apply an update) on every server, or (async) on some."""
        self.update += 1
        self._open("push", servers=servers)

    def commit(self, now: float) -> None:
        """The barrier, after push, in sync mode: its replies bring the parameters of the next round."""
        assert self.mode == "sync", "asynchronous trainers push and pull"
        self._open("commit")

    def pull(self, now: float, slices: Sequence[Sequence[int] | None] | None = None) -> None:
        """Pull slices, one entry per server: (): nothing from it; None: all its parameters."""
        wanted = [None if one is None else tuple(one) for one in slices or [None for _ in self.endpoints]]
        self._open("pull", wanted, [server for server, one in enumerate(wanted) if one != ()])

    def prefetch(self, now: float, rows: Sequence[tuple[str, int] | None]) -> None:
        """Fetch rows, one entry per server: (table, number of ids), or None: nothing from it."""
        self._open("prefetch", list(rows), [server for server, one in enumerate(rows) if one is not None])

    def save(self, now: float, directory: str, options: Mapping[str, Any] | None = None) -> None:
        """Let every server write its rows; their parts of the manifest are in ``manifests`` then."""
        self._saves += 1
        self._open("save", (directory, dict(options or {})))

    def complete(self, now: float) -> None:
        """Leave the job: the others go on without this trainer."""
        self._open("complete")

    # Driving

    def next(self, server: int, now: float) -> Step:
        """What to do about one server now; ask for one that has no call under way."""
        link = self._links[server]
        if self.outcome is not None:
            return Done()
        if link.done or link.ticket:
            return Pause(math.inf)
        if link.retry_at > now:
            return Pause(link.retry_at)
        self._ticket += 1
        link.ticket, link.issued = self._ticket, now
        if self._stage == "leave":
            return Call(server, self._request(server), min(self.limits.call, _LAST_WORDS), link.ticket)
        timeout = self.limits.call + (self.limits.poll if self._stage in ("commit", "finish") else 0)
        return Call(server, self._request(server), timeout, link.ticket)

    def answered(self, call: Call, reply: Reply, now: float) -> None:
        """A call brought a reply."""
        link = self._links[call.server]
        if not self._ends(link, call):
            return
        link.failing_since, link.failures = None, 0
        if isinstance(reply, Refused):
            self._refused(call.server, reply, now)
        elif isinstance(reply, Waiting):
            self._wait(call.server, reply, now)
        else:
            if isinstance(reply, HelloReply):
                self._hellos[call.server] = reply
            elif isinstance(reply, SaveReply):
                self.manifests[call.server] = reply.manifest
            self._server_done(link, now)

    def failed(self, call: Call, why: str, now: float) -> None:
        """A call brought no reply: the connection broke or its time was over."""
        link = self._links[call.server]
        if not self._ends(link, call):
            return
        link.failures += 1
        if link.failing_since is None:
            link.failing_since = link.issued
        link.retry_at = now + min(0.05 * 2 ** min(link.failures - 1, 8), 1.0)
        spent = now - link.failing_since
        if self._stage == "leave" and spent >= min(self.limits.window, _LAST_WORDS):
            self._server_done(link, now)
        elif spent >= self.limits.window and link.failures >= self.limits.attempts:
            endpoint, verb = self.endpoints[call.server], call.request.verb
            self._lose(
                f"server {endpoint} did not answer {verb} for {spent:.0f} s ({link.failures} calls): {why}",
                hint="resume from the last save; the patience is FLAGS_rpc_deadline (ms)",
            )

    @property
    def is_leaving(self) -> bool:
        """Whether every server knows that this trainer closes: no fault can call it back."""
        return self._stage == "leave"

    def beat(self) -> Beat:
        """A sign of life, for any server, beside any goal."""
        return Beat(**self._me())

    def beaten(self, server: int, reply: Reply) -> None:
        """What a beat brought back: the news that a newer process has taken this one's place ends it."""
        if isinstance(reply, Refused) and reply.reason == "fenced":
            self._refused(server, reply, 0.0)

    # Requests

    def _me(self) -> dict[str, Any]:
        return {"job": self.job, "trainer": self.trainer, "process": self.process, "session": self.session}

    def _request(self, server: int) -> Request:
        stage, me = self._stage, self._me()
        if stage == "hello":
            return Hello(**me, plan=self.plans[server], mode=self.mode, trainers=self.trainers)
        if stage == "rollback":
            back = self._back
            return Rollback(**me, to=back.to, generation=back.generation, completed=back.completed)
        me |= {"incarnation": self._links[server].incarnation, "generation": self.generation}
        version = self.round if self.mode == "sync" else None
        if stage == "push":
            number = self.round if self.mode == "sync" else self.update
            return Push(**me, plan=self.plans[server], number=number)
        if stage in ("commit", "finish"):
            return Commit(**me, round=self.round, poll=self.limits.poll)
        if stage == "pull":
            return Pull(**me, version=version, slices=self._details[server])
        if stage == "fetch":
            return Pull(**me, version=version, slices=None)
        if stage == "prefetch":
            table, count = self._details[server]
            return Prefetch(**me, table=table, count=count)
        if stage == "save":
            directory, options = self._details
            return Save(**me, number=self._saves, directory=directory, version=version, options=options)
        first = self.round if self.mode == "sync" else self.update
        return Complete(**me, round=first, last=stage == "leave", left=tuple(sorted(self._left)))

    # What replies mean

    def _ends(self, link: _Link, call: Call) -> bool:
        """Whether this is the call under way; one of an earlier stage only frees the link."""
        awaited = link.ticket == call.ticket
        link.ticket = 0 if abs(link.ticket) == call.ticket else link.ticket
        return awaited and self.outcome is None

    def _refused(self, server: int, reply: Refused, now: float) -> None:
        endpoint = self.endpoints[server]
        if self._stage == "leave":
            self._server_done(self._links[server], now)
        elif reply.reason in _SAY_HELLO:
            self._agree(now, after=0.05 if self._stage in _AGREEING else 0.0)
        elif reply.reason == "fenced":
            self._lose(
                f"trainer {self.trainer}: another process has taken its place (says {endpoint})",
                hint="two processes bear this trainer id; the one started later goes on",
            )
        else:
            self._lose(f"server {endpoint} refused trainer {self.trainer}: {reply.text} ({reply.reason})")

    def _wait(self, server: int, reply: Waiting, now: float) -> None:
        link, endpoint = self._links[server], self.endpoints[server]
        link.retry_at = now if reply.missing else now + 0.02
        if link.busy_since is None:
            link.busy_since = link.issued
        spent = now - link.busy_since
        if spent < self.limits.barrier:
            return
        if reply.missing:
            self._lose(
                f"server {endpoint}: round {reply.round} waits for trainers {list(reply.missing)} for "
                f"{spent:.0f} s; no sign of life from {list(reply.silent)}",
                hint="resume from the last save; the patience is FLAGS_worker_update_interval_secs",
            )
        else:
            self._lose(f"server {endpoint} has been busy for {spent:.0f} s: {reply.why}")

    def _server_done(self, link: _Link, now: float) -> None:
        link.done = True
        if all(one.done for one in self._links):
            self._stage_done(now)

    def _stage_done(self, now: float) -> None:
        stage = self._stage
        if stage == "hello":
            self._take_hellos(now)
        elif stage == "rollback":
            self._agree(now)
        elif stage == "finish":
            self.round += 1
            self._agreed()
        elif stage == "fetch":
            self._agreed()
        elif stage == "complete":
            self._begin("leave")
        elif stage == "leave" and self._goal is None:
            self.outcome = Closed(self.round)
        else:
            self.round += stage == "commit"
            self._agreeing_since = None
            self.outcome = Success(self.round)

    # Agreements

    def _agree(self, now: float, *, after: float = 0.0, why: str = "") -> None:
        """Hello to all, under a new session: what this process sent before is stale from then on."""
        if self._agreeing_since is None:
            self._agreeing_since = now
        patience = max(self.limits.window, self.limits.barrier)
        if now - self._agreeing_since > patience:
            self._lose(f"no agreement between {', '.join(self.endpoints)} within {patience:.0f} s: {why}")
            return
        self.session += 1
        self._hellos = {}
        self._begin("hello")
        for link in self._links:
            link.retry_at = max(link.retry_at, now + after)

    def _take_hellos(self, now: float) -> None:
        hellos = [self._hellos[server] for server in range(len(self.endpoints))]
        for link, hello in zip(self._links, hellos, strict=True):
            link.restarted |= link.incarnation not in ("", hello.incarnation)
            link.incarnation = hello.incarnation
        self._left = {trainer for hello in hellos for trainer in hello.left} - {self.trainer}
        self._check_restarts(hellos)
        if self.outcome is not None:
            return
        if self.mode != "sync":
            self._resume_updates(hellos)
            return
        decision = decide(self.trainer, self.endpoints, hellos)
        if isinstance(decision, Again):
            self._agree(now, after=0.1, why=decision.why)
        elif isinstance(decision, Stuck):
            self._lose(decision.why)
        elif isinstance(decision, Back):
            self._go_back(decision)
        else:
            self.generation = hellos[0].generation
            self.round = decision.round
            stages: dict[type, _Stage] = {Go: "fetch", Finish: "finish", Close: "complete"}
            self._begin(stages[type(decision)])

    def _check_restarts(self, hellos: Sequence[HelloReply]) -> None:
        restarted = [e for e, link in zip(self.endpoints, self._links, strict=True) if link.restarted]
        if self.joined and restarted and not self.may_roll_back:
            stands = ", ".join(f"{e} at {h.round}" for e, h in zip(self.endpoints, hellos, strict=True))
            self._lose(
                f"server {', '.join(restarted)} was restarted; the servers' rounds are now: {stands}",
                hint="start the job again from its last save, or choose to roll back",
            )

    def _go_back(self, back: Back) -> None:
        if self.may_roll_back:
            self._back = back
            self._begin("rollback")
        else:
            self._lose(back.why, hint="start all servers and trainers again from the last save")

    def _resume_updates(self, hellos: Sequence[HelloReply]) -> None:
        """Asynchronous: servers count for themselves; what was interrupted goes on."""
        self.generation = hellos[0].generation
        if self._goal is None:
            self._begin("complete" if self._is_closed(hellos) else "fetch")
        else:
            self._agreeing_since = None
            self._begin(self._goal, self._servers)

    def _is_closed(self, hellos: Sequence[HelloReply]) -> bool:
        return any(self.trainer in dict(one.completed) for one in hellos)

    def _agreed(self) -> None:
        self._agreeing_since = None
        self.joined = True
        for link in self._links:
            link.restarted = False
        self.outcome = Success(self.round) if self._goal is None else Resumed(self.round)

    # Helpers

    def _open(self, goal: _Stage | None, details: Any = None, servers: Collection[int] | None = None) -> None:
        assert self.outcome is not None, f"{self._goal or 'join'} is still open"
        self.outcome = self._stop
        self._goal, self._details, self._servers = goal, details, servers
        if goal is not None:
            self._begin(goal, servers)

    def _begin(self, stage: _Stage, servers: Collection[int] | None = None) -> None:
        self._stage = stage
        for server, link in enumerate(self._links):
            link.done = servers is not None and server not in servers
            link.ticket = -abs(link.ticket)  # a call under way is abandoned, but must end before the next
            link.busy_since = None
        if all(link.done for link in self._links) and self.outcome is None:
            self.outcome = Success(self.round)

    def _lose(self, text: str, *, hint: str | None = None) -> None:
        self.outcome = self._stop = FaultError(text, hint=hint)
