"""A thread that pushes the gradients of several steps together while the next ones are computed."""

from __future__ import annotations

import threading
from dataclasses import dataclass

import numpy as np

from paddlelike.core.tensor import SelectedRows
from paddlelike.distributed.client.calls import Calls, Outbox, Value
from paddlelike.distributed.server.table import Entry, Role
from paddlelike.errors import RoundRolledBack

__all__ = ["Background"]

_TURN = 1.0  # seconds between fetches while nothing is sent


@dataclass(slots=True)
class _Sum:
    """Gradients of one entry, added up."""

    entry: Entry
    value: Value
    count: int = 1


class Background:
    """What :class:`~paddlelike.distributed.communicator.Communicator` starts and stops.

    Each gradient is part of one push, which the server applies once. Parameters are fetched after every push,
    and written into the arrays that training reads meanwhile.

    Parameters
    ----------
    most
        Steps whose gradients go together at most; a step that would be one more waits.
    average
        Push the mean of the steps; else their sum.
    """

    def __init__(self, *, most: int = 20, average: bool = False) -> None:
        self._most = most
        self._average = average
        self._changed = threading.Condition()
        self._sums: dict[tuple[int, int], _Sum] = {}
        self._ending = False
        self._error: BaseException | None = None
        self._thread: threading.Thread | None = None
        self._calls: Calls | None = None

    def start(self, calls: Calls) -> None:
        """Begin."""
        self._calls = calls
        self._thread = threading.Thread(target=self._run, name="paddlelike-communicator", daemon=True)
        self._thread.start()

    def put(self, server: int, entry: Entry, value: Value) -> None:
        """Add a gradient to what goes next; waits while too much does."""
        key = server, entry.index
        with self._changed:
            self._changed.wait_for(
                lambda: self._error is not None or key not in self._sums or self._sums[key].count < self._most
            )
            self.check()
            found = self._sums.get(key)
            if found is None:
                self._sums[key] = _Sum(entry, value if isinstance(value, SelectedRows) else value.copy())
            else:
                found.value = _added(found.value, value)
                found.count += 1
            self._changed.notify_all()

    def check(self) -> None:
        """Raise what has ended the thread, if anything has."""
        if self._error is not None:
            raise self._error

    def stop(self) -> None:
        """Push what is left and end. Raises what has gone wrong meanwhile."""
        self.abandon()
        self.check()

    def abandon(self) -> None:
        """End; a lost job's gradients are dropped."""
        with self._changed:
            self._ending = True
            self._changed.notify_all()
        if self._thread is not None:
            self._thread.join()

    def _run(self) -> None:
        assert self._calls is not None
        try:
            while True:
                with self._changed:
                    self._changed.wait_for(lambda: self._sums or self._ending, _TURN)
                    sums, self._sums = self._sums, {}
                    ending = self._ending
                    self._changed.notify_all()
                reached = self._calls.push(self._outboxes(sums)) and self._calls.refresh()
                if not reached:
                    raise RoundRolledBack("the servers went back to a save", step=self._calls.round)
                if ending and not sums:
                    return
        except BaseException as error:
            with self._changed:
                self._error = error
                self._changed.notify_all()

    def _outboxes(self, sums: dict[tuple[int, int], _Sum]) -> list[Outbox]:
        assert self._calls is not None
        outboxes: list[Outbox] = [{} for _ in self._calls.endpoints]
        for (server, index), one in sums.items():
            value = one.value
            if self._average and one.entry.role != Role.COUNTER:
                value = _divided(value, one.count)
            outboxes[server][index] = value.merged() if isinstance(value, SelectedRows) else value
        return outboxes


def _added(a: Value, b: Value) -> Value:
    if isinstance(a, SelectedRows) and isinstance(b, SelectedRows):
        assert a.array is not None
        assert b.array is not None
        rows = np.concatenate([a.row_array, b.row_array])
        return SelectedRows(rows, a.height(), np.concatenate([a.array, b.array]))
    assert isinstance(a, np.ndarray)
    assert isinstance(b, np.ndarray)
    a += b
    return a


def _divided(value: Value, count: int) -> Value:
    if isinstance(value, SelectedRows):
        assert value.array is not None
        return SelectedRows(value.row_array, value.height(), value.array / value.array.dtype.type(count))
    value /= value.dtype.type(count)
    return value
