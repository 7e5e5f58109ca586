"""A trainer's calls: its connections to all servers, and one goal of the protocol at a time."""

from __future__ import annotations

import concurrent.futures
import dataclasses
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from paddlelike.core import memory
from paddlelike.core.tensor import SelectedRows
from paddlelike.distributed.client.describe import Description, describe
from paddlelike.distributed.client.receivers import Pieces
from paddlelike.distributed.protocol.messages import (
    Commit,
    Mode,
    Prefetch,
    Pull,
    Push,
    Reply,
    reply_from_header,
)
from paddlelike.distributed.protocol.steps import Call, Closed, Done, Resumed
from paddlelike.distributed.protocol.trainer import TrainerState
from paddlelike.distributed.server.table import Role, rows_at, values_at
from paddlelike.distributed.settings import Settings
from paddlelike.distributed.wire import Channel, Into, Part, Receiver, as_bytes
from paddlelike.errors import DeadlineError, FaultError, FormatError, RemoteError, UnreachableError

__all__ = ["Calls", "Outbox", "Value"]

Array = np.ndarray[Any, Any]
Value = Array | SelectedRows
Outbox = dict[int, Value]  #: gradients of one push to one server, by number of the entry

_TURN = 1.0  # seconds between two looks at what to do
_BEAT_CALL = 5.0  # seconds for a sign of life


class Calls:
    """Connections to the servers of a job.

    Every goal (:meth:`push`, :meth:`commit`, ...) returns whether it was reached. False: the servers went
    back to a save instead, whose parameters are in ``values``. Goals of several threads take turns.

    Attributes
    ----------
    tables, mode
        What the servers say of themselves.
    values
        By server, the newest parameters by number of the entry; every round writes into these arrays.

    Raises
    ------
    FaultError
        A server does not answer in time; names its endpoint.
    """

    def __init__(self, trainer: int, endpoints: Sequence[str], settings: Settings) -> None:
        self.trainer = trainer
        self.endpoints = tuple(endpoints)
        self.is_lost = False
        self._why: Exception | None = None
        self._channels = [Channel(endpoint) for endpoint in endpoints]
        self._pool = concurrent.futures.ThreadPoolExecutor(
            max(len(endpoints), 1), thread_name_prefix="paddlelike-call"
        )
        self._turn = threading.RLock()
        self._changed = threading.Condition()
        self._outboxes: Sequence[Outbox] = ()  # of a push under way, by server
        self._receivers: Sequence[Callable[[], Receiver]] = ()  # of a pull under way, by server
        self._ids: Mapping[int, Array] = {}  # what a prefetch under way asks for and fills, by server
        self._rows: Mapping[int, Array] = {}
        self._ended = threading.Event()
        self._beats: threading.Thread | None = None
        try:
            found = list(self._pool.map(lambda c: describe(c, settings.limits.window), self._channels))
            self.tables = [one.table for one in found]
            self.mode = _agreed(self.endpoints, found)
            self.values = [
                {e.index: memory.empty(e.shape, e.numpy_dtype) for e in table.having(Role.PARAMETER)}
                for table in self.tables
            ]
            self._state = TrainerState(
                trainer=trainer,
                trainers=found[0].trainers,
                process=time.time_ns(),
                endpoints=self.endpoints,
                plans=[table.digest for table in self.tables],
                mode=self.mode,
                job=settings.job,
                rollback=settings.rollback,
                limits=settings.limits,
            )
            self._beats = threading.Thread(target=self._beat, args=(settings.lease / 3,), daemon=True)
            self._beats.start()
            self._reach(lambda now: self._state.join(now))
        except BaseException:
            self.disconnect()
            raise

    @property
    def round(self) -> int:
        """The round (asynchronous: the update of this process) that comes next."""
        return self._state.round if self.mode == "sync" else self._state.update

    # Goals

    def push(self, outboxes: Sequence[Outbox]) -> bool:
        """Bring gradients to their servers, by server; going by rounds to all, else to those that get any."""
        to = None if self.mode == "sync" else [server for server, one in enumerate(outboxes) if one]
        with self._turn:
            self._outboxes = outboxes
            return to == [] or self._reach(lambda now: self._state.push(now, to))

    def commit(self) -> bool:
        """Have the round applied and fetch its parameters."""
        return self._reach(self._state.commit)

    def refresh(self) -> bool:
        """Fetch all parameters."""
        return self._reach(lambda now: self._state.pull(now, [None] * len(self.endpoints)))

    def pull(self, wanted: Sequence[tuple[tuple[int, ...], Callable[[], Receiver]]]) -> bool:
        """By server: numbers of what is pulled, and what makes a receiver for it."""
        with self._turn:
            self._receivers = [receiver for _, receiver in wanted]
            return self._reach(lambda now: self._state.pull(now, [numbers for numbers, _ in wanted]))

    def pull_one(self, server: int, number: int, receiver: Callable[[], Receiver]) -> bool:
        """Pull one number from one server."""
        wanted: list[tuple[tuple[int, ...], Callable[[], Receiver]]] = [((), Pieces) for _ in self.endpoints]
        wanted[server] = (number,), receiver
        return self.pull(wanted)

    def prefetch(
        self, tables: Mapping[int, str], ids: Mapping[int, Array], rows: Mapping[int, Array]
    ) -> bool:
        """By server: fill ``rows`` (n, width) with those of the ``ids`` (n,) in a table."""
        asked = [(tables[i], len(ids[i])) if i in ids else None for i in range(len(self.endpoints))]
        with self._turn:
            self._ids, self._rows = ids, rows
            return self._reach(lambda now: self._state.prefetch(now, asked))

    def save(self, directory: str, options: Mapping[str, Any]) -> list[Mapping[str, Any]] | None:
        """Have every server write its rows; what each says, by server. None: they went back instead."""
        with self._turn:
            reached = self._reach(lambda now: self._state.save(now, directory, options))
            return list(self._state.manifests) if reached else None

    def complete(self) -> bool:
        """Tell every server that this trainer has finished."""
        return self._reach(self._state.complete)

    def disconnect(self) -> None:
        """Leave without a word."""
        self._ended.set()
        for channel in self._channels:
            channel.close()
        self._pool.shutdown(wait=True, cancel_futures=True)
        if self._beats is not None and self._beats.is_alive():
            self._beats.join()

    # How they are reached

    def _reach(self, goal: Callable[[float], None]) -> bool:
        """Set a goal and make calls to every server, side by side, until it is reached or lost."""
        with self._turn:
            if self._why is not None:
                raise self._why
            with self._changed:
                goal(time.monotonic())
            others = [self._pool.submit(self._drive, server) for server in range(1, len(self.endpoints))]
            try:
                self._drive(0)
                for other in others:
                    other.result()
            except BaseException:  # Ctrl-C
                self._lose(FaultError("this trainer was interrupted in a call and cannot go on"))
                raise
            outcome = self._state.outcome
            if isinstance(outcome, Closed):
                outcome = FaultError(f"trainer {self.trainer} had finished this job in an earlier process")
                outcome.exit_code = 0  # nothing is left to do, so no launcher need start it again
            if isinstance(outcome, FaultError):
                self._lose(outcome)
            if self._why is not None:
                raise self._why
            return not isinstance(outcome, Resumed)

    def _drive(self, server: int) -> None:
        """Do what the protocol says for one server until it is done."""
        while True:
            with self._changed:
                step = self._state.next(server, time.monotonic())
                if isinstance(step, Done) or self.is_lost:
                    self._changed.notify_all()
                    return
                if not isinstance(step, Call):
                    self._changed.wait(min(max(step.until - time.monotonic(), 0.001), _TURN))
                    continue
            try:
                reply = self._call(step)
            except (UnreachableError, DeadlineError, FormatError) as error:
                with self._changed:
                    self._state.failed(step, str(error.message), time.monotonic())
                    self._changed.notify_all()
            except Exception as error:
                self._lose(error)
                return
            else:
                with self._changed:
                    self._state.answered(step, reply, time.monotonic())
                    self._changed.notify_all()

    def _lose(self, why: Exception) -> None:
        """Something no repetition cures."""
        with self._changed:
            self._why, self.is_lost = why, True
            self._changed.notify_all()

    def _call(self, call: Call) -> Reply:
        server, request = call.server, call.request
        parts: Iterable[Part] = ()
        into: Any = None
        if isinstance(request, Push):
            outbox = self._outboxes[server]
            rows = [(i, len(v.row_array)) for i, v in outbox.items() if isinstance(v, SelectedRows)]
            request = dataclasses.replace(request, rows=tuple(rows))
            parts = _parts(outbox)
        elif isinstance(request, Commit) or (isinstance(request, Pull) and request.slices is None):
            into = Into({values_at(index): array for index, array in self.values[server].items()})
        elif isinstance(request, Pull):
            into = self._receivers[server]()
        elif isinstance(request, Prefetch):
            parts = [Part(0, 0, as_bytes(self._ids[server]))]
            into = Into({0: self._rows[server]})
        header = self._channels[server].call(
            request.verb,
            request.to_header(),
            parts,
            None if into is None else (lambda head: into if head.get("kind") == "ok" else None),
            timeout=call.timeout,
            answer_size=getattr(into, "size", None),
        )
        reply = reply_from_header(request.verb, header)
        if into is not None and reply.kind == "ok":
            into.check()
        return reply

    def _beat(self, interval: float) -> None:
        while not self._ended.wait(interval):
            with self._changed:
                request = self._state.beat()
            for server, channel in enumerate(self._channels):
                try:
                    head = channel.call("Beat", request.to_header(), timeout=_BEAT_CALL)
                    reply = reply_from_header("Beat", head)
                except (RemoteError, FormatError):  # the next real call says what is wrong
                    continue
                with self._changed:
                    self._state.beaten(server, reply)
                    self._changed.notify_all()


def _agreed(endpoints: Sequence[str], found: Sequence[Description]) -> Mode:
    """The mode of all servers. Raises FaultError where they are not of one job."""
    said = {(one.mode, one.trainers) for one in found}
    if len(said) != 1:
        each = ", ".join(
            f"{endpoint}: {one.mode}, {one.trainers} trainers"
            for endpoint, one in zip(endpoints, found, strict=True)
        )
        raise FaultError(f"the servers do not run the same job: {each}")
    return found[0].mode


def _parts(outbox: Outbox) -> Iterable[Part]:
    for index, value in sorted(outbox.items()):
        if isinstance(value, SelectedRows):
            assert value.array is not None
            yield Part(rows_at(index), 0, as_bytes(value.row_array))
            yield Part(values_at(index), 0, as_bytes(np.ascontiguousarray(value.array)))
        else:
            yield Part(values_at(index), 0, as_bytes(value))
