"""Threads that interrupts cannot break, and waits for them that always end.

``threading.Thread.start`` waits until the new thread reports that it runs. An interrupt of this wait may
leave a lock taken that the new thread needs, and a thread that dies for lack of memory never reports. Here a
thread that is never interrupted starts the others. If no thread has begun some work after a few seconds, the
thread that waits for it does it.

A process forks only when no other thread imports a module. Otherwise the child would wait forever for the
lock of that module, or find it half imported.
"""

from __future__ import annotations

import _thread
import contextlib
import os
import sys
import threading
import time
import weakref
from collections.abc import Callable
from queue import Empty, SimpleQueue
from typing import Any, Final, Generic, TypeVar

from paddlelike.foundation.locks import Event

Result = TypeVar("Result")

_PATIENCE: Final = 5.0  # seconds for a thread to begin, before others do its work
_LONGEST_IMPORT: Final = 5.0  # seconds that forks wait for an import of another thread


class Thread:
    """Does ``work`` once, in a new thread; the interpreter waits for its end unless it is a daemon.

    Attributes
    ----------
    name
        The name of the thread, for debuggers.
    """

    def __init__(self, work: Callable[[], object], name: str, *, daemon: bool = True) -> None:
        self.name = name
        self._work = [work]  # the thread that removes it does the work
        self._daemon = daemon
        self._is_started = False
        self._begun, self._ended = Event(), Event()
        self._ident: int | None = None

    def start(self) -> None:
        """Start the thread. Raises RuntimeError if none can be started, or if nothing would wait for it."""
        if not self._daemon and _is_ending():  # for example in an atexit function
            self.cancel()
            raise RuntimeError(f"the interpreter is about to end, and no thread is started for {self.name}")
        self._is_started = True
        try:
            _thread.start_new_thread(self._start, ())
        except (RuntimeError, MemoryError) as error:
            self.cancel()
            raise RuntimeError(f"no thread can be started for {self.name}") from error
        self._begun.wait(_PATIENCE)  # from then on the interpreter knows of it

    def wait(self, timeout: float | None = None) -> bool:
        """Wait for the end of the work, unless it was never started; return whether it has ended."""
        self.ensure_begun(timeout)
        return not self._is_started or self._ended.wait(timeout)

    def ensure_begun(self, timeout: float | None = None) -> None:
        """Do the work in this thread if no other has begun it within seconds and ``timeout`` has not
        passed.
        """
        patience = _PATIENCE if timeout is None else min(timeout, _PATIENCE)
        if self._is_started and not self._begun.wait(patience) and patience == _PATIENCE:
            self._run()

    def cancel(self) -> bool:
        """Cancel the work unless it has begun. Return whether the work is cancelled."""
        with contextlib.suppress(IndexError):
            self._work.pop()
            self._begun.set()
            self._ended.set()
            return True
        return False

    def is_running(self) -> bool:
        """Return whether the work has not ended."""
        return self._is_started and not self._ended.is_set()

    def is_current(self) -> bool:
        """Return whether the calling thread does the work."""
        return self._ident == threading.get_ident() and self.is_running()

    def _start(self) -> None:
        try:
            threading.Thread(target=self._run, name=self.name, daemon=self._daemon).start()
        except (RuntimeError, MemoryError):  # no other thread can be started
            self._run()

    def _run(self) -> None:
        try:
            work = self._work.pop()
        except IndexError:
            return
        self._ident = threading.get_ident()
        self._begun.set()
        try:
            work()
        finally:
            self._ended.set()


def _is_ending() -> bool:
    """Return whether the main thread has ended, so that Python no longer waits for other threads.

    Before Python 3.13, ``main_thread().is_alive()`` stays false after an interrupt of a call.
    """
    main = threading.main_thread()
    return bool(main._is_stopped) if hasattr(main, "_is_stopped") else not main.is_alive()


_importlib = sys.modules["_frozen_importlib"]
_module_locks: dict[str, Callable[[], object]] = getattr(_importlib, "_module_locks", {})


_outlasted: weakref.WeakSet[object] = weakref.WeakSet()  # locks of imports that a fork no longer waits for


def _list_imports() -> list[object]:
    """Return the locks of modules that other threads import, from CPython's own table of locks."""
    locks = [reference() for reference in list(_module_locks.values())]
    ours = {None, threading.get_ident()}
    return [lock for lock in locks if getattr(lock, "owner", None) not in ours and lock not in _outlasted]


def _wait_for_imports() -> None:
    ends = time.monotonic() + _LONGEST_IMPORT
    while imports := _list_imports():
        if time.monotonic() > ends:
            _outlasted.update(imports)
            return
        time.sleep(0.001)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_wait_for_imports)


class Task(Generic[Result]):
    """A call that a thread of a :class:`Pool` makes or, without threads, the thread that needs the result."""

    def __init__(self, call: Callable[[], Result]) -> None:
        self._calls = [call]
        self._ended = Event()
        self._result: list[Result] = []
        self._error: BaseException | None = None

    def run(self) -> None:
        """Make the call, unless it was made or cancelled."""
        try:
            call = self._calls.pop()
        except IndexError:
            return
        try:
            self._result.append(call())
        except BaseException as error:  # raised by result()
            self._error = error
            if not isinstance(error, Exception):  # such as Ctrl-C
                raise
        finally:
            self._ended.set()

    def result(self, timeout: float | None = None) -> Result:
        """Wait for the end of the call; return its result or raise its error.

        Raises TimeoutError if it has not ended after ``timeout`` seconds.
        """
        if not self.wait(timeout):
            raise TimeoutError(f"the call has not ended after {timeout} s")
        if self._error is not None:
            raise self._error
        return self._result[0]

    def wait(self, timeout: float | None = None) -> bool:
        """Wait for the end of the call, for ``timeout`` seconds at most; return whether it has ended."""
        return self._ended.wait(timeout)

    def cancel(self) -> bool:
        """Cancel the call unless it has begun. Return whether it has ended or was cancelled."""
        if self._calls:
            try:
                self._calls.pop()
            except IndexError:
                return self._ended.is_set()
            self._ended.set()
        return self._ended.is_set()


class Pool:
    """Up to ``count`` threads that begin calls in order, and end with the pool.

    ``concurrent.futures`` waits inside locks that an interrupt leaves taken.

    >>> with Pool(2, "sums") as pool:
    ...     pool.submit(sum, [1, 2]).result()
    3
    """

    def __init__(self, count: int, name: str) -> None:
        self._count = count
        self._name = name
        self._tasks: SimpleQueue[Task[Any] | None] = SimpleQueue()
        self._threads: list[Thread] = []
        weakref.finalize(self, self._tasks.put, None)

    def submit(self, function: Callable[..., Result], *args: Any) -> Task[Result]:
        """Let a thread call ``function(*args)``; if no thread is free, the caller does it."""
        task: Task[Result] = Task(lambda: function(*args))
        if len(self._threads) < self._count:
            thread = Thread(lambda tasks=self._tasks: _work(tasks), self._name)  # type: ignore[misc]
            self._threads.append(thread)  # first: close() ends it, though an interrupt comes here
            try:
                thread.start()
            except RuntimeError:
                self._threads.remove(thread)
                if not self._threads:
                    task.run()
                    return task
        self._tasks.put(task)
        return task

    def map(self, function: Callable[[Any], Result], items: Any) -> list[Result]:
        """Return ``[function(item) for item in items]``; raise the first error after the last call's end."""
        tasks = [self.submit(function, item) for item in items]
        for task in tasks:
            task.wait()
        return [task.result() for task in tasks]

    def close(self) -> None:
        """Cancel the calls that have not begun, and wait for the others."""
        with contextlib.suppress(Empty):
            while (task := self._tasks.get_nowait()) is not None:
                task.cancel()
        self._tasks.put(None)  # one for all threads, since an interrupt may come here
        for thread in self._threads:
            thread.wait()

    def __enter__(self) -> Pool:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _work(tasks: SimpleQueue[Task[Any] | None]) -> None:
    while (task := tasks.get()) is not None:
        with contextlib.suppress(BaseException):  # that result() raises
            task.run()
        del task
    tasks.put(None)  # for the next thread
