"""The trainer's side of the protocol: what to call next, and what a reply or a failure means.

A trainer has one *goal* at a time (:meth:`TrainerState.join`, :meth:`~TrainerState.push`, ...), which takes
calls to several servers in parallel. For each server, the caller asks :meth:`TrainerState.next_step` until
it returns Done, under one lock except for the call itself::

    trainer.push(now)
    # for each server i, in a thread of its own:
    while not isinstance(step := trainer.next_step(i, now), Done):
        if isinstance(step, Call):
            try:
                reply = channel[i].call(step.request, timeout=step.timeout)
            except RemoteError as error:
                trainer.fail_call(step, str(error), now)
            else:
                trainer.take_reply(step, reply, now)
        else:
            ...  # sleep until step.until, or until another server's reply changes the state
    outcome = trainer.outcome

Every request may be repeated, so a failed call is made again until the server's window is over. A reply that
tells of a restart or a rollback (stale) leads to an agreement: Hello to all, then the decision of
:func:`~paddlelike.distributed.protocol.agreement.decide`, then a pull of all parameters.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Literal

from paddlelike.distributed.protocol.agreement import (
    Adopt,
    Conflict,
    Finish,
    Leave,
    Mismatch,
    Proceed,
    Retry,
    RollBack,
    decide,
    describe_rounds,
)
from paddlelike.distributed.protocol.links import Link
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
    Share,
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

__all__ = ["TrainerState"]

_Stage = Literal[
    "push", "commit", "pull", "prefetch", "save", "share", "complete", "leave",  # goals
    "hello", "rollback", "finish", "fetch",  # an agreement
]  # fmt: skip
_AGREEING = ("hello", "rollback", "finish", "fetch")
_LAST_CALL = 5.0  # seconds for the last call to a server, which may have ended with the job
_SAY_HELLO = ("stale", "ahead", "version", "nopush", "checkpoint")  # refusals that lead to an agreement


class TrainerState:
    """One trainer's side of the protocol.

    Parameters
    ----------
    process
        Orders the processes of one trainer id: start time in ns.
    endpoints, plans
        Each server's endpoint (for errors) and the digest of its table.
    rollback
        Whether to return to the last checkpoint when a server was restarted; else that is an error. (In
        the asynchronous modes: whether to continue with the parameters that the restarted server loaded.)

    >>> trainer = TrainerState(trainer=0, trainers=1, process=1, endpoints=["h:1"], plans=["p"], mode="sync")
    >>> trainer.join(0.0)
    >>> trainer.next_step(0, 0.0).request.verb
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
        self.has_joined = False
        self._other_run = ""  # where the servers had trained before this process joined: their rounds
        self.update = 0  # the id of the last update of this process, in the asynchronous modes
        self.manifests: list[Any] = [None for _ in endpoints]  # of the last save
        self.outcome: Outcome | None = Success(0)
        self._saves = self._shares = 0
        self._links = [Link() for _ in endpoints]
        self._ticket = 0
        self._stage: _Stage = "hello"
        self._goal: _Stage | None = None  # interrupted by an agreement; None: join
        self._details: Any = None  # of the goal
        self._servers: Collection[int] | None = None  # of the goal; None: all
        self._left: set[int] = set()  # other trainers that have ended, by the last Hellos
        self._hellos: dict[int, HelloReply] = {}
        self._rollback = RollBack(0, 0, (), "")
        self._agreeing_since: float | None = None
        self._failure: FaultError | None = None

    # Goals. Each is open until `outcome` is not None.

    def join(self, now: float) -> None:
        """Agree with every server, finish what a predecessor began, pull all parameters."""
        self._open(None)
        self._agree(now)

    def push(
        self, now: float, servers: Collection[int] | None = None, *, follows_servers: bool = True
    ) -> None:
        """Stage this round's gradients (async: apply an update) on every server, or (async) on some.

        A process that joined servers in the middle of their training fails here unless ``follows_servers``:
        a script that counts steps by itself resumes from a save, and the servers are at a later round.
        """
        self.update += 1
        self._open("push", servers=servers)
        if self._other_run and not follows_servers:
            self._fail(
                f"trainer {self.trainer} counts its steps by itself, and it joined servers that had trained "
                f"before: {self._other_run}. They belong to another run",
                hint="end the servers and start all processes from the same save; or loop over "
                "paddlelike.distributed.resumable_steps, which begins at the servers' round",
            )
        self._other_run = ""

    def withdraw(self) -> None:
        """Give up a push under way; of one that is not complete on any server nothing has taken effect."""
        if self.outcome is None:
            self.outcome = Success(self.round)
            for link in self._links:
                link.begin_stage(done=True)

    def commit(self, now: float) -> None:
        """Wait at the barrier after a push (sync); the replies bring the parameters of the next round."""
        assert self.mode == "sync", "asynchronous trainers push and pull"
        self._open("commit")

    def pull(self, now: float, slices: Sequence[Sequence[int] | None] | None = None) -> None:
        """Pull slices, one entry per server: (): none; None: all its parameters."""
        wanted = [None if one is None else tuple(one) for one in slices or [None for _ in self.endpoints]]
        self._open("pull", wanted, [server for server, one in enumerate(wanted) if one != ()])

    def prefetch(self, now: float, rows: Sequence[tuple[str, int] | None]) -> None:
        """Fetch rows, one entry per server: (table, count of ids); None: none."""
        self._open("prefetch", list(rows), [server for server, one in enumerate(rows) if one is not None])

    def save(self, now: float, directory: str, options: Mapping[str, Any] | None = None) -> None:
        """Let every server write its rows; afterwards ``manifests`` holds their parts of the manifest."""
        self._saves += 1
        self._open("save", (directory, dict(options or {})))

    def share(self, now: float, size: int) -> None:
        """Give a text of ``size`` bytes to all trainers, through the first server, and get theirs."""
        self._shares += 1
        self._open("share", size, [0])

    def complete(self, now: float) -> None:
        """Leave the job: the others continue without this trainer."""
        self._open("complete")

    # Driving

    def next_step(self, server: int, now: float) -> Step:
        """Return what to do about one server now; ask for one that has no call under way."""
        link = self._links[server]
        if self.outcome is not None:
            return Done()
        if link.done or link.ticket:
            return Pause(math.inf)
        if link.retry_at > now:
            return Pause(link.retry_at)
        self._ticket += 1
        link.begin_call(self._ticket, now)
        timeout = self.limits.call + (self.limits.poll if self._stage in ("commit", "finish", "share") else 0)
        if self._stage == "leave":
            timeout = min(self.limits.call, _LAST_CALL)
        return Call(server, self._request(server), timeout, link.ticket)

    def take_reply(self, call: Call, reply: Reply, now: float) -> None:
        """Take the reply of a call."""
        link = self._links[call.server]
        if not self._end_call(link, call):
            return
        link.record_reply()
        if isinstance(reply, Refused):
            self._handle_refusal(call.server, reply, now)
        elif isinstance(reply, Waiting):
            self._handle_wait(call.server, reply, now)
        else:
            if isinstance(reply, HelloReply):
                self._hellos[call.server] = reply
            elif isinstance(reply, SaveReply):
                self.manifests[call.server] = reply.manifest
            self._end_part(link, now)

    def fail_call(self, call: Call, why: str, now: float) -> None:
        """Note that a call brought no reply: the connection broke or its time was over."""
        link = self._links[call.server]
        if not self._end_call(link, call):
            return
        spent = link.record_failure(now, call.timeout)
        if self._stage == "leave" and spent >= min(self.limits.window, _LAST_CALL):
            self._end_part(link, now)
        elif spent >= self.limits.window and link.failures >= self.limits.attempts:
            endpoint, verb = self.endpoints[call.server], call.request.verb
            self._fail(
                f"server {endpoint} did not answer {verb} for {spent:.0f} s ({link.failures} calls): {why}",
                hint="resume from the last save; FLAGS_rpc_deadline (ms) is how long a trainer waits",
            )

    @property
    def is_leaving(self) -> bool:
        """Whether every server knows that this trainer leaves: no fault can call it back."""
        return self._stage == "leave"

    def make_beat(self) -> Beat:
        """Return a heartbeat, which may be sent to any server beside any goal."""
        return Beat(**self._session_fields())

    def take_beat_reply(self, server: int, reply: Reply) -> None:
        """Take the reply to a heartbeat; a refusal of a process that was replaced ends it."""
        if isinstance(reply, Refused) and reply.reason == "fenced":
            self._handle_refusal(server, reply, 0.0)

    # Requests

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

    # Replies

    def _end_call(self, link: Link, call: Call) -> bool:
        """Return whether a call that has ended is of this stage, and the goal is open."""
        return link.end_call(call.ticket) and self.outcome is None

    def _handle_refusal(self, server: int, reply: Refused, now: float) -> None:
        endpoint = self.endpoints[server]
        if self._stage == "leave":
            self._end_part(self._links[server], now)
        elif reply.reason in _SAY_HELLO:
            self._agree(now, after=0.05 if self._stage in _AGREEING else 0.0)
        elif reply.reason == "fenced":
            self._fail(
                f"trainer {self.trainer}: another process has taken its place (says {endpoint})",
                hint="two processes have this trainer id; the one that started later continues",
            )
        else:
            self._fail(f"server {endpoint} refused trainer {self.trainer}: {reply.text} ({reply.reason})")

    def _handle_wait(self, server: int, reply: Waiting, now: float) -> None:
        endpoint = self.endpoints[server]
        spent = self._links[server].record_wait(now, 0.0 if reply.missing else 0.02)
        if spent < self.limits.barrier:
            return
        if reply.missing:
            self._fail(
                f"server {endpoint}: round {reply.round} waits for trainers {list(reply.missing)} for "
                f"{spent:.0f} s; no sign of life from {list(reply.silent)}",
                hint="resume from the last save; FLAGS_worker_update_interval_secs is how long trainers wait",
            )
        else:
            self._fail(f"server {endpoint} has been busy for {spent:.0f} s: {reply.why}")

    def _end_part(self, link: Link, now: float) -> None:
        """Note that a server has done its part of the stage."""
        link.done = True
        if all(one.done for one in self._links):
            self._end_stage(now)

    def _end_stage(self, now: float) -> None:
        stage = self._stage
        if stage == "hello":
            self._take_hellos(now)
        elif stage == "rollback":
            self._agree(now)
        elif stage == "finish":
            self.round += 1
            self._end_agreement()
        elif stage == "fetch":
            self._end_agreement()
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
        """Say Hello to all in a new session; requests of this process's earlier sessions are stale then."""
        if self._agreeing_since is None:
            self._agreeing_since = now
        patience = max(self.limits.window, self.limits.barrier)
        if now - self._agreeing_since > patience:
            self._fail(f"no agreement between {', '.join(self.endpoints)} within {patience:.0f} s: {why}")
            return
        self.session += 1
        self._hellos = {}
        self._begin("hello")
        for link in self._links:
            link.retry_at = max(link.retry_at, now + after)

    def _take_hellos(self, now: float) -> None:
        hellos = [self._hellos[server] for server in range(len(self.endpoints))]
        for link, hello in zip(self._links, hellos, strict=True):
            link.record_incarnation(hello.incarnation)
        self._left = {trainer for hello in hellos for trainer in hello.left} - {self.trainer}
        self._check_restarts(hellos)
        if self.outcome is not None:
            return
        if self.mode != "sync":
            self._resume_updates(hellos)
            return
        decision = decide(self.trainer, self.endpoints, hellos)
        if isinstance(decision, Retry):
            self._agree(now, after=0.1, why=decision.why)
        elif isinstance(decision, Conflict):
            self._fail(decision.why, hint="start all servers and trainers again from the last save")
        elif isinstance(decision, Mismatch):
            self._fail(decision.why, hint="load the same save on every server", exit_code=1)
        elif isinstance(decision, Adopt):
            self._rollback = RollBack(decision.round, decision.generation, (), "")
            self._begin("rollback")
        elif isinstance(decision, RollBack):
            self._roll_back(decision)
        else:
            if not self.has_joined and any(hello.round > hello.base for hello in hellos):
                self._other_run = ", ".join(
                    f"{endpoint} began at round {hello.base} and is at round {hello.round}"
                    for endpoint, hello in zip(self.endpoints, hellos, strict=True)
                )
            self.generation = hellos[0].generation
            self.round = decision.round
            stages: dict[type, _Stage] = {Proceed: "fetch", Finish: "finish", Leave: "complete"}
            self._begin(stages[type(decision)])

    def _check_restarts(self, hellos: Sequence[HelloReply]) -> None:
        restarted = [e for e, link in zip(self.endpoints, self._links, strict=True) if link.restarted]
        if self.has_joined and restarted and not self.may_roll_back:
            self._fail(
                f"server {', '.join(restarted)} was restarted; now there are "
                f"{describe_rounds(self.endpoints, hellos)}",
                hint="start the job again from its last save, or set PADDLELIKE_RESUME_POLICY=rollback",
            )

    def _roll_back(self, decision: RollBack) -> None:
        if self.may_roll_back:
            self._rollback = decision
            self._begin("rollback")
        else:
            self._fail(decision.why, hint="start all servers and trainers again from the last save")

    def _resume_updates(self, hellos: Sequence[HelloReply]) -> None:
        """Continue with the interrupted goal (async): each server counts its own updates."""
        self.generation = hellos[0].generation
        if self._goal is None:
            has_left = any(self.trainer in dict(hello.completed) for hello in hellos)
            self._begin("complete" if has_left else "fetch")
        else:
            self._agreeing_since = None
            self._begin(self._goal, self._servers)

    def _end_agreement(self) -> None:
        self._agreeing_since = None
        self.has_joined = True
        for link in self._links:
            link.restarted = False
        self.outcome = Success(self.round) if self._goal is None else Resumed(self.round)

    # Helpers

    def _open(self, goal: _Stage | None, details: Any = None, servers: Collection[int] | None = None) -> None:
        assert self.outcome is not None, f"{self._goal or 'join'} is still open"
        self.outcome = self._failure
        self._goal, self._details, self._servers = goal, details, servers
        if goal is not None:
            self._begin(goal, servers)

    def _begin(self, stage: _Stage, servers: Collection[int] | None = None) -> None:
        self._stage = stage
        for server, link in enumerate(self._links):
            link.begin_stage(done=servers is not None and server not in servers)
        if all(link.done for link in self._links) and self.outcome is None:
            self.outcome = Success(self.round)

    def _fail(self, text: str, *, hint: str | None = None, exit_code: int = FaultError.exit_code) -> None:
        error = FaultError(text, hint=hint)
        error.exit_code = exit_code
        self.outcome = self._failure = error
