"""Asynchronous saves, which run in a thread beside training: their handles, and their order.

One save runs at a time. Every failure is reported at least once: by the handle, else by the next save, else
when the interpreter exits, on stderr and with exit code 1. A running save is finished before the exit. A
forked process does not take over the saves of its parent.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import sys
import threading
import time
from collections.abc import Callable
from typing import Final

from paddlelike.errors import PaddlelikeError, SaveError
from paddlelike.foundation.locks import Event, Lock, RLock
from paddlelike.foundation.threads import Thread
from paddlelike.io.report import SaveReport

_PRIORITY: Final = 10  # share of the processor while training takes all of it


class PendingSave:
    """The handle of a save that runs beside the program: ``work`` saves ``target`` in a thread of its own.

    Parameters
    ----------
    target
        The directory or file that is saved.
    work
        The function that the thread runs.
    hurry
        The function to call when another thread waits for the end.

    >>> save = start_save("model", lambda: SaveReport("model"))
    >>> save.wait(10.0).target, save.done()
    ('model', True)
    """

    def __init__(
        self, target: str, work: Callable[[], SaveReport], hurry: Callable[[], None] = lambda: None
    ) -> None:
        self.target = target
        self._hurry = hurry
        self._work = [work]  # the thread that removes it runs or cancels the save
        self._report: SaveReport | None = None
        self._error: BaseException | None = None
        self._is_cancelled = False
        self._finished = Event()
        self._thread = Thread(self._run_beside, "paddlelike-save", daemon=False)
        self._runner: int | None = None  # the id of the thread that saves

    def done(self) -> bool:
        """Return whether the save has ended, with or without an error."""
        return self._finished.is_set()

    def wait(self, timeout: float | None = None) -> SaveReport:
        """Wait for the end of the save and return its report. An interrupt ends the wait, not the save.

        Raises
        ------
        TimeoutError
            The save has not ended after ``timeout`` seconds.
        SaveError
            The save failed, and the directory is unchanged; or this process was forked while the save ran.
        """
        if not self._wait(timeout):
            raise TimeoutError(f"the save into {self.target} has not ended after {timeout} s")
        if self._error is not None:
            _mark_reported(self)
            raise self._error
        assert self._report is not None
        return self._report

    @property
    def report(self) -> SaveReport:
        """The report of the save. Reading it waits for the save, and raises the exception that ended it."""
        return self.wait()

    @property
    def error(self) -> BaseException | None:
        """The exception that ended the save, or None without one. Reading it does not mark it as reported."""
        return self._error

    def __repr__(self) -> str:
        state = "running" if not self.done() else "failed" if self._error is not None else "done"
        return f"<PendingSave into {self.target}: {state}>"

    def _wait(self, timeout: float | None = None) -> bool:
        """Wait for the end of the save, without further pauses in it; return whether it has ended."""
        if not self.done():
            self._hurry()
            self._thread.ensure_begun(timeout)
        return self._finished.wait(timeout)

    def _start(self) -> None:
        try:
            self._thread.start()
        except RuntimeError:  # no thread can be started: a limit of the system, or the interpreter exits
            self._run()

    def cancel(self, reason: BaseException) -> bool:
        """End the save with ``reason`` if no thread has begun it; return whether it was ended.

        The caller must report the reason.
        """
        with contextlib.suppress(IndexError):
            self._work.pop()
            self._is_cancelled = True
            self._error = reason
            self._finished.set()
            _mark_reported(self)
        return self._is_cancelled

    def _run_beside(self) -> None:
        # On Linux a thread has a priority of its own, which the threads that it starts inherit.
        if sys.platform == "linux" and threading.current_thread() is not threading.main_thread():
            with contextlib.suppress(OSError):
                os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), _PRIORITY)
        self._run()

    def _run(self) -> None:
        try:
            work = self._work.pop()
        except IndexError:  # it was cancelled
            return
        self._runner = threading.get_ident()
        try:
            self._report = work()
        except BaseException as error:  # raised again by wait()
            self._error = error
        finally:
            del work  # frees the copies
            self._finished.set()

    def _is_run_here(self) -> bool:
        """Return whether the calling thread carries out the save, and so must not wait for it."""
        return self._runner == threading.get_ident() and not self.done()

    def _abandon(self) -> None:
        """End the save in a forked process, where its thread does not exist."""
        if self.done():
            return
        self._error = SaveError(
            f"the save into {self.target} runs in the process that this one was forked from",
            hint="wait for it there, or before the fork",
        )
        self._finished = Event()  # the parent's lock may be held for ever
        self._finished.set()


class _State:
    """The running save, and the saves whose failure has not been reported."""

    def __init__(self) -> None:
        self.last: PendingSave | None = None
        self.unreported: list[PendingSave] = []
        self.lock = RLock()  # held by the thread that begins a save
        self.guard = Lock()  # held briefly, while `last` changes
        self.registered_in = 0  # the id of the process in which the exit handlers are registered


_state: Final = _State()


def pending_lock() -> RLock:
    """Return the lock that a thread holds while it begins a save."""
    return _state.lock


def start_save(
    target: str, work: Callable[[], SaveReport], hurry: Callable[[], None] = lambda: None
) -> PendingSave:
    """Begin a save in a thread after the previous save has ended; :class:`PendingSave` explains ``hurry``."""
    save = PendingSave(target, work, hurry)
    begin(save)
    return save


def begin(save: PendingSave) -> None:
    """Let a thread carry out a save after the previous save has ended.

    An interrupt before the work has begun cancels it. After a later one the thread continues, and the next
    save waits for it.
    """
    try:
        _register_exit_handlers()
        while (before := _take_turn(save)) is not None:
            before._wait()
        save._start()
    except BaseException as error:
        save.cancel(error)
        raise


def _take_turn(save: PendingSave) -> PendingSave | None:
    """Register ``save`` as the running save before it runs; return a save that has not ended yet, if any."""
    with _state.guard.hold():
        last = _state.last
        if last is not None and not last.done() and not last._is_run_here():
            return last
        _state.last = save
        _state.unreported.append(save)
        return None


def check_pending() -> None:
    """Wait for the running save, and raise the first failure that has not been reported.

    Raises
    ------
    SaveError
        The save before failed.
    """
    last = _state.last
    if last is not None and not last._is_run_here():
        last._wait()
        with _state.guard.hold():
            if _state.last is last:  # otherwise the next save waits for another thread's
                _state.last = None
    for save in list(_state.unreported):
        if save.done() and _mark_reported(save) and save.error is not None:
            raise _make_error(save, save.error)


def _make_error(save: PendingSave, error: BaseException) -> SaveError:
    reason = error.message if isinstance(error, PaddlelikeError) else f"{type(error).__name__}: {error}"
    made = SaveError(
        f"the asynchronous save into {save.target} failed, and this save was not begun: {reason}",
        hint=getattr(error, "hint", None) or "save again; wait() of the handle reports a failure earlier",
    )
    made.__cause__ = error
    return made


def wait_for_pending() -> None:
    """Wait for the running save, if there is one; its failure is reported later.

    Every function that reads files calls this first, so that it sees what was saved before.
    """
    last = _state.last
    if last is not None and not last._is_run_here():
        last._wait()


def discard_pending() -> None:
    """Forget the running save and all failures."""
    _state.last = None
    _state.unreported.clear()


def _mark_reported(save: PendingSave) -> bool:
    """Return whether this call is the one that reports how the save ended."""
    try:
        _state.unreported.remove(save)
    except ValueError:
        return False
    return True


def _leave_to_parent() -> None:
    """Forget the saves of the parent in a forked process, and the locks that its threads hold."""
    for save in (_state.last, *_state.unreported):
        if save is not None:
            save._abandon()
    discard_pending()
    _state.lock = RLock()
    _state.guard = Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_leave_to_parent)


# The exit of the interpreter


def _register_exit_handlers() -> None:
    process = os.getpid()
    if _state.registered_in != process:
        _register_in_multiprocessing()
    if _state.registered_in:  # also for saves of the parent process
        _state.registered_in = process
        return
    _state.registered_in = process
    atexit.register(_report_at_exit)
    # Python shuts down its thread pools before it calls the atexit functions, and a save needs one.
    early: Callable[[Callable[[], None]], None] | None = getattr(threading, "_register_atexit", None)
    with contextlib.suppress(RuntimeError):  # the shutdown has begun
        if early is not None:
            early(wait_for_pending)


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
    atexit._run_exitfuncs()  # handlers of other modules, because os._exit skips them
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):
            stream.flush()
    os._exit(1)
