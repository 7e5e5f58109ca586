"""A server at work: ``exe.run(pserver_program)`` is this, in the caller's thread.

Threads of the wire take gradients into staging and wait; the thread that called owns the variables: it runs
the program's blocks on what was staged and publishes the new version, when
:mod:`paddlelike.distributed.protocol` says so.
"""

from __future__ import annotations

import contextlib
import logging
import os
import signal
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any

import numpy as np

from paddlelike.core.tensor import LoDTensor, SelectedRows
from paddlelike.distributed.placement import Placement
from paddlelike.distributed.protocol.messages import Mode, Reply, Request, Save, Waiting
from paddlelike.distributed.protocol.server import Apply, ServerState, Work, Write
from paddlelike.distributed.server.staging import Contribution, Staging
from paddlelike.distributed.server.table import Entry, Lookup, Role, Served
from paddlelike.distributed.server.verbs import verbs_of
from paddlelike.distributed.settings import Settings
from paddlelike.distributed.wire import Server, workers_for
from paddlelike.errors import (
    EnforceNotMet,
    FrameError,
    NotInitializedError,
    OperatorError,
    SaveError,
)
from paddlelike.framework.opdef import Context
from paddlelike.framework.passes.views import collect_writes

if TYPE_CHECKING:
    from paddlelike.distributed.server.rollback import WayBack

__all__ = ["Service"]

Array = np.ndarray[Any, Any]

_log = logging.getLogger("paddlelike.distributed")

_TURN = 0.25  # seconds between two looks at whether a signal came
_LONGEST_WAIT = 1.0  # seconds in which a call that waits finds that its trainer was replaced
_LAST_WORDS = 3.0  # seconds in which trainers are told that this server failed


class Service:
    """What the threads of one server share.

    One lock guards ``state``. ``asked`` wakes the thread that owns the variables, ``changed`` those that wait
    for what it does: a call that comes in wakes no other call.
    """

    def __init__(self, ctx: Context, settings: Settings) -> None:
        self._ctx = ctx
        self.served = Served(ctx.op)  # type: ignore[arg-type]
        self.mode: Mode = "sync" if self.served.is_synchronous else "async"
        self.staging = Staging(self.served.table, self.served.sparse)
        self.guards = {} if self.mode == "sync" else _guards(self.served)
        lock = threading.RLock()
        self.asked, self.changed = threading.Condition(lock), threading.Condition(lock)
        saved = self._loaded_with()
        self._way_back = self._make_way_back(settings, saved) if settings.rollback else None
        self._tasks: deque[tuple[Callable[[], Any], Future[Any]]] = deque()
        self._lease, self._begun = settings.lease, time.monotonic()
        self._heard: dict[int, float] = {}
        self._bytes_in = self._bytes_out = self._rounds = 0
        self._stopping = False
        self._check_values()
        self._start_counters()
        self.state = ServerState(
            incarnation=f"{os.getpid()}.{time.time_ns()}",
            trainers=self.served.trainers,
            mode=self.mode,
            plan=self.served.table.digest,
            job=settings.job,
            now=time.monotonic(),
            saved=saved,
            lease=settings.lease,
            checkpoints=tuple if self._way_back is None else self._way_back.rounds,
        )

    def _check_values(self) -> None:
        made = self.served.made_by_blocks
        wanted = [e for e in self.served.table if e.role != Role.GRADIENT and e.name not in made]
        missing = [e.name for e in wanted if self._held(e) is None]
        if missing:
            raise NotInitializedError(
                f"the server at {self.served.endpoint} has no values of {', '.join(missing[:5])}"
                f"{' and others' if len(missing) > 5 else ''}",
                hint="run its startup program first: t.get_startup_program(endpoint, pserver_program)",
            )

    def _loaded_with(self) -> dict[str, Any]:
        """Where the saved directory stands from which this server's parameters were loaded, if they were.

        A server without parameters goes by its counters, one without anything by what it was told to load.
        Who had finished by then does not matter: the trainers of this job are others.
        """
        from paddlelike.distributed.checkpoint.position import idle_load, standing_of

        states = [entry.name for entry in self.served.table if entry.role == Role.STATE]
        names = list(self.served.parameters.values()) or states
        holders = [self._ctx.scope.find_var(name) for name in names]
        origins = {holder.origin for holder in holders if holder is not None and holder.value is not None}
        origin = origins.pop() if len(origins) == 1 else None
        if not names:
            origin = idle_load(self._ctx.scope)
        standing = None if origin is None else standing_of(origin, self.served.endpoint)
        return {key: value for key, value in (standing or {}).items() if key in ("round", "updates")}

    def _make_way_back(self, settings: Settings, saved: dict[str, Any]) -> WayBack:
        from paddlelike.distributed.server.rollback import WayBack

        names = [entry.name for entry in self.served.table if entry.role != Role.GRADIENT]
        names += [name for counts in self.served.counters.values() for name in counts.values()]
        program, start = self.served.op.block.program, int(saved.get("round", 0))
        scope, endpoint = self._ctx.scope, self.served.endpoint
        return WayBack(scope, names, program, endpoint, settings.checkpoints, start)

    # The thread that owns the variables

    def run(self) -> None:
        """Serve."""
        server = Server(self.served.endpoint, verbs_of(self), workers=workers_for(self.served.trainers))
        with _ended_by_signals(self.stop), server:
            while (work := self._next()) is not None:
                self._do(work)
            with self.changed:
                self.changed.notify_all()

    def stop(self) -> None:
        """Let :meth:`run` return soon."""
        self._stopping = True

    def _next(self) -> Work | tuple[Callable[[], Any], Future[Any]] | None:
        with self.changed:
            while not self._stopping:
                if self._tasks:
                    return self._tasks.popleft()
                work = self.state.ready()
                if work is not None:
                    return work
                if self.state.is_over(time.monotonic()):
                    break
                self.asked.wait(_TURN)
        return None

    def _do(self, work: Work | tuple[Callable[[], Any], Future[Any]]) -> None:
        if isinstance(work, tuple):
            task, future = work
            try:
                future.set_result(task())
            except Exception as error:
                future.set_exception(error)
            return
        try:
            said = self._perform(work)
        except Exception as error:
            with self.changed:
                self.state.failed(work, f"{type(error).__name__}: {error}")
                self.changed.notify_all()
            _log.exception("%s: %s failed", self.served.endpoint, type(work).__name__)
            if isinstance(work, Apply):
                time.sleep(_LAST_WORDS)
                raise OperatorError(
                    f"the server at {self.served.endpoint} failed in round {self.state.round}: "
                    f"{getattr(error, 'message', error)}",
                    hint=getattr(error, "hint", None),
                ) from error
            return
        with self.changed:
            if isinstance(work, Write):
                self.state.written(work, said)
            else:
                self.state.applied(work)
            self.changed.notify_all()
        if isinstance(work, Apply):
            for _, contribution in work.contributions:
                self.staging.give_back(contribution)

    def _perform(self, work: Work) -> dict[str, Any]:
        """Do the work; what a save says of it."""
        if isinstance(work, Write):
            return self._write(work.request)
        if isinstance(work, Apply):
            self._apply(work)
            self._rounds += 1
        else:
            self._restore(work.number)
        return {}

    def _restore(self, round: int) -> None:
        """Go back; the run's own view of the variables follows the scope."""
        assert self._way_back is not None
        self._way_back.go(round)
        for entry in self.served.table:
            value = self._held(entry)
            if entry.role != Role.GRADIENT and value is not None:
                self._ctx.write(entry.name, value)

    def _write(self, request: Save) -> dict[str, Any]:
        """Write this server's rows of the files named; without names only tell where it stands."""
        from paddlelike.distributed.checkpoint import serve as files

        said: dict[str, Any] = {"standing": self.state.saved_with()}
        names = request.options.get("names", [])
        if names:
            placement = self.served.op.block.program._parameters_on_pservers
            if not isinstance(placement, Placement):
                raise SaveError(f"{self.served.endpoint}: its program does not say whose rows it keeps")
            slices = placement.on(self.served.endpoint)
            said |= files.write(self._ctx.scope, slices, request.directory, names)
        return said

    def _apply(self, work: Apply) -> None:
        if self.mode == "sync":
            self._apply_round(dict(work.contributions))
        else:
            ((trainer, contribution),) = work.contributions
            self._apply_update(trainer, contribution)

    def _apply_round(self, contributions: dict[int, Contribution]) -> None:
        """All gradients of all trainers, then the schedule, then every block of the program in order."""
        given = {trainer: one.finish(whole=True) for trainer, one in contributions.items()}
        for entry in self.served.table.having(Role.GRADIENT):
            names = self.served.inputs[entry.name] or {0: entry.name}
            for trainer, name in names.items():  # None: a trainer that has left adds nothing
                self._ctx.write(name, given[trainer][entry.index] if trainer in given else None)
        if self.served.schedule > 0:
            self._ctx.run_block(self.served.schedule)
        sums = {block: name for name, block in self.served.blocks.items()}
        for index in self.served.op.attrs["optimize_blocks"]:
            if index != self.served.schedule:  # which Fluid lists among them
                self._ctx.run_block(index)
            if index in sums:
                self._ctx.write(sums[index], None)  # its memory is the next sum's

    def _apply_update(self, trainer: int, contribution: Contribution) -> None:
        """What one trainer sent: its step for the schedule, then each gradient by its own block."""
        given = contribution.finish(whole=False)
        for entry in self.served.table.having(Role.COUNTER):
            if entry.index in given:
                self._count(self.served.counters[entry.name][trainer], given[entry.index])
                self._ctx.run_block(self.served.schedule)
        for entry in self.served.table.having(Role.GRADIENT):
            if entry.index in given:
                with self.guards[self.served.parameters[entry.name]]:
                    self._ctx.write(self.served.contribution(entry.name, trainer), given[entry.index])
                    self._ctx.run_block(self.served.blocks[entry.name])

    def _count(self, name: str, steps: Any) -> None:
        self._ctx.write(name, self._ctx.read(name) + steps)

    def _start_counters(self) -> None:
        """Let the steps of all trainers together go on from the counter, whoever counted before.

        Of a new job the first step is step 0, as in training without servers. (Its startup program gives the
        counter a negative number and every trainer 1, and so Fluid begins behind the number of trainers.)
        """
        for counter, names in self.served.counters.items():
            done = max(int(self._ctx.read(counter)[0]), -1)
            for trainer, name in names.items():
                counted = done if trainer == min(names) else 0
                self._ctx.write(name, np.full_like(self._ctx.read(name), counted))

    # The threads of the wire

    def hear(self, request: Request) -> None:
        """Note that a trainer is alive."""
        self._heard[request.trainer] = time.monotonic()

    def ask(self, request: Request) -> Reply:
        """What the protocol answers now."""
        with self.changed:
            reply: Reply = getattr(self.state, request.verb.lower())(request, time.monotonic())
            self.look()
        return reply

    def look(self) -> None:
        """Wake the thread that owns the variables, if there is something to do. Called under the lock."""
        if self.state.has_work or self.state.finished:
            self.asked.notify()

    def ask_until(self, request: Request, patience: float) -> Reply:
        """What the protocol answers, asked again while it says Waiting, for ``patience`` seconds."""
        end = time.monotonic() + patience
        with self.changed:
            while True:
                reply = self.ask(request)
                left = end - time.monotonic()
                if not isinstance(reply, Waiting) or left <= 0 or self._stopping:
                    return reply
                self.changed.wait(min(left, _LONGEST_WAIT))

    def value(self, entry: Entry) -> Array:
        """The array of a variable itself."""
        value = self._held(entry)
        if not isinstance(value, np.ndarray) or tuple(value.shape) != entry.shape:
            raise EnforceNotMet(f"{entry.name!r} is not what this server's program says: {value!r:.80}")
        return value

    def table(self, entry: Entry) -> tuple[Array, Array]:
        """The ids that a table which is sharded by id has met, and all its rows, also those still free."""
        value = self._held(entry)
        assert isinstance(value, SelectedRows)
        assert value.array is not None
        rows = value.row_array
        return rows, value.array

    def _held(self, entry: Entry) -> Array | SelectedRows | None:
        holder = self._ctx.scope.find_var(entry.name)
        value = None if holder is None else holder.value
        return value.array if isinstance(value, LoDTensor) else value

    def lookup(self, table: str, ids: Array) -> Array:
        """The rows (n, width) of ids (n,) in a table. Raises FrameError for ids outside of it."""
        entry = self.served.table[table]
        found = self.served.lookups.get(table)
        if found is not None:
            return self._in_own_thread(lambda: self._run_lookup(found, ids))
        if ids.size and not (ids.min() >= 0 and ids.max() < entry.shape[0]):
            raise FrameError(f"ids from {ids.min()} to {ids.max()} in {table!r} of {entry.shape[0]} rows")
        with self.guards.get(table, contextlib.nullcontext()):
            return self.value(entry)[ids]

    def _run_lookup(self, lookup: Lookup, ids: Array) -> Array:
        self._ctx.write(lookup.ids, ids.reshape(-1, 1))
        self._ctx.run_block(lookup.block)
        rows: Array = np.ascontiguousarray(self._ctx.read(lookup.rows))
        return rows

    def _in_own_thread(self, task: Callable[[], Array]) -> Array:
        future: Future[Array] = Future()
        with self.changed:
            self._tasks.append((task, future))
            self.asked.notify()
        return future.result(timeout=60)

    # For who watches

    def received(self, size: int) -> None:
        """Count bytes of gradients."""
        self._bytes_in += size

    def sent(self, size: int) -> None:
        """Count bytes of parameters."""
        self._bytes_out += size

    def status(self) -> dict[str, Any]:
        """Rounds, bytes and who is alive, as plain values."""
        now = time.monotonic()
        with self.changed:
            here = [t for t in range(self.served.trainers) if t not in self.state.completed]
        silent = [trainer for trainer in here if now - self._heard.get(trainer, self._begun) > self._lease]
        return {
            "endpoint": self.served.endpoint,
            "mode": self.mode,
            "rounds": self._rounds,
            "bytes_in": self._bytes_in,
            "bytes_out": self._bytes_out,
            "trainers": self.served.trainers,
            "silent": silent,
        }


def _guards(served: Served) -> dict[str, threading.RLock]:
    """By variable the lock that its block holds while it writes."""
    guards = {}
    for gradient, index in served.blocks.items():
        lock = threading.RLock()
        guards[served.parameters[gradient]] = lock
        for op in served.op.block.program.blocks[index].ops:
            guards |= dict.fromkeys(collect_writes(op), lock)
    return guards


@contextlib.contextmanager
def _ended_by_signals(stop: Callable[[], None]) -> Iterator[None]:
    """Call ``stop`` on SIGTERM and Ctrl-C; only a main thread can."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    numbers = (signal.SIGTERM, signal.SIGINT)
    before = [signal.signal(number, lambda *_: stop()) for number in numbers]
    try:
        yield
    finally:
        for number, handler in zip(numbers, before, strict=True):
            signal.signal(number, handler)
