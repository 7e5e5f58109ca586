"""A trainer's end: gradients into one push per server, rounds, and parameters straight into their arrays."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from paddlelike.core import memory
from paddlelike.core.tensor import SelectedRows
from paddlelike.distributed.client.background import Background
from paddlelike.distributed.client.calls import Calls, Outbox, Value
from paddlelike.distributed.client.receivers import Pieces
from paddlelike.distributed.server.table import Entry, Role, base_name, values_at
from paddlelike.distributed.settings import Settings
from paddlelike.distributed.wire import Into, Receiver
from paddlelike.errors import EnforceNotMet, GraphError, RoundRolledBack

__all__ = ["Trainer"]

Array = np.ndarray[Any, Any]

_SAME = "trainers and servers must be transpiled from the same network in the same way"
_MOST_IDS = 1 << 34  # bytes of the row numbers of a table


class Trainer:
    """One trainer of a job: its round, what it is about to send, what it received.

    Its methods are called by one thread at a time.

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
        self.trainer = trainer
        self.endpoints = tuple(endpoints)
        self._outbox: list[Outbox] = [{} for _ in endpoints]
        self._taken: set[tuple[int, int]] = set()
        self._background: Background | None = None
        self.follows = False  # whether the training loop goes where the servers go
        self.is_adrift = False  # whether the rest of a step is void, since the servers went elsewhere
        self.is_behind = False  # whether the scope still holds parameters from before they did
        self.calls = Calls(trainer, endpoints, Settings.from_environment() if settings is None else settings)
        self.tables = self.calls.tables
        self.mode = self.calls.mode

    @property
    def round(self) -> int:
        """The round (asynchronous: the update of this process) that comes next."""
        return self.calls.round

    # What operators do

    def send(self, endpoint: str, name: str, value: Value) -> None:
        """Put a gradient (or a block of its rows) into the next push to a server."""
        if self.is_adrift:
            return
        if self.is_behind:
            raise self._rolled_back()
        server, entry = self._find(endpoint, base_name(name))
        value = _fitting(entry, name, value, endpoint)
        if self._background is not None:
            self._background.put(server, entry, value)
            return
        if entry.index in self._outbox[server]:  # the step before had no barrier, or never came to it
            self._forget_outbox() if self.mode == "sync" else self.flush()
        self._outbox[server][entry.index] = value

    def barrier(self) -> None:
        """Push the step's gradients; once all servers have them, have the round applied and fetch it."""
        if self.mode != "sync":
            self.flush()
            return
        if not self.is_adrift:
            self._check_whole()
            self._check_still_there(self.calls.push(self._outbox), in_step=True)
        self._forget_outbox()
        if not self.is_adrift:
            self._check_still_there(self.calls.commit(), in_step=True)
            self._taken.clear()

    def flush(self) -> None:
        """Send what waits, where servers do not go by rounds."""
        if self.mode == "sync":
            self.barrier()
        elif any(self._outbox):
            self._check_still_there(self.calls.push(self._outbox))
            self._forget_outbox()

    def receive(self, endpoint: str, name: str) -> Array:
        """The newest values of a parameter: an array that later rounds overwrite."""
        server, entry = self._find(endpoint, name)
        key = server, entry.index
        if entry.index not in self.calls.values[server]:
            return self.pull([(endpoint, name)])[0]
        if self._background is not None:
            self._background.check()
        elif not self.is_adrift and (any(self._outbox) or key in self._taken):
            self.refresh()
        self._taken.add(key)
        self.is_behind = False
        return self.calls.values[server][entry.index]

    def refresh(self) -> None:
        """Send what waits and fetch all parameters."""
        if any(self._outbox):
            self.flush()
            if self.mode == "sync":
                return
        self._check_still_there(self.calls.refresh())
        self._taken.clear()

    def lookup(self, wanted: Sequence[tuple[str, str, Array]]) -> list[Array]:
        """Rows of tables: (endpoint, table, ids (n,)), one for each server at most -> (n, width) each."""
        tables: dict[int, str] = {}
        ids: dict[int, Array] = {}
        rows: dict[int, Array] = {}
        found = []
        for endpoint, name, asked in wanted:
            server, entry = self._find(endpoint, name)
            found.append(np.zeros((len(asked), *entry.shape[1:]), entry.numpy_dtype))
            if asked.size:
                assert server not in ids, "two tables of one server at once"
                tables[server], rows[server] = name, found[-1]
                ids[server] = np.ascontiguousarray(asked, np.int64)
        if not self.is_adrift:
            self._check_still_there(self.calls.prefetch(tables, ids, rows), in_step=True)
        return found

    def close(self) -> None:
        """Send what waits and tell every server that this trainer has finished; a lost job is only left.

        Raises
        ------
        RoundRolledBack
            The servers went back meanwhile: steps are to be trained again, by this process started anew.
        """
        try:
            if not self.calls.is_lost:
                self.go_by_itself(None)
                if self.mode != "sync":
                    self.flush()
                self._check_still_there(self.calls.complete())
        finally:
            self.abandon()

    def abandon(self) -> None:
        """Leave without a word, as a process that is killed does."""
        if self._background is not None:
            self._background.abandon()
        self.calls.disconnect()

    def go_by_itself(self, background: Background | None) -> None:
        """Let a thread push gradients, of several steps together, and fetch parameters; None: no more."""
        before, self._background = self._background, background
        if before is not None:
            before.stop()
        if background is not None:
            self.flush()
            background.start(self.calls)

    # What saves do

    def pull(self, wanted: Sequence[tuple[str, str]]) -> list[Array]:
        """Any variables, as (endpoint, name), in arrays of their own: optimizer state, schedules, slices."""
        places = [self._find(endpoint, name) for endpoint, name in wanted]
        slices: list[dict[int, Array]] = [{} for _ in self.endpoints]
        for server, entry in places:
            slices[server].setdefault(entry.index, memory.empty(entry.shape, entry.numpy_dtype))
        receivers = [functools.partial(_into, arrays) for arrays in slices]
        numbers = [tuple(arrays) for arrays in slices]
        self._check_still_there(self.calls.pull(list(zip(numbers, receivers, strict=True))))
        return [slices[server][entry.index] for server, entry in places]

    def stream(self, wanted: tuple[str, str], sink: Callable[[], Receiver]) -> None:
        """The bytes of one variable into a receiver; into another one when the call has to be repeated."""
        server, entry = self._find(*wanted)
        self._check_still_there(self.calls.pull_one(server, entry.index, sink))

    def rows(self, wanted: tuple[str, str]) -> Array:
        """The ids that a server's shard of a table holds, (n,) int64, in the order of its rows."""
        server, entry = self._find(*wanted)
        pieces: list[Pieces] = []

        def receiver() -> Receiver:
            pieces.append(Pieces(_MOST_IDS))
            return pieces[-1]

        number = len(self.tables[server]) + entry.index
        self._check_still_there(self.calls.pull_one(server, number, receiver))
        return np.frombuffer(pieces[-1].joined(), np.int64)

    def write(self, directory: str, names: Sequence[str]) -> dict[str, Mapping[str, Any]]:
        """Have every server write its rows of these files of a directory; what each says, by endpoint."""
        said = self.calls.save(directory, {"names": list(names)})
        self._check_still_there(said is not None)
        assert said is not None
        return dict(zip(self.endpoints, said, strict=True))

    # Helpers

    def _check_still_there(self, reached: bool, *, in_step: bool = False) -> None:
        """Note it where the servers went back to a save.

        ``in_step``: the rest of a step may be void; anything else, such as a save, has to be told.
        """
        if reached:
            return
        self._forget_outbox()
        self._taken.clear()
        self.is_behind = True
        if not (self.follows and in_step):
            raise self._rolled_back()
        self.is_adrift = True

    def _rolled_back(self) -> RoundRolledBack:
        return RoundRolledBack(
            f"the servers went back to step {self.round}",
            step=self.round,
            hint="a loop over resumable_steps goes on from there; else run the startup program again first",
        )

    def _find(self, endpoint: str, name: str) -> tuple[int, Entry]:
        """The number of a server, and its entry of that name."""
        if endpoint not in self.endpoints:
            raise GraphError(f"{endpoint!r} is none of this trainer's servers: {', '.join(self.endpoints)}")
        server = self.endpoints.index(endpoint)
        table = self.tables[server]
        entry = table.get(name)
        if entry is None:
            raise GraphError(
                f"the server at {endpoint} has no {name!r}; it has "
                f"{', '.join(e.name for e in list(table)[:8])}{', ...' if len(table) > 8 else ''}",
                hint=_SAME,
            )
        return server, entry

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


def _fitting(entry: Entry, name: str, value: Value, endpoint: str) -> Value:
    """A gradient as it travels: rows each once, arrays contiguous. Raises GraphError."""
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
            f"{name!r} is {dtype}{list(found)} here, {entry.numpy_dtype}{list(entry.shape)} there", hint=_SAME
        )
    return value


def _no_rows(entry: Entry) -> SelectedRows:
    return SelectedRows([], entry.shape[0], np.empty((0, *entry.shape[1:]), entry.numpy_dtype))


def _into(arrays: Mapping[int, Array]) -> Into:
    return Into({values_at(index): array for index, array in arrays.items()})
