"""A thread that pushes the gradients of several steps together while the next ones are computed.

It merges, waits and pulls like ``AsyncCommunicator`` of Fluid 1.8.5,
``operators/distributed/communicator.cc``, but in one thread: Fluid has a task for each gradient and another
thread for pulls.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from paddlelike.core import SelectedRows
from paddlelike.distributed.client.outbox import Outbox, Value
from paddlelike.distributed.placement import SEEN, Entry, Kind
from paddlelike.foundation.locks import Condition
from paddlelike.foundation.threads import Thread

_POLL = 1.0  # seconds until gradients of a step that has no end are pushed
_PAUSE = 0.01  # seconds between two pulls that may be stale, and for one wait for gradients


@dataclass(slots=True)
class _Sum:
    """The sum of several gradients for one entry of a server."""

    entry: Entry
    value: Value
    count: int = 1


class Background:
    """The thread of a :class:`~paddlelike.distributed.communicator.Communicator`.

    Each gradient is part of one push, which the server applies once. Parameters are pulled into the arrays
    that training reads.

    Parameters
    ----------
    most
        The largest number of steps whose gradients are pushed together; a further step waits.
    average
        Push the mean of the steps; else their sum.
    waits
        The hundredths of a second without a further step after which fewer steps than ``most`` are pushed.
    unseen
        The parameters are pulled when more than this many steps were pushed since the last pull; if it is
        above 0, at least a hundredth of a second passes between two pulls.
    """

    def __init__(self, *, most: int = 20, average: bool = False, waits: int = 0, unseen: int = 0) -> None:
        self._most, self._waits, self._unseen = most, waits, unseen
        self._average = average
        self._changed = Condition()
        self._sums: dict[tuple[int, int], _Sum] = {}
        self._is_whole = False  # whether the sums have all gradients of a step
        self._is_pushing = False
        self._is_flushing = False  # whether a caller waits until the sums are pushed
        self._ending = False
        self._error: BaseException | None = None
        self._thread: Thread | None = None

    def start(self, push: Callable[[Sequence[Outbox]], None], pull: Callable[[], None], servers: int) -> None:
        """Start the thread.

        Parameters
        ----------
        push, pull
            A function that pushes the outboxes it receives, by server, and a function that pulls all
            parameters.
        servers
            The number of servers.
        """
        thread = Thread(partial(self._run, push, pull, servers), "paddlelike-communicator")
        thread.start()
        self._thread = thread

    def put(self, server: int, entry: Entry, value: Value) -> None:
        """Add a gradient to the next push; wait while it is full. Raises the errors of :meth:`check`."""
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
                self._is_whole = True  # of the step before
                self._changed.notify_all()

    def end_step(self) -> None:
        """Let the thread push the gradients of the step."""
        if self._sums and not self._is_whole:
            with self._changed.hold():
                self._is_whole = bool(self._sums)
                self._changed.notify_all()
        self.check()

    def flush(self) -> None:
        """Wait until everything is pushed. Raises the errors of :meth:`check`."""
        with self._changed.hold():
            self._changed.notify_all()
            self._changed.wait_for(self._is_flushed)
        self.check()

    def check(self) -> None:
        """Raise the error that ended the thread, if there is one."""
        if self._error is not None:
            raise self._error

    def stop(self) -> None:
        """Push the remaining gradients and end. Raises the errors of :meth:`check`."""
        self.abandon()
        self.check()

    def abandon(self) -> None:
        """Push the remaining gradients and end; errors are not raised."""
        with self._changed.hold():
            self._ending = True
            self._changed.notify_all()
        if self._thread is not None:
            self._thread.wait()

    def _run(self, push: Callable[[Sequence[Outbox]], None], pull: Callable[[], None], servers: int) -> None:
        rest = _PAUSE if self._unseen else 0.0
        unseen, pulled = 0, time.monotonic()  # steps that were pushed since the last pull
        try:
            while True:
                is_due = unseen > self._unseen
                with self._changed.hold():
                    pause = max(pulled + rest - time.monotonic(), 0) if is_due else _POLL
                    is_ready = self._changed.wait_for(lambda: self._is_whole or self._is_urgent, pause)
                    ending, sums = self._ending, {}
                    if is_ready or not is_due:
                        self._wait_for_further()
                        sums, self._sums = self._sums, {}
                        self._is_whole, self._is_flushing, self._is_pushing = False, False, bool(sums)
                        self._changed.notify_all()
                if sums:
                    push(self._make_outboxes(sums, servers))
                    unseen += max(one.count for one in sums.values())
                    with self._changed.hold():
                        self._is_pushing = False
                        self._changed.notify_all()
                if ending or (unseen > self._unseen and time.monotonic() >= pulled + rest):
                    pull()
                    unseen, pulled = 0, time.monotonic()
                if ending and not sums:
                    return
        except BaseException as error:
            with self._changed.hold():
                self._error = error
                self._changed.notify_all()

    @property
    def _is_urgent(self) -> bool:
        return self._ending or self._is_flushing

    def _is_flushed(self) -> bool:
        self._is_flushing = bool(self._sums)  # until the thread takes them, whatever ends the wait
        return self._error is not None or not (self._sums or self._is_pushing)

    def _wait_for_further(self) -> None:
        """Wait for gradients of further steps, as long as they come and the push is not full."""
        while not self._is_urgent and 0 < (steps := self._steps) < self._most:
            if not self._changed.wait_for(partial(self._has_beyond, steps), self._waits * _PAUSE):
                return

    def _has_beyond(self, steps: int) -> bool:
        return self._is_urgent or self._steps > steps

    @property
    def _steps(self) -> int:
        return max((one.count for one in self._sums.values()), default=0)

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
