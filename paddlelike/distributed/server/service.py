"""The service of a parameter server: ``exe.run(pserver_program)`` runs it in the caller's thread.

Threads of the wire take gradients into staging and wait. The thread that called owns the variables: it runs
the program's blocks on what was staged and publishes the new version, when
:mod:`paddlelike.distributed.protocol` says so.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

import numpy as np

from paddlelike.distributed.placement import Kind, Placement
from paddlelike.distributed.protocol.messages import Mode, Push, Reply, Request, Save, Waiting
from paddlelike.distributed.protocol.server import ServerState
from paddlelike.distributed.protocol.server.work import Apply, Merge, Work, Write
from paddlelike.distributed.server.monitor import Monitor
from paddlelike.distributed.server.position import empty_load, read_position
from paddlelike.distributed.server.rollback import RollbackPoints
from paddlelike.distributed.server.save_roots import check_save_directory
from paddlelike.distributed.server.served import Served
from paddlelike.distributed.server.staging import Contribution, Staging
from paddlelike.distributed.server.variables import Variables
from paddlelike.distributed.server.writing import write_rows
from paddlelike.distributed.settings import Settings
from paddlelike.errors import OperatorError, SaveError
from paddlelike.framework.opdef import Context

__all__ = ["Service"]

Array = np.ndarray[Any, Any]
Task = tuple[Callable[[], Any], Future[Any]]

_log = logging.getLogger("paddlelike.distributed")

_STATE = (Kind.OPTIMIZER, Kind.AVERAGE, Kind.SCHEDULE)

#: Bytes of gradients that a server holds before it lets further trainers of a round wait. Small models are
#: far below it; of large ones each trainer's gradients are added to the sum as they come.
STAGED = 256 << 20
APPLIERS = 4  #: threads that apply asynchronous updates at most; numpy works on several processors at once

_POLL = 0.25  # seconds between two looks at whether a signal came
_LONGEST_WAIT = 1.0  # seconds in which a call that waits finds that its trainer was replaced
_LAST_WORDS = 3.0  # seconds in which trainers are told that this server failed


class Service:
    """What the threads of one server share.

    One lock guards ``state``. ``asked`` wakes the thread that owns the variables, ``changed`` those that wait
    for what it does: a call that comes in wakes no other call.

    Raises
    ------
    NotInitializedError
        A variable has no value; names the endpoint.
    """

    def __init__(self, ctx: Context, settings: Settings) -> None:
        self._ctx = ctx
        self.served = Served(ctx.op)  # type: ignore[arg-type]
        self.mode: Mode = "sync" if self.served.is_synchronous else "async"
        self.staging = Staging(self.served.table, self.served.sparse, most=STAGED)
        self.variables = Variables(ctx, self.served)
        lock = threading.RLock()
        self.asked, self.changed = threading.Condition(lock), threading.Condition(lock)
        loaded = self._find_loaded_directory()
        position = self._read_position(loaded)
        self._points = self._find_points(settings) if settings.rollback else None
        self._tasks: deque[Task] = deque()
        self.monitor = Monitor(self.served.endpoint, self.served.trainers, settings)
        self._save_roots = settings.save_roots
        self._stopping = False
        self._has_ended = False  # the thread that owns the variables has nothing more to do
        self._error: Exception | None = None  # of another thread that applied updates
        self.state = ServerState(
            incarnation=f"{os.getpid()}.{time.time_ns()}",
            trainers=self.served.trainers,
            mode=self.mode,
            plan=self.served.table.digest,
            job=settings.job,
            now=time.monotonic(),
            saved=position,
            adopts="round" not in position and (loaded is not None or not self.served.table.entries),
            lease=settings.lease,
            checkpoints=tuple if self._points is None else self._points.rounds,
        )

    def _find_loaded_directory(self) -> str | None:
        """Return the directory that this server's parameters were loaded from; None: they were not.

        A server without parameters goes by its optimizer state and schedules, one without any variable by
        the directory that it was told to load.
        """
        states = [e.name for e in self.served.table.having(*_STATE)]
        names = list(self.served.parameters.values()) or states
        holders = [self._ctx.scope.find_var(name) for name in names]
        origins = {holder.origin for holder in holders if holder is not None and holder.value is not None}
        return (origins.pop() if len(origins) == 1 else None) if names else empty_load(self._ctx.scope)

    def _read_position(self, directory: str | None) -> dict[str, Any]:
        """Return the training position of a directory, {} if it has none.

        Which trainers had finished by then does not count: the trainers of this job are others.
        """
        position = None if directory is None else read_position(directory, self.served.endpoint)
        return {key: value for key, value in (position or {}).items() if key in ("round", "updates")}

    def _find_points(self, settings: Settings) -> RollbackPoints:
        names = [entry.name for entry in self.served.table if entry.kind != Kind.GRADIENT]
        names += [name for counts in self.served.counters.values() for name in counts.values()]
        return RollbackPoints(
            self._ctx.scope,
            names,
            program=self.served.op.block.program,
            endpoint=self.served.endpoint,
            root=settings.checkpoints,
            start=lambda: self.state.start,
        )

    # The thread that owns the variables

    def run(self) -> None:
        """Work until every trainer has left or :meth:`stop` is called.

        Raises
        ------
        OperatorError
            A round could not be applied; names the endpoint.
        FaultError
            No trainer that has not finished has given a sign of life for FLAGS_worker_update_interval_secs.
        """
        appliers = self._start_appliers()
        try:
            while (work := self._next(is_owner=True)) is not None:
                self._do(work)
        finally:
            with self.changed:
                self._has_ended = True
                self.asked.notify_all()
                self.changed.notify_all()
            for applier in appliers:
                applier.join()
        if self._error is not None:
            raise self._error

    def _start_appliers(self) -> list[threading.Thread]:
        """Start the threads that apply asynchronous updates beside the one that owns the variables."""
        most = 1 if self.mode == "sync" else min(self.served.trainers, os.cpu_count() or 1, APPLIERS)
        threads = [
            threading.Thread(target=self._apply_updates, name="paddlelike-apply", daemon=True)
            for _ in range(most - 1)
        ]
        for thread in threads:
            thread.start()
        return threads

    def _apply_updates(self) -> None:
        with np.errstate(all="ignore"):  # as in every run
            try:
                while (work := self._next(is_owner=False)) is not None:
                    self._do(work)
            except Exception as error:
                with self.changed:
                    self._error = self._error or error
                    self.asked.notify_all()

    def stop(self) -> None:
        """Let :meth:`run` return soon."""
        self._stopping = True

    def _next(self, *, is_owner: bool) -> Work | Merge | Task | None:
        with self.changed:
            while not (self._stopping or self._has_ended or self._error is not None):
                if is_owner:
                    self.monitor.check(self.state.round, self._remaining())
                if is_owner and self._tasks:
                    return self._tasks.popleft()
                work = self.state.take_work() or self.state.find_merge()
                if work is not None:
                    return work
                if is_owner and self.state.may_end(time.monotonic()):
                    break
                self.asked.wait(_POLL)
        return None

    def _remaining(self) -> list[int]:
        """Return the trainers that have not finished."""
        return [one for one in range(self.served.trainers) if one not in self.state.completed]

    def _do(self, work: Work | Merge | Task) -> None:
        if isinstance(work, tuple):
            task, future = work
            try:
                future.set_result(task())
            except Exception as error:
                future.set_exception(error)
            return
        if isinstance(work, Merge):
            trainer, contribution = work.other
            work.into[1].merge(trainer, contribution)
            with self.changed:
                self.state.end_merge(work)
                self.staging.give_back(contribution)
                self.changed.notify_all()
            return
        try:
            answer = self._perform(work)
        except Exception as error:
            self._fail(work, error)
            return
        with self.changed:
            if isinstance(work, Write):
                self.state.end_write(work, answer)
            else:
                self.state.end_apply(work)
            if isinstance(work, Apply):
                self.monitor.rounds += 1
                for _, contribution in work.contributions:
                    self.staging.give_back(contribution)
            self.changed.notify_all()

    def _fail(self, work: Work, error: Exception) -> None:
        """Report failed work; after a round that failed the variables are of no round, so the server ends."""
        with self.changed:
            self.state.fail_work(work, f"{type(error).__name__}: {error}")
            self.changed.notify_all()
        _log.exception("%s: %s failed", self.served.endpoint, type(work).__name__)
        if isinstance(work, Apply):
            time.sleep(_LAST_WORDS)
            raise OperatorError(
                f"the server at {self.served.endpoint} failed in round {self.state.round}: "
                f"{getattr(error, 'message', error)}",
                hint=getattr(error, "hint", None),
            ) from error

    def _perform(self, work: Work) -> dict[str, Any]:
        """Do the work; return the answer to a save."""
        if isinstance(work, Write):
            return self._write(work.request)
        if isinstance(work, Apply):
            self._apply(work)
        else:
            assert self._points is not None
            self._points.restore(work.round)
            self.variables.reread()
        return {}

    def _write(self, request: Save) -> dict[str, Any]:
        """Write this server's rows of the files named; without names only report the training position."""
        answer: dict[str, Any] = {"position": self.state.position()}
        names = request.options.get("names", [])
        if names:
            placement = self.served.op.block.program._parameters_on_pservers
            if not isinstance(placement, Placement):
                raise SaveError(
                    f"the server at {self.served.endpoint} cannot write rows: its program has no placement",
                    hint="serve the program of get_pserver_program(), or save without by_servers=",
                )
            check_save_directory(request.directory, self._save_roots, self.served.endpoint)
            slices = placement.on(self.served.endpoint)
            answer |= write_rows(self._ctx.scope, slices, request.directory, names)
        return answer

    def _apply(self, work: Apply) -> None:
        if self.mode == "sync":
            self.variables.apply_round(dict(work.contributions))
        else:
            ((trainer, contribution),) = work.contributions
            self.variables.apply_update(trainer, contribution)

    # The threads of the wire

    def hear(self, request: Request) -> None:
        """Note that a trainer is alive."""
        self.monitor.presence.hear(request.trainer)

    def ask(self, request: Request) -> Reply:
        """Return what the protocol answers now."""
        with self.changed:
            reply: Reply = getattr(self.state, request.verb.lower())(request, time.monotonic())
            self.wake()
        return reply

    def wake(self) -> None:
        """Wake the thread that owns the variables, if there is work for it. Called under the lock."""
        if self.state.has_work or self.state.is_finished or self.state.find_merge() is not None:
            self.asked.notify_all()

    def ask_until(self, request: Request, patience: float) -> Reply:
        """Return what the protocol answers, asked again while it says Waiting, for ``patience`` seconds."""
        end = time.monotonic() + patience
        with self.changed:
            while True:
                reply = self.ask(request)
                left = end - time.monotonic()
                if not isinstance(reply, Waiting) or left <= 0 or self._stopping:
                    return reply
                self.changed.wait(min(left, _LONGEST_WAIT))

    def take_memory(self, request: Push, patience: float) -> Contribution | Reply:
        """Return memory for a push; or Waiting, where there is none for ``patience`` seconds.

        The first trainer that the round waits for gets memory at once, so that those behind it do in the end.
        Raises FrameError as :meth:`Staging.take`.
        """
        end = time.monotonic() + patience
        with self.changed:
            # Asynchronous updates are at most one of each trainer, and are applied in any order
            while self.mode == "sync" and self.staging.is_full and not self.state.is_next(request.trainer):
                left = end - time.monotonic()
                if left <= 0 or self._stopping:
                    return self.state.wait_for_memory(request.trainer, time.monotonic())
                self.changed.wait(min(left, _POLL))  # a push that broke off gives its memory back in silence
            return self.staging.take(request.rows)

    def lookup(self, table: str, ids: Array) -> Array:
        """Return the rows (n, width) of ids (n,) in a table. Raises FrameError for ids outside of it."""
        found = self.served.lookups.get(table)
        if found is None:
            return self.variables.rows(table, ids)
        future: Future[Array] = Future()
        with self.changed:  # its block adds rows, so the thread that owns the variables runs it
            self._tasks.append((lambda: self.variables.run_lookup(found, ids), future))
            self.asked.notify_all()  # that thread is one of those that wait
        return future.result(timeout=60)

    def status(self) -> dict[str, Any]:
        """Return rounds, bytes and silent trainers as plain values, for monitoring."""
        with self.changed:
            return self.monitor.status(self.mode, self._remaining())
