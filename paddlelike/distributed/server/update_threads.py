"""The work on the variables of a server, and the threads that do it.

When a round is complete, one thread runs the program's blocks on the staged gradients and publishes the new
version. It is the thread whose call completed the round (this saves a change of threads), or the thread that
called ``exe.run``, which also does all other work.
"""

from __future__ import annotations

import contextlib
import logging
import os
import time
from collections import deque
from functools import partial
from typing import Any

from paddlelike.core.floats import run_quietly
from paddlelike.distributed.placement import Kind, Placement
from paddlelike.distributed.protocol.messages import Mode, Save
from paddlelike.distributed.protocol.server import ServerState
from paddlelike.distributed.protocol.server.exchanges import Apply, Merge, Work, Write
from paddlelike.distributed.server.monitor import Monitor
from paddlelike.distributed.server.position import empty_load, read_position
from paddlelike.distributed.server.rollback import RollbackPoints, load_table
from paddlelike.distributed.server.save_roots import check_save_directory
from paddlelike.distributed.server.served import Served
from paddlelike.distributed.server.staging import Staging
from paddlelike.distributed.server.variables import Variables
from paddlelike.distributed.server.writing import write_rows
from paddlelike.distributed.settings import Settings
from paddlelike.errors import OperatorError, SaveError
from paddlelike.foundation.locks import Condition
from paddlelike.foundation.threads import Task, Thread
from paddlelike.framework.opdef import Context

_log = logging.getLogger("paddlelike.distributed")

_STATE = (Kind.OPTIMIZER, Kind.AVERAGE, Kind.SCHEDULE)

#: Bytes of gradients that a server holds before it lets further trainers of a round wait. Small models are
#: far below it; of large ones each trainer's gradients are added to the sum as they come.
STAGED = 256 << 20
APPLIERS = 4  #: threads that apply asynchronous updates at most; numpy works on several processors at once

_POLL = 0.25  # seconds between two checks for a signal
_LAST_WORDS = 3.0  # seconds in which this server tells trainers that it failed


class Workers:
    """The shared state of one server's threads, and the threads that update its variables.

    One lock guards ``state``. ``asked`` wakes the thread that called ``exe.run``; ``changed`` wakes the
    threads that wait for its results. So an incoming call wakes no other call. In synchronous training one
    thread at a time works on the variables.

    Raises
    ------
    NotInitializedError
        A variable has no value; names the endpoint.
    """

    def __init__(self, ctx: Context, settings: Settings) -> None:
        self._ctx = ctx
        self.served = Served(ctx.op)  # type: ignore[arg-type]
        self.mode: Mode = "sync" if self.served.is_synchronous else "async"
        self.variables = Variables(ctx, self.served)
        self.staging = Staging(
            self.served.table,
            self.served.sparse,
            most=STAGED,
            groups=[group.indexes for group in self.variables.groups],
        )
        self.asked = Condition()
        self.changed = Condition(self.asked.lock)
        loaded = self._find_loaded_directory()
        position = self._read_position(loaded)
        self._points = self._find_points(settings) if settings.rollback else None
        self.tasks: deque[Task[Any]] = deque()
        self.monitor = Monitor(self.served.endpoint, self.served.trainers, settings)
        self._save_roots = settings.save_roots
        self.is_stopping = False
        self._has_ended = False  # the thread that called has nothing more to do
        self._is_working = False  # a thread works on the variables (sync)
        self._error: Exception | None = None  # of the thread that applied a round or an update
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
        """Return the directory from which this server's parameters were loaded, or None unless all are from
        one.

        Without parameters, the optimizer state and schedules decide. Without any variable, return the
        directory that the server was to load.
        """
        states = [e.name for e in self.served.table.having(*_STATE)]
        names = list(self.served.parameters.values()) or states
        holders = [self._ctx.scope.find_var(name) for name in names]
        origins = {holder.origin for holder in holders if holder is not None and holder.value is not None}
        return (origins.pop() if len(origins) == 1 else None) if names else empty_load(self._ctx.scope)

    def _read_position(self, directory: str | None) -> dict[str, Any]:
        """Return the training position recorded in a directory, {} if there is none.

        The list of finished trainers is ignored: this job has other trainers.
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
                self.do(work)
        finally:
            with self.changed.hold():
                self._has_ended = True
                self.asked.notify_all()
                self.changed.notify_all()
                self.asked.wait_for(lambda: not self._is_working)  # for a thread of the wire
            for applier in appliers:
                applier.wait()
        if self._error is not None:
            time.sleep(_LAST_WORDS)
            raise self._error

    def _start_appliers(self) -> list[Thread]:
        """Start the threads that apply asynchronous updates beside the one that owns the variables."""
        most = 1 if self.mode == "sync" else min(self.served.trainers, os.cpu_count() or 1, APPLIERS)
        threads: list[Thread] = []
        with contextlib.suppress(RuntimeError):  # no more threads: the present ones do the work
            for _ in range(most - 1):
                thread = Thread(partial(run_quietly, self._apply_updates), "paddlelike-apply")
                thread.start()
                threads.append(thread)
        return threads

    def _apply_updates(self) -> None:
        try:
            while (work := self._next(is_owner=False)) is not None:
                self.do(work)
        except Exception as error:
            with self.changed.hold():
                self._error = self._error or error
                self.asked.notify_all()

    def stop(self) -> None:
        """Let :meth:`run` return soon."""
        self.is_stopping = True

    def wake(self) -> None:
        """Wake the thread that owns the variables, if there is work. Called under the lock."""
        if self._is_working:
            return  # the end of that work wakes it
        state = self.state
        if state.has_work or state.is_finished or self.tasks or state.find_merge() or self._has_ended:
            self.asked.notify_all()

    def _next(self, *, is_owner: bool) -> Work | Merge | Task[Any] | None:
        with self.changed.hold():
            while not (self.is_stopping or self._has_ended or self._error is not None):
                if is_owner:
                    self.monitor.check(self.state.round, self.list_remaining())
                if not self._is_working:
                    if is_owner and self.tasks:
                        self._is_working = self.mode == "sync"
                        return self.tasks.popleft()
                    work = self.state.take_work() or self.state.find_merge()
                    if work is not None:
                        self._is_working = self.mode == "sync"
                        return work
                    if is_owner and self.state.may_end(time.monotonic()):
                        break
                self.asked.wait(_POLL)
        return None

    def take_round(self) -> Work | None:
        """Return a complete round that a thread of the wire may apply, or None without one. Called under the
        lock.
        """
        if self._is_working or self.is_stopping or self._has_ended or self._error is not None:
            return None
        work = self.state.take_round()
        self._is_working = work is not None
        return work

    def list_remaining(self) -> list[int]:
        """Return the trainers that have not finished."""
        return [one for one in range(self.served.trainers) if one not in self.state.completed]

    def do(self, work: Work | Merge | Task[Any]) -> None:
        """Do the work, and notify waiting threads."""
        try:
            self._carry_out(work)
        finally:
            with self.changed.hold():
                self._is_working = False
                self.wake()

    def _carry_out(self, work: Work | Merge | Task[Any]) -> None:
        if isinstance(work, Task):
            with contextlib.suppress(Exception):  # raised where its result is awaited
                work.run()
            return
        if isinstance(work, Merge):
            trainer, contribution = work.other
            work.into[1].merge(trainer, contribution)
            with self.changed.hold():
                self.state.end_merge(work)
                self.staging.give_back(contribution)
                self.changed.notify_all()
            return
        try:
            answer = self._perform(work)
        except Exception as error:
            self._fail(work, error)
            return
        with self.changed.hold():
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
        """Report failed work; after a failed round the variables belong to no round, so the server ends."""
        _log.exception("%s: %s failed", self.served.endpoint, type(work).__name__)
        with self.changed.hold():
            self.state.fail_work(work, f"{type(error).__name__}: {error}")
            if isinstance(work, Apply):
                self._error = OperatorError(
                    f"the server at {self.served.endpoint} failed in round {self.state.round}: "
                    f"{getattr(error, 'message', error)}",
                    hint=getattr(error, "hint", None),
                )
                self._error.__cause__ = error
                self.asked.notify_all()
            self.changed.notify_all()

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
        """Write this server's rows of the named files; without names only report the training position."""
        answer: dict[str, Any] = {"position": self.state.position()}
        if "touched" in request.options:
            since = request.options["touched"][self.served.op.attrs["pserver_id"]]
            answer["touched"] = self.variables.find_touched(since)
        if "tables" in request.options:
            answer["tables"] = self.variables.edit_tables(request.options["tables"])
        if "load" in request.options:
            check_save_directory(request.directory, self._save_roots, self.served.endpoint)
            program = self.served.op.block.program
            load_table(self._ctx.scope, program, request.directory, request.options["load"])
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
