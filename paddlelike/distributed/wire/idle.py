"""Calls whose peer stops in the middle, without closing: cancelled, so that they hold no thread for long."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

__all__ = ["Watch"]


class Watch:
    """Cancels what waits longer than ``limit`` seconds for a peer."""

    def __init__(self, limit: float) -> None:
        self._limit = limit
        self._waiting: dict[object, tuple[float, Callable[[], object]]] = {}
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        self._thread = threading.Thread(target=self._run, name="paddlelike-idle", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._stop.set()
        if self._thread is not None:
            self._thread.join()

    def waits(self, cancel: Callable[[], object]) -> object:
        """A wait for a peer begins, which ``cancel`` can end from another thread; a key to end it by."""
        key = object()
        self._waiting[key] = time.monotonic() + self._limit, cancel
        return key

    def goes_on(self, key: object) -> None:
        """That wait has ended, in whichever thread."""
        del self._waiting[key]

    def check(self, now: float) -> None:
        """Cancel what has waited too long at the time ``now`` of the monotonic clock."""
        for key, entry in list(self._waiting.items()):
            end, cancel = entry
            if end < now and key in self._waiting:
                cancel()

    def _run(self) -> None:
        while not self._stop.wait(self._limit / 4):
            self.check(time.monotonic())
