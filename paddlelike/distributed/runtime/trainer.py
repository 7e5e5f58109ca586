"""A trainer's end: gradients into one push per server, rounds, and parameters straight into their arrays."""

from __future__ import annotations

import concurrent.futures
import dataclasses
import functools
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from paddlelike.core import memory
from paddlelike.core.tensor import SelectedRows
from paddlelike.distributed.protocol.messages import Commit, Prefetch, Pull, Push, Reply, reply_from_header
from paddlelike.distributed.protocol.steps import Call, Closed, Done, Resumed
from paddlelike.distributed.protocol.trainer import TrainerState
from paddlelike.distributed.runtime.describe import Description, describe
from paddlelike.distributed.runtime.receivers import Pieces
from paddlelike.distributed.runtime.settings import Settings
from paddlelike.distributed.runtime.table import Entry, Role, Table, base_name, rows_at, values_at
from paddlelike.distributed.wire import Channel, Into, Part, Receiver, as_bytes
from paddlelike.errors import (
    DeadlineError,
    EnforceNotMet,
    FaultError,
    FormatError,
    GraphError,
    RemoteError,
    RoundRolledBack,
    UnreachableError,
)

__all__ = ["Trainer"]

Array = np.ndarray[Any, Any]
Value = Array | SelectedRows

_SAME = "trainers and servers must be transpiled from the same network in the same way"
_TURN = 1.0  # seconds between two looks at what to do
_MOST_IDS = 1 << 34  # bytes of the row numbers of a table
_BEAT_CALL = 5.0  # seconds for a sign of life


class Trainer:
    """One trainer of a job: its connections, its round, what it is about to send, what it received.

    Its methods are called by one thread at a time; :meth:`lookup` by any.

    Parameters
    ----------
    trainer
        Its id.
    endpoints
        All servers of the job.

    Raises
    ------
    FaultError
        A server does not answer in time; names its endpoint.
    """

    def __init__(self, trainer: int, endpoints: Sequence[str], settings: Settings | None = None) -> None:
        settings = Settings.from_environment() if settings is None else settings
        self.trainer = trainer
        self.endpoints = tuple(endpoints)
        self._limits = settings.limits
        self._channels = [Channel(endpoint) for endpoint in endpoints]
        self._pool = concurrent.futures.ThreadPoolExecutor(
            max(len(endpoints), 1), thread_name_prefix="paddlelike-call"
        )
        self._changed = threading.Condition()
        self._outbox: list[dict[int, Value]] = [{} for _ in endpoints]
        self._taken: set[tuple[int, int]] = set()
        self._receivers: list[Callable[[], Receiver]] = []  # of a pull under way, by server
        self._ids: dict[int, Array] = {}  # what a prefetch under way asks for and fills, by server
        self._rows: dict[int, Array] = {}
        self._ended = threading.Event()
        self._lost: Exception | None = None
        self.follows = False  # whether the training loop goes where the servers go
        self.is_adrift = False  # whether the rest of a step is void, since the servers went elsewhere
        self.is_behind = False  # whether the scope still holds parameters from before they did
        self._beats: threading.Thread | None = None
        try:
            found = list(self._pool.map(lambda c: describe(c, settings.limits.window), self._channels))
            self.tables = [one.table for one in found]
            self.mode = _agreed(self.endpoints, found)
            self._values = [
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
            self._disconnect()
            raise

    @property
    def round(self) -> int:
        """The round (asynchronous: the update of this process) that comes next."""
        return self._state.round if self.mode == "sync" else self._state.update

    # What operators do

    def send(self, endpoint: str, name: str, value: Value) -> None:
        """Put a gradient (or a block of its rows) into the next push to a server."""
        if self.is_adrift:
            return
        if self.is_behind:
            raise self._rolled_back()
        server = self._server(endpoint)
        entry = self._entry(server, base_name(name))
        if entry.role not in (Role.GRADIENT, Role.COUNTER):
            raise GraphError(f"{name!r} is sent to {endpoint}, where it is no gradient but a {entry.role}")
        if isinstance(value, SelectedRows):
            value = value.merged() if value.array is not None and value.array.size else _no_rows(entry)
            assert value.array is not None
            found, dtype = (value.height(), *value.array.shape[1:]), value.array.dtype
        else:
            value = np.ascontiguousarray(value)
            found, dtype = value.shape, value.dtype
        if found != entry.shape or dtype != entry.numpy_dtype:
            raise GraphError(
                f"{name!r} is {dtype}{list(found)} here, {entry.numpy_dtype}{list(entry.shape)} there",
                hint=_SAME,
            )
        if entry.index in self._outbox[server]:
            self.flush()  # the step before had no barrier
        self._outbox[server][entry.index] = value

    def barrier(self) -> None:
        """Push the step's gradients; once all servers have them, have the round applied and fetch it."""
        if self.mode != "sync":
            self.flush()
            return
        if not self.is_adrift:
            self._check_whole()
            self._reach(self._state.push, in_step=True)
        self._forget_outbox()
        if not self.is_adrift:
            self._reach(self._state.commit, in_step=True)
            self._taken.clear()

    def flush(self) -> None:
        """Send what waits, where servers do not go by rounds."""
        if self.mode == "sync":
            self.barrier()
            return
        servers = [server for server, outbox in enumerate(self._outbox) if outbox]
        if servers:
            self._reach(lambda now: self._state.push(now, servers))
            self._forget_outbox()

    def receive(self, endpoint: str, name: str) -> Array:
        """The newest values of a parameter: an array that later rounds overwrite."""
        server = self._server(endpoint)
        entry = self._entry(server, name)
        key = server, entry.index
        if entry.index not in self._values[server]:
            return self.pull([(endpoint, name)])[0]
        if not self.is_adrift and (any(self._outbox) or key in self._taken):
            self.refresh()
        self._taken.add(key)
        self.is_behind = False
        return self._values[server][entry.index]

    def refresh(self) -> None:
        """Send what waits and fetch all parameters."""
        if any(self._outbox):
            self.flush()
            if self.mode == "sync":
                return
        self._reach(lambda now: self._state.pull(now, [None] * len(self.endpoints)))
        self._taken.clear()

    def pull(self, wanted: Sequence[tuple[str, str]]) -> list[Array]:
        """Any variables, as (endpoint, name), in arrays of their own: optimizer state, schedules, slices."""
        places = [(self._server(endpoint), name) for endpoint, name in wanted]
        entries = [(server, self._entry(server, name)) for server, name in places]
        slices: list[dict[int, Array]] = [{} for _ in self.endpoints]
        for server, entry in entries:
            slices[server].setdefault(entry.index, memory.empty(entry.shape, entry.numpy_dtype))
        self._pull([(tuple(arrays), functools.partial(_into, arrays)) for arrays in slices])
        return [slices[server][entry.index] for server, entry in entries]

    def stream(self, wanted: tuple[str, str], sink: Callable[[], Receiver]) -> None:
        """The bytes of one variable into a receiver; into another one when the call has to be repeated."""
        endpoint, name = wanted
        server = self._server(endpoint)
        self._pull_one(server, self._entry(server, name).index, sink)

    def rows(self, wanted: tuple[str, str]) -> Array:
        """The ids that a server's shard of a table holds, (n,) int64, in the order of its rows."""
        endpoint, name = wanted
        server = self._server(endpoint)
        pieces: list[Pieces] = []

        def receiver() -> Receiver:
            pieces.append(Pieces(_MOST_IDS))
            return pieces[-1]

        self._pull_one(server, len(self.tables[server]) + self._entry(server, name).index, receiver)
        return np.frombuffer(pieces[-1].joined(), np.int64)

    def write(self, directory: str, names: Sequence[str]) -> dict[str, Mapping[str, Any]]:
        """Have every server write its rows of these files of a directory; what each says, by endpoint."""
        self._reach(lambda now: self._state.save(now, directory, {"names": list(names)}))
        return dict(zip(self.endpoints, self._state.manifests, strict=True))

    def _pull_one(self, server: int, number: int, receiver: Callable[[], Receiver]) -> None:
        nothing: tuple[tuple[int, ...], Callable[[], Receiver]] = (), Pieces
        self._pull(
            [((number,), receiver) if one == server else nothing for one in range(len(self.endpoints))]
        )

    def _pull(self, wanted: list[tuple[tuple[int, ...], Callable[[], Receiver]]]) -> None:
        """By server: numbers of what is pulled, and what makes a receiver for it."""
        self._receivers = [receiver for _, receiver in wanted]
        self._reach(lambda now: self._state.pull(now, [numbers for numbers, _ in wanted]))

    def lookup(self, wanted: Sequence[tuple[str, str, Array]]) -> list[Array]:
        """Rows of tables: (endpoint, table, ids (n,)), one for each server at most -> (n, width) each."""
        places = [(self._server(endpoint), name, ids) for endpoint, name, ids in wanted]
        asked: list[tuple[str, int] | None] = [None for _ in self.endpoints]
        self._ids, self._rows = {}, {}
        found = []
        for server, name, ids in places:
            entry = self._entry(server, name)
            rows = np.empty((len(ids), *entry.shape[1:]), entry.numpy_dtype)
            found.append(rows)
            if ids.size:
                assert asked[server] is None, "two tables of one server at once"
                asked[server] = name, len(ids)
                self._ids[server] = np.ascontiguousarray(ids, np.int64)
                self._rows[server] = rows
        if not self.is_adrift:
            self._reach(lambda now: self._state.prefetch(now, asked), in_step=True)
        if self.is_adrift:
            for rows in found:
                rows[...] = 0
        return found

    def close(self) -> None:
        """Send what waits and tell every server that this trainer has finished; a lost job is only left."""
        try:
            if self._lost is None:
                if self.mode != "sync":
                    self.flush()
                self._reach(self._state.complete)
        finally:
            self._disconnect()

    def abandon(self) -> None:
        """Leave without a word, as a process that is killed does."""
        self._disconnect()

    # Calls

    def _reach(self, goal: Callable[[float], None], *, in_step: bool = False) -> None:
        """Set a goal and make calls to every server, side by side, until it is reached or lost.

        ``in_step``: where the servers went elsewhere, the rest of a step may be void; anything else, such as
        a save, has to be told.
        """
        if self._lost is not None:
            raise self._lost
        with self._changed:
            goal(time.monotonic())
        others = [self._pool.submit(self._drive, server) for server in range(1, len(self.endpoints))]
        self._drive(0)
        for other in others:
            other.result()
        outcome = self._state.outcome
        if isinstance(outcome, Closed):
            outcome = FaultError(f"trainer {self.trainer} had finished this job in an earlier process")
        if isinstance(outcome, FaultError):
            self._lost = outcome
        if self._lost is not None:
            raise self._lost
        if isinstance(outcome, Resumed):
            self._forget_outbox()
            self._taken.clear()
            self.is_behind = True
            if not (self.follows and in_step):
                raise self._rolled_back()
            self.is_adrift = True

    def _rolled_back(self) -> RoundRolledBack:
        return RoundRolledBack(
            f"the servers went back to step {self._state.round}",
            step=self._state.round,
            hint="a loop over resumable_steps goes on from there; else run the startup program again first",
        )

    def _drive(self, server: int) -> None:
        """Do what the protocol says for one server until it is done."""
        while True:
            with self._changed:
                step = self._state.next(server, time.monotonic())
                if isinstance(step, Done) or self._lost is not None:
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

    def _lose(self, error: Exception) -> None:
        """Something no repetition cures."""
        with self._changed:
            self._lost = error
            self._changed.notify_all()

    def _call(self, call: Call) -> Reply:
        server, request = call.server, call.request
        parts: Iterable[Part] = ()
        into: Any = None
        if isinstance(request, Push):
            outbox = self._outbox[server]
            rows = [(i, len(v.row_array)) for i, v in outbox.items() if isinstance(v, SelectedRows)]
            request = dataclasses.replace(request, rows=tuple(rows))
            parts = _parts(outbox)
        elif isinstance(request, Commit) or (isinstance(request, Pull) and request.slices is None):
            into = _into(self._values[server])
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

    def _disconnect(self) -> None:
        self._ended.set()
        for channel in self._channels:
            channel.close()
        self._pool.shutdown(wait=True, cancel_futures=True)
        if self._beats is not None and self._beats.is_alive():
            self._beats.join()

    # Names

    def _server(self, endpoint: str) -> int:
        try:
            return self.endpoints.index(endpoint)
        except ValueError:
            raise GraphError(
                f"{endpoint!r} is none of this trainer's servers: {', '.join(self.endpoints)}"
            ) from None

    def _entry(self, server: int, name: str) -> Entry:
        table: Table = self.tables[server]
        entry = table.get(name)
        if entry is None:
            raise GraphError(
                f"the server at {self.endpoints[server]} has no {name!r}; it has "
                f"{', '.join(e.name for e in list(table)[:8])}{', ...' if len(table) > 8 else ''}",
                hint=_SAME,
            )
        return entry

    def _check_whole(self) -> None:
        for endpoint, table, outbox in zip(self.endpoints, self.tables, self._outbox, strict=True):
            missing = [e.name for e in table.having(Role.GRADIENT) if e.index not in outbox]
            if missing:
                raise EnforceNotMet(
                    f"this step sends no {', '.join(missing[:5])} to {endpoint}, which waits for it",
                    hint="every run of the trainer's program must compute and send every gradient",
                )

    def _forget_outbox(self) -> None:
        for outbox in self._outbox:
            outbox.clear()


def _agreed(endpoints: Sequence[str], found: Sequence[Description]) -> Any:
    """The mode of all servers. Raises FaultError where they are not of one job."""
    said = {(one.mode, one.trainers) for one in found}
    if len(said) != 1:
        each = ", ".join(
            f"{endpoint}: {one.mode}, {one.trainers} trainers"
            for endpoint, one in zip(endpoints, found, strict=True)
        )
        raise FaultError(f"the servers do not run the same job: {each}")
    return found[0].mode


def _into(arrays: Mapping[int, Array]) -> Into:
    return Into({values_at(index): array for index, array in arrays.items()})


def _no_rows(entry: Entry) -> SelectedRows:
    return SelectedRows([], entry.shape[0], np.empty((0, *entry.shape[1:]), entry.numpy_dtype))


def _parts(outbox: Mapping[int, Value]) -> Iterable[Part]:
    for index, value in sorted(outbox.items()):
        if isinstance(value, SelectedRows):
            assert value.array is not None
            yield Part(rows_at(index), 0, as_bytes(value.row_array))
            yield Part(values_at(index), 0, as_bytes(np.ascontiguousarray(value.array)))
        else:
            yield Part(values_at(index), 0, as_bytes(value))
