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

Every request may be repeated, so a failed call is made again until the server's window is over. A stale
reply, after a restart or a rollback, leads to an agreement: Hello to all, then the decision of
:func:`~paddlelike.distributed.protocol.trainer.decision.decide`, then a pull of all parameters.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from paddlelike.distributed.protocol.messages import Beat, HelloReply, Refused, Reply, SaveReply, Waiting
from paddlelike.distributed.protocol.trainer.agreements import TrainerAgreements
from paddlelike.distributed.protocol.trainer.requests import AGREEING
from paddlelike.distributed.protocol.trainer.retries import Call, Closed, Done, Link, Pause, Step, Success

_LAST_CALL = 5.0  # seconds for the last call to a server, which may have ended with the job
_SAY_HELLO = ("stale", "ahead", "version", "nopush", "checkpoint")  # refusals that lead to an agreement


class TrainerState(TrainerAgreements):
    """One trainer's side of the protocol.

    Parameters
    ----------
    process
        The start time of the process in ns, which orders the processes of one trainer id.
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

    @property
    def servers(self) -> list[str]:
        """The incarnation of each server."""
        return [link.incarnation for link in self._links]

    # Goals. Each is open until `outcome` is not None.

    def join(self, now: float) -> None:
        """Agree with every server, finish the round of a predecessor, pull all parameters."""
        self._open(None)
        self._agree(now)

    def push(
        self, now: float, servers: Collection[int] | None = None, *, follows_servers: bool = True
    ) -> None:
        """Stage this round's gradients on every server; in async mode apply an update on all or some servers.

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
        """Give up a push; a push that is not complete on any server has had no effect."""
        if self.outcome is None:
            self.outcome = Success(self.round)
            for link in self._links:
                link.begin_stage(done=True)

    def commit(self, now: float) -> None:
        """Wait at the barrier after a push (sync); the replies bring the parameters of the next round."""
        assert self.mode == "sync", "asynchronous trainers push and pull"
        self._open("commit")

    def pull(self, now: float, slices: Sequence[Sequence[int] | None] | None = None) -> None:
        """Pull slices, one entry per server: ``()`` for no slice, None for all its parameters."""
        wanted = [None if one is None else tuple(one) for one in slices or [None for _ in self.endpoints]]
        self._open("pull", wanted, [server for server, one in enumerate(wanted) if one != ()])

    def prefetch(self, now: float, rows: Sequence[tuple[str, int] | None]) -> None:
        """Fetch rows, one entry per server: (table, number of ids), or None for no rows."""
        self._open("prefetch", list(rows), [server for server, one in enumerate(rows) if one is not None])

    def save(self, now: float, directory: str, options: Mapping[str, Any] | None = None) -> None:
        """Let every server write its rows; afterwards ``manifests`` holds their parts of the manifest."""
        self._saves += 1
        self._open("save", (directory, dict(options or {})))

    def share(self, now: float, size: int) -> None:
        """Exchange a text of ``size`` bytes with all trainers, through the first server."""
        self._shares += 1
        self._open("share", size, [0])

    def complete(self, now: float) -> None:
        """Leave the job: the others continue without this trainer."""
        self._open("complete")

    # Driving

    def next_step(self, server: int, now: float) -> Step:
        """Return the next step for one server. The server must have no call in progress."""
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

    def is_done(self, server: int) -> bool:
        """Return whether the goal needs no further call to a server."""
        return self.outcome is not None or self._links[server].done

    def take_reply(self, call: Call, reply: Reply, now: float) -> None:
        """Process the reply to a call."""
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
        """Record that a call got no reply, because the connection broke or the time limit passed."""
        link = self._links[call.server]
        if not self._end_call(link, call):
            return
        spent = link.record_failure(now, call.timeout)
        if self._stage == "leave" and spent >= min(self.limits.window, _LAST_CALL):
            self._end_part(link, now)
        # D15
        elif spent >= self.limits.window and link.failures >= self.limits.attempts:
            endpoint, verb = self.endpoints[call.server], call.request.verb
            self._fail(
                f"server {endpoint} did not answer {verb} for {spent:.0f} s ({link.failures} calls): {why}",
                hint="resume from the last save; FLAGS_rpc_deadline (ms) is how long a trainer waits",
            )

    @property
    def is_leaving(self) -> bool:
        """Whether every server has recorded that this trainer leaves, so that no fault can require it
        again.
        """
        return self._stage == "leave"

    def make_beat(self) -> Beat:
        """Return a heartbeat; it may be sent to any server during any goal."""
        return Beat(**self._session_fields())

    def take_beat_reply(self, server: int, reply: Reply) -> None:
        """Process the reply to a heartbeat. If it says that the process was replaced, the process ends."""
        if isinstance(reply, Refused) and reply.reason == "fenced":
            self._handle_refusal(server, reply, 0.0)

    # Replies

    def _end_call(self, link: Link, call: Call) -> bool:
        """Return whether an ended call belongs to this stage of an open goal."""
        return link.end_call(call.ticket) and self.outcome is None

    def _handle_refusal(self, server: int, reply: Refused, now: float) -> None:
        endpoint = self.endpoints[server]
        if self._stage == "leave":
            self._end_part(self._links[server], now)
        elif reply.reason in _SAY_HELLO:
            self._agree(now, after=0.05 if self._stage in AGREEING else 0.0)
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
        # D15
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
        """Record that a server has finished this stage."""
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
