"""A thread that pushes the gradients of several steps together while the next ones are computed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from paddlelike.core import SelectedRows
from paddlelike.distributed.client.outbox import Outbox, Value
from paddlelike.distributed.placement import SEEN, Entry, Kind
from paddlelike.foundation.locks import Condition
from paddlelike.foundation.threads import Thread

_POLL = 1.0  # seconds between pulls while nothing is pushed


@dataclass(slots=True)
class _Sum:
    """The sum of several gradients of one entry."""

    entry: Entry
    value: Value
    count: int = 1


class Background:
    """The thread of a :class:`~paddlelike.distributed.communicator.Communicator`.

    Each gradient is part of one push, which the server applies once. Parameters are pulled after every push,
    into the arrays that training reads.

    Parameters
    ----------
    most
        The largest number of steps whose gradients are pushed together; a further step waits.
    average
        Push the mean of the steps; else their sum.
    """

    def __init__(self, *, most: int = 20, average: bool = False) -> None:
        self._most = most
        self._average = average
        self._changed = Condition()
        self._sums: dict[tuple[int, int], _Sum] = {}
        self._ending = False
        self._error: BaseException | None = None
        self._thread: Thread | None = None

    def start(self, push: Callable[[Sequence[Outbox]], None], servers: int) -> None:
        """Start the thread.

        Parameters
        ----------
        push
            Called with the outboxes by server, also empty ones; pushes them and pulls all parameters.
        servers
            The number of servers.
        """
        thread = Thread(partial(self._run, push, servers), "paddlelike-communicator")
        thread.start()
        self._thread = thread

    def put(self, server: int, entry: Entry, value: Value) -> None:
        """Add a gradient to the next push; wait while that is full. Raises as :meth:`check`."""
        key = server, entry.index
        with self._changed.hold():
            self._changed.wait_for(
                lambda: self._error is not None or key not in self._sums or self._sums[key].count < self._most
            )
            self.check()
            found = self._sums.get(key)
            if found is None:
                self._sums[key] = _Sum(entry, value if isinstance(value, SelectedRows) else value.copy())
            else:
                found.value = _add(found.value, value)
                found.count += 1
            self._changed.notify_all()

    def check(self) -> None:
        """Raise the error that ended the thread, if there is one."""
        if self._error is not None:
            raise self._error

    def stop(self) -> None:
        """Push the remaining gradients and end. Raises as :meth:`check`."""
        self.abandon()
        self.check()

    def abandon(self) -> None:
        """Push the remaining gradients and end; errors are not raised."""
        with self._changed.hold():
            self._ending = True
            self._changed.notify_all()
        if self._thread is not None:
            self._thread.wait()

    def _run(self, push: Callable[[Sequence[Outbox]], None], servers: int) -> None:
        try:
            while True:
                with self._changed.hold():
                    self._changed.wait_for(lambda: self._sums or self._ending, _POLL)
                    sums, self._sums = self._sums, {}
                    ending = self._ending
                    self._changed.notify_all()
                push(self._make_outboxes(sums, servers))
                if ending and not sums:
                    return
        except BaseException as error:
            with self._changed.hold():
                self._error = error
                self._changed.notify_all()

    def _make_outboxes(self, sums: dict[tuple[int, int], _Sum], servers: int) -> list[Outbox]:
        outboxes: list[Outbox] = [{} for _ in range(servers)]
        for (server, index), one in sums.items():
            value = one.value
            if self._average and one.entry.kind != Kind.COUNTER and not one.entry.name.endswith(SEEN):
                value = _divide(value, one.count)
            outboxes[server][index] = value.merge() if isinstance(value, SelectedRows) else value
        return outboxes


def _add(a: Value, b: Value) -> Value:
    if isinstance(a, SelectedRows) and isinstance(b, SelectedRows):
        assert a.held_array is not None
        assert b.held_array is not None
        rows = np.concatenate([a.row_array, b.row_array])
        return SelectedRows(rows, a.height(), np.concatenate([a.held_array, b.held_array]))
    assert isinstance(a, np.ndarray)
    assert isinstance(b, np.ndarray)
    a += b
    return a


def _divide(value: Value, count: int) -> Value:
    if isinstance(value, SelectedRows):
        assert value.held_array is not None
        return SelectedRows(
            value.row_array, value.height(), value.held_array / value.held_array.dtype.type(count)
        )
    value /= value.dtype.type(count)
    return value
