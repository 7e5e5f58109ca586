"""Asynchronous saves, which run in a thread beside training: their handle, and the memory of their copies.

One save runs at a time. Every failure is reported at least once: by the handle, else by the next save, else
when the interpreter exits, on stderr and with exit code 1. A running save is finished before the exit.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import sys
import threading
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final

import numpy as np

from paddlelike.core import memory
from paddlelike.errors import PaddlelikeError, SaveError
from paddlelike.io.report import SaveReport

__all__ = [
    "Copies",
    "PendingSave",
    "check_pending",
    "discard_pending",
    "pending_lock",
    "start_save",
    "wait_for_pending",
]

Array = np.ndarray[Any, Any]

_LARGE: Final = 64 << 10  # bytes; memory of smaller copies is not reused
_PARALLEL: Final = 64 << 20  # bytes from which on several threads copy
_CHUNK: Final = 16 << 20  # bytes that one thread copies at a time


class PendingSave:
    """The handle of a save that runs beside the program: ``work`` saves ``target`` in a thread of its own.

    >>> save = PendingSave("model", lambda: SaveReport("model"))
    >>> save.wait(10.0).target, save.done()
    ('model', True)
    """

    def __init__(self, target: str, work: Callable[[], SaveReport]) -> None:
        self.target = target
        self._work: Callable[[], SaveReport] | None = work
        self._report: SaveReport | None = None
        self._error: BaseException | None = None
        self._finished = threading.Event()
        self._thread = threading.Thread(target=self._run, name="paddlelike-save", daemon=False)
        try:
            self._thread.start()
        except RuntimeError:  # no thread can be started: a limit of the system, or the interpreter exits
            self._run()

    def done(self) -> bool:
        """Return whether the save has ended, with or without an error."""
        return self._finished.is_set()

    def wait(self, timeout: float | None = None) -> SaveReport:
        """Wait for the end of the save and return its report.

        Raises
        ------
        TimeoutError
            It has not ended after ``timeout`` seconds.
        SaveError
            The save failed; the directory is as it was.
        """
        if not self._finished.wait(timeout):
            raise TimeoutError(f"the save into {self.target} has not ended after {timeout} s")
        if self._error is not None:
            _mark_reported(self)
            raise self._error
        assert self._report is not None
        return self._report

    @property
    def report(self) -> SaveReport:
        """The report of the save; waits for its end, and raises the exception that ended it."""
        return self.wait()

    @property
    def error(self) -> BaseException | None:
        """The exception that ended the save, or None. Reading it does not mark it as reported."""
        return self._error

    def __repr__(self) -> str:
        state = "running" if not self.done() else "failed" if self._error is not None else "done"
        return f"<PendingSave into {self.target}: {state}>"

    def _run(self) -> None:
        work, self._work = self._work, None
        assert work is not None
        try:
            self._report = work()
        except BaseException as error:  # raised again by wait()
            self._error = error
        finally:
            del work  # frees the copies
            self._finished.set()


class _State:
    """The running save, and the saves whose failure has not been reported."""

    def __init__(self) -> None:
        self.last: PendingSave | None = None
        self.unreported: list[PendingSave] = []
        self.lock = threading.RLock()  # held by the thread that begins a save
        self.guard = threading.Lock()  # held for a moment, where `last` changes
        self.registered_in = 0  # the id of the process in which the exit handlers are registered


_state: Final = _State()


def pending_lock() -> threading.RLock:
    """Return the lock that a thread holds while it begins a save and uses the memory of the copies."""
    return _state.lock


def start_save(target: str, work: Callable[[], SaveReport]) -> PendingSave:
    """Begin a save in a thread. The one before has ended: see :func:`check_pending`."""
    _register_exit_handlers()
    save = PendingSave(target, work)
    with _state.guard:
        _state.last = save
    _state.unreported.append(save)
    return save


def check_pending() -> None:
    """Wait for the running save, and raise its failure unless that has been reported.

    Raises
    ------
    SaveError
        The save before failed.
    """
    last = _state.last
    if last is None:
        return
    last._finished.wait()
    with _state.guard:
        if _state.last is last:  # else another thread has begun one meanwhile, which the next save waits for
            _state.last = None
    failed = last in _state.unreported and last.error is not None
    _mark_reported(last)
    if failed:
        error = last.error
        reason = error.message if isinstance(error, PaddlelikeError) else f"{type(error).__name__}: {error}"
        raise SaveError(
            f"the asynchronous save into {last.target} failed, and this save was not begun: {reason}",
            hint=getattr(error, "hint", None) or "save again; wait() of the handle reports a failure earlier",
        ) from error


def wait_for_pending() -> None:
    """Wait for the running save, if there is one; its failure is reported later.

    Every function that reads files calls this first, so that it sees what was saved before.
    """
    last = _state.last
    if last is not None and last._thread is not threading.current_thread():
        last._finished.wait()


def discard_pending() -> None:
    """Forget the running save and all failures, as in a process that was forked while saving."""
    _state.last = None
    _state.unreported.clear()
    _state.lock = threading.RLock()
    _state.guard = threading.Lock()


def _mark_reported(save: PendingSave) -> None:
    with contextlib.suppress(ValueError):
        _state.unreported.remove(save)


class Copies:
    """Copies of arrays, whose memory is reused by the copies of the next save.

    Memory that a save does not reuse is returned to the system.
    """

    def __init__(self) -> None:
        self._free: dict[int, list[Array]] = {}
        self._used: list[Array] = []

    def copy(self, arrays: Iterable[Array]) -> list[Array]:
        """Return copies of the arrays in C order, which are valid until :meth:`release`."""
        sources = list(arrays)
        copies = [self._take(array) for array in sources]
        self._free = {}
        if sum(array.nbytes for array in sources) < _PARALLEL:
            for target, source in zip(copies, sources, strict=True):
                np.copyto(target, source)
            return copies
        pieces = [piece for pair in zip(copies, sources, strict=True) for piece in _split(*pair)]
        with ThreadPoolExecutor(min(4, os.cpu_count() or 1), "paddlelike-copy") as pool:
            list(pool.map(lambda piece: np.copyto(*piece), pieces))
        return copies

    def release(self) -> None:
        """End the use of the copies; their memory is for the next ones."""
        for buffer in self._used:
            self._free.setdefault(buffer.nbytes, []).append(buffer)
        self._used = []

    def _take(self, like: Array) -> Array:
        if like.nbytes < _LARGE:
            return np.empty(like.shape, like.dtype)
        kept = self._free.get(like.nbytes)
        buffer = kept.pop() if kept else memory.empty((like.nbytes,), np.dtype(np.uint8))
        self._used.append(buffer)
        return buffer.view(like.dtype).reshape(like.shape)


def _split(target: Array, source: Array) -> list[tuple[Array, Array]]:
    """Split a copy into chunks for several threads."""
    if not source.flags.c_contiguous or source.nbytes <= _CHUNK:
        return [(target, source)]
    flat, out = source.reshape(-1), target.reshape(-1)
    step = max(_CHUNK // source.itemsize, 1)
    return [(out[at : at + step], flat[at : at + step]) for at in range(0, len(flat), step)]


# The exit of the interpreter


def _register_exit_handlers() -> None:
    process = os.getpid()
    if _state.registered_in != process:
        _register_in_multiprocessing()
    if _state.registered_in:  # also in the process that this one was forked from
        _state.registered_in = process
        return
    _state.registered_in = process
    atexit.register(_report_at_exit)
    # Python shuts down its thread pools before it calls the atexit functions, and a save needs one.
    early: Callable[[Callable[[], None]], None] | None = getattr(threading, "_register_atexit", None)
    with contextlib.suppress(RuntimeError):  # the shutdown has begun
        if early is not None:
            early(wait_for_pending)
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=discard_pending)


def _register_in_multiprocessing() -> None:
    """Register in ``multiprocessing`` too: the processes that it starts exit without calling atexit."""
    multiprocessing = sys.modules.get("multiprocessing")
    if multiprocessing is not None and multiprocessing.parent_process() is not None:
        from multiprocessing.util import Finalize

        Finalize(None, _report_at_exit, exitpriority=0)


def _report_at_exit() -> None:
    """Print the failures that have not been reported, and exit with code 1 if there are any."""
    wait_for_pending()
    failed = [save for save in _state.unreported if save.error is not None]
    if not failed:
        return
    discard_pending()
    for save in failed:
        when = time.strftime("%H:%M:%S")
        print(f"paddlelike: the save into {save.target} failed ({when}): {save.error}", file=sys.stderr)  # noqa: T201
    atexit._run_exitfuncs()  # those of others, because os._exit skips them
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):
            stream.flush()
    os._exit(1)
