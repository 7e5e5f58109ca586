"""Independent pieces of work, run in several threads that include the calling one.

If a thread cannot be started (a limit on processes, no memory for its stack) or dies before it takes any
work, the calling thread does the work itself. A ``ThreadPoolExecutor`` would wait for ever until such a
thread reports that it has started.
"""

from __future__ import annotations

import _thread
import os
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, TypeVar

from paddlelike.foundation.locks import Event, make_keys

T = TypeVar("T")
S = TypeVar("S")

THREADS: Final = min(4, os.cpu_count() or 1)


def run_in_threads(tasks: Sequence[Callable[[], T]], threads: int = THREADS) -> list[T]:
    """Call every task, several at once, and return their results in order.

    The first exception of a task is raised after all running tasks have ended; remaining tasks are not
    called.
    """
    work = _Work(tasks)
    try:
        for _ in range(min(threads, len(tasks)) - 1):
            try:
                _thread.start_new_thread(work.run, ())
            except (RuntimeError, MemoryError):  # no more threads here
                break
        work.run()
        work.wait()
    except BaseException as error:  # Ctrl-C: no other thread continues when this returns
        work.error = work.error or error
        work.wait()
    if work.error is not None:
        raise work.error
    return work.results


def map_in_threads(function: Callable[[S], T], items: Iterable[S], threads: int = THREADS) -> list[T]:
    """Return ``[function(item) for item in items]``, computed in several threads."""
    return run_in_threads([lambda item=item: function(item) for item in items], threads)  # type: ignore[misc]


class _Work:
    """A list of tasks that several threads share; each thread takes the next task."""

    def __init__(self, tasks: Sequence[Callable[[], Any]]) -> None:
        self._tasks = tasks
        self._left = deque(range(len(tasks)))
        self._running: list[bool] = []  # an item for each thread that takes or does a task
        self._run = make_keys(self._running.append, self._running.pop)
        self._ended = Event()
        self.error: BaseException | None = None
        self.results: list[Any] = [None] * len(tasks)

    def run(self) -> None:
        """Take tasks until no task is left or one has failed."""
        try:
            with self._run():
                while self._left and self.error is None:
                    self._run_next()
        finally:
            self._ended.set()

    def _run_next(self) -> None:
        try:
            index = self._left.popleft()
        except IndexError:  # another thread was faster
            return
        try:
            self.results[index] = self._tasks[index]()
        except BaseException as error:  # raised again in the calling thread
            self.error = self.error or error

    def wait(self) -> None:
        """Wait for the tasks that other threads have begun."""
        while self._running:
            self._ended.clear()
            if self._running:
                self._ended.wait()
