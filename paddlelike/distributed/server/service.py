"""The service of a parameter server: ``exe.run(pserver_program)`` runs it in the caller's thread.

Threads of the wire take gradients into staging and wait for the work of :mod:`.update_threads`.
"""

from __future__ import annotations

import time
from functools import partial
from typing import Any

from paddlelike.core import Array
from paddlelike.core.floats import run_quietly
from paddlelike.distributed.protocol.messages import Push, Reply, Request, Waiting
from paddlelike.distributed.protocol.server.exchanges import Work
from paddlelike.distributed.server.staging import Contribution
from paddlelike.distributed.server.update_threads import Workers
from paddlelike.foundation.threads import Task

_POLL = 0.25  # seconds between two checks for free memory
_LONGEST_WAIT = 1.0  # seconds between two checks whether the trainer of a waiting call was replaced


class Service(Workers):
    """The methods of a server that threads of the wire call; see :class:`.Workers`."""

    def hear(self, request: Request) -> None:
        """Record that a trainer is alive."""
        self.monitor.presence.hear(request.trainer)

    def ask(self, request: Request) -> Reply:
        """Return the protocol's current answer to a request."""
        with self.changed.hold():
            reply: Reply = getattr(self.state, request.verb.lower())(request, time.monotonic())
            self.wake()
        return reply

    def ask_until(self, request: Request, patience: float) -> Reply:
        """Return the protocol's answer; repeat the request while it is Waiting, for ``patience`` seconds.

        A call that completes the round applies it.
        """
        end = time.monotonic() + patience
        while True:
            reply, work = self._ask_or_take_round(request, end)
            if work is None:
                return reply
            run_quietly(self.do, work)  # as in every run

    def _ask_or_take_round(self, request: Request, end: float) -> tuple[Reply, Work | None]:
        """Return the answer, or a round that must be applied first."""
        with self.changed.hold():
            while True:
                now = time.monotonic()
                reply: Reply = getattr(self.state, request.verb.lower())(request, now)
                if not isinstance(reply, Waiting) or now >= end or self.is_stopping:
                    self.wake()
                    return reply, None
                work = self.take_round()
                if work is not None:
                    return reply, work
                self.wake()
                self.changed.wait(min(end - now, _LONGEST_WAIT))

    def take_memory(self, request: Push, patience: float) -> Contribution | Reply:
        """Return memory for a push, or Waiting if there is none for ``patience`` seconds.

        The first trainer that the round waits for gets memory at once, so the round completes and the others
        get memory in turn. Raises the FrameError of :meth:`Staging.take`.
        """
        end = time.monotonic() + patience
        with self.changed.hold():
            # Each trainer has at most one asynchronous update, and they are applied in any order
            while self.mode == "sync" and self.staging.is_full and not self.state.is_next(request.trainer):
                left = end - time.monotonic()
                if left <= 0 or self.is_stopping:
                    return self.state.wait_for_memory(request.trainer, time.monotonic())
                self.changed.wait(min(left, _POLL))  # a broken push frees its memory silently
            return self.staging.take(request.rows)

    def lookup(self, table: str, ids: Array) -> Array:
        """Return the rows (n, width) of ids (n,) in a table. Raises FrameError for ids outside the table."""
        if table in self.served.growing:
            return self.variables.grown(table, ids)
        found = self.served.lookups.get(table)
        if found is None:
            return self.variables.rows(table, ids)
        task: Task[Array] = Task(partial(self.variables.run_lookup, found, ids))
        with self.changed.hold():  # its block adds rows, so the thread that owns the variables runs it
            self.tasks.append(task)
            self.asked.notify_all()  # that thread waits like the others
        return task.result(timeout=60)

    def status(self) -> dict[str, Any]:
        """Return rounds, bytes and silent trainers as plain values, for monitoring."""
        with self.changed.hold():
            return self.monitor.status(self.mode, self.list_remaining())
