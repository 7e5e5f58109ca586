"""Run independent pieces of work in a few threads, of which the calling thread is one.

A thread that cannot be started (a limit on processes, no memory for its stack) is done without, and one that
dies before it takes any work is never waited for: the calling thread then does all the work itself. That is
why this is not a ``ThreadPoolExecutor``, which waits for a thread to report that it has started.
"""

from __future__ import annotations

import _thread
import os
import threading
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, TypeVar

__all__ = ["THREADS", "map_in_threads", "run_in_threads"]

T = TypeVar("T")
S = TypeVar("S")

THREADS: Final = min(4, os.cpu_count() or 1)


def run_in_threads(tasks: Sequence[Callable[[], T]], threads: int = THREADS) -> list[T]:
    """Call every task, several at once, and return their results in order.

    The first exception of a task is raised after all running tasks have ended; tasks that have not begun by
    then are not called.
    """
    work = _Work(tasks)
    for _ in range(min(threads, len(tasks)) - 1):
        try:
            _thread.start_new_thread(work.run, ())
        except (RuntimeError, MemoryError):  # no more threads here
            break
    work.run()
    work.wait()
    return work.results


def map_in_threads(function: Callable[[S], T], items: Iterable[S], threads: int = THREADS) -> list[T]:
    """Return ``[function(item) for item in items]``, computed in several threads."""
    return run_in_threads([lambda item=item: function(item) for item in items], threads)  # type: ignore[misc]


class _Work:
    """Tasks that several threads take one after the other."""

    def __init__(self, tasks: Sequence[Callable[[], Any]]) -> None:
        self._tasks = tasks
        self._next = 0
        self._running = 0
        self._changed = threading.Condition()
        self._error: BaseException | None = None
        self.results: list[Any] = [None] * len(tasks)

    def run(self) -> None:
        """Take tasks until none is left or one has failed."""
        while True:
            with self._changed:
                index = self._next
                if index >= len(self._tasks) or self._error is not None:
                    return
                self._next += 1
                self._running += 1
            try:
                self.results[index] = self._tasks[index]()
            except BaseException as error:  # raised again in the calling thread
                with self._changed:
                    self._error = self._error or error
            finally:
                with self._changed:
                    self._running -= 1
                    self._changed.notify_all()

    def wait(self) -> None:
        """Wait for the tasks that other threads have begun; raise the first error.

        Raises
        ------
        BaseException
            Whatever a task raised.
        """
        with self._changed:
            while self._running:
                self._changed.wait()
        if self._error is not None:
            raise self._error
