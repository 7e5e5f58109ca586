"""Bounds on calls that wait for their peer: how many may wait at once, and for how long.

A call whose peer neither sends nor reads holds a thread of the server. :class:`IdleWatch` cancels such a call
when its deadline has passed. If more calls wait than there are spare threads, it cancels the call that has
waited longest for its next message. A proper client sends its messages without a pause, so its waits are the
shortest.
"""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

from paddlelike.foundation.locks import Event, Lock
from paddlelike.foundation.threads import Thread

FIRST_MESSAGE: Final = 10.0  # seconds within which the first message of a call must come


class _Wait(NamedTuple):
    deadline: float
    cancel: Callable[[], object]


class IdleWatch:
    """Cancels calls that wait too long for their peer, and the oldest calls if too many wait.

    Parameters
    ----------
    limit
        Seconds that one wait may take; the first message of a call must also come within ``FIRST_MESSAGE``.
    most
        The number of calls that may wait at once.
    """

    def __init__(self, limit: float, most: int) -> None:
        self.limit = limit
        self._most = most
        self._waits: dict[object, _Wait] = {}
        self._lock = Lock()
        self._stop = Event()
        self._thread = Thread(self._run, "paddlelike-idle")

    def start(self) -> None:
        """Start the thread that cancels expired waits."""
        self._thread.start()

    def stop(self) -> None:
        """End the thread."""
        self._stop.set()
        self._thread.wait()

    def begin_wait(self, cancel: Callable[[], object], *, is_started: bool) -> object:
        """Record that a call waits for its peer; return the key for :meth:`end_wait`.

        Parameters
        ----------
        cancel
            Ends the call; may be called from another thread.
        is_started
            Whether the first message of the call has come.
        """
        key, now = object(), time.monotonic()
        limit = self.limit if is_started else min(self.limit, FIRST_MESSAGE)
        self._begin(key, _Wait(now + limit, cancel))
        return key

    @contextlib.contextmanager
    def watch_wait(self, cancel: Callable[[], object], limit: float | None) -> Iterator[None]:
        """Watch a wait that is the body of a ``with`` statement.

        ``limit`` is a number of seconds. None allows any time, as between two calls, until too many calls
        wait.
        """
        key = object()
        self._begin(key, _Wait(math.inf if limit is None else time.monotonic() + limit, cancel))
        try:
            yield
        finally:
            self.end_wait(key)

    def _begin(self, key: object, wait: _Wait) -> None:
        displaced = None
        with self._lock.hold():
            self._waits[key] = wait
            if len(self._waits) > self._most:
                displaced = self._waits.pop(next(iter(self._waits)))  # the oldest: dicts keep their order
        if displaced is not None:
            displaced.cancel()

    def end_wait(self, key: object) -> None:
        """Record the end of a wait, which may have been cancelled."""
        with self._lock.hold():
            self._waits.pop(key, None)

    def cancel_expired(self, now: float) -> None:
        """Cancel every wait whose deadline is before ``now`` (of the monotonic clock)."""
        with self._lock.hold():
            expired = [key for key, wait in self._waits.items() if wait.deadline < now]
            cancelled = [self._waits.pop(key) for key in expired]
        for wait in cancelled:
            wait.cancel()

    def _run(self) -> None:
        while not self._stop.wait(min(self.limit, FIRST_MESSAGE) / 4):
            self.cancel_expired(time.monotonic())
