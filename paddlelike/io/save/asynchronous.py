"""Saves that go on in a thread while training does: their handle, and the memory that their copies lie in.

One save is under way at a time. Every failure is told once at least: by the handle, else by the next save,
else at the end of the interpreter, on stderr and by an exit code of 1. Saves under way are finished before.
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

__all__ = ["Copies", "PendingSave", "finish", "forget", "settle", "start", "turn"]

Array = np.ndarray[Any, Any]

_LARGE: Final = 64 << 10  # bytes; memory for smaller copies is not worth keeping
_MUCH: Final = 64 << 20  # bytes; from here on several threads copy
_PARTS: Final = 16 << 20  # bytes that one thread copies at a time


class PendingSave:
    """A save that goes on while the program does.

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
        except RuntimeError:  # the interpreter is about to end and starts no threads any more
            self._run()

    def done(self) -> bool:
        """Whether the save has ended, well or not."""
        return self._finished.is_set()

    def wait(self, timeout: float | None = None) -> SaveReport:
        """Wait for the end of the save.

        Raises
        ------
        TimeoutError
            It goes on still after ``timeout`` seconds.
        SaveError
            What the save failed of; the directory is as it was.
        """
        if not self._finished.wait(timeout):
            raise TimeoutError(f"the save into {self.target} goes on still after {timeout} s")
        if self._error is not None:
            _told(self)
            raise self._error
        assert self._report is not None
        return self._report

    @property
    def report(self) -> SaveReport:
        """What the save did; waits for its end, and raises what it failed of."""
        return self.wait()

    @property
    def error(self) -> BaseException | None:
        """What the save failed of; None: nothing, or it goes on. Asking for it is not yet being told."""
        return self._error

    def __repr__(self) -> str:
        state = "goes on" if not self.done() else "failed" if self._error is not None else "is done"
        return f"<PendingSave into {self.target}: {state}>"

    def _run(self) -> None:
        work, self._work = self._work, None
        assert work is not None
        try:
            self._report = work()
        except BaseException as error:  # whoever waits is told
            self._error = error
        finally:
            del work  # with the copies
            self._finished.set()


class _State:
    """The save under way, and the failures that nobody was told yet."""

    def __init__(self) -> None:
        self.last: PendingSave | None = None
        self.untold: list[PendingSave] = []
        self.turn = threading.RLock()  # of the thread that begins one
        self.watches = 0  # the process in which the end is watched


_state: Final = _State()


def turn() -> threading.RLock:
    """Held by the thread that begins a save: one after the other, with the memory that copies lie in."""
    return _state.turn


def start(target: str, work: Callable[[], SaveReport]) -> PendingSave:
    """Begin a save in a thread. The last one has ended: see :func:`settle`."""
    _watch_the_end()
    save = PendingSave(target, work)
    _state.last = save
    _state.untold.append(save)
    return save


def settle() -> None:
    """Wait for the save under way; raise what it failed of if nobody was told.

    Raises
    ------
    SaveError
        The save before failed.
    """
    last = _state.last
    if last is None:
        return
    last._finished.wait()
    _state.last = None
    failed = last in _state.untold and last.error is not None
    _told(last)
    if failed:
        error = last.error
        reason = error.message if isinstance(error, PaddlelikeError) else f"{type(error).__name__}: {error}"
        raise SaveError(
            f"the save into {last.target} that was begun before this one failed, and nothing more was begun: "
            f"{reason}",
            hint=getattr(error, "hint", None) or "call this once more; wait() of a save tells earlier",
        ) from error


def finish() -> None:
    """Wait for the save under way, if there is one; what it failed of is told later.

    Whoever reads files does so first: what was asked to be saved before counts as saved.
    """
    last = _state.last
    if last is not None and last._thread is not threading.current_thread():
        last._finished.wait()


def forget() -> None:
    """Drop the save under way without a word, as in a process that was forked from the one that saves."""
    _state.last = None
    _state.untold.clear()
    _state.turn = threading.RLock()


def _told(save: PendingSave) -> None:
    with contextlib.suppress(ValueError):
        _state.untold.remove(save)


class Copies:
    """Copies of arrays in memory that is used again for those of the next time.

    What was not used again by a whole round is given back to the system.
    """

    def __init__(self) -> None:
        self._free: dict[int, list[Array]] = {}
        self._used: list[Array] = []

    def copy(self, arrays: Iterable[Array]) -> list[Array]:
        """Copies of the arrays, in C order, which are good until :meth:`release`."""
        sources = list(arrays)
        copies = [self._take(array) for array in sources]
        self._free = {}
        if sum(array.nbytes for array in sources) < _MUCH:
            for target, source in zip(copies, sources, strict=True):
                np.copyto(target, source)
            return copies
        pieces = [piece for pair in zip(copies, sources, strict=True) for piece in _pieces(*pair)]
        with ThreadPoolExecutor(min(4, os.cpu_count() or 1), "paddlelike-copy") as pool:
            list(pool.map(lambda piece: np.copyto(*piece), pieces))
        return copies

    def release(self) -> None:
        """Let go of the copies; their memory is for the next ones."""
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


def _pieces(target: Array, source: Array) -> list[tuple[Array, Array]]:
    """A copy in parts, which several threads may make."""
    if not source.flags.c_contiguous or source.nbytes <= _PARTS:
        return [(target, source)]
    flat, out = source.reshape(-1), target.reshape(-1)
    step = max(_PARTS // source.itemsize, 1)
    return [(out[at : at + step], flat[at : at + step]) for at in range(0, len(flat), step)]


# The end of the interpreter


def _watch_the_end() -> None:
    process = os.getpid()
    if _state.watches != process:
        _watch_multiprocessing()
    if _state.watches:  # also in the process that this one was forked from
        _state.watches = process
        return
    _state.watches = process
    atexit.register(_tell_at_exit)
    # Python ends its own pools of threads before it calls what atexit knows, and a save needs one.
    early: Callable[[Callable[[], None]], None] | None = getattr(threading, "_register_atexit", None)
    with contextlib.suppress(RuntimeError):  # the end has begun
        if early is not None:
            early(finish)
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=forget)


def _watch_multiprocessing() -> None:
    """Processes that ``multiprocessing`` began end without asking atexit; it has a register of its own."""
    multiprocessing = sys.modules.get("multiprocessing")
    if multiprocessing is not None and multiprocessing.parent_process() is not None:
        from multiprocessing.util import Finalize

        Finalize(None, _tell_at_exit, exitpriority=0)


def _tell_at_exit() -> None:
    """Print the failures that nobody was told of, and end with an exit code that says so."""
    finish()
    failed = [save for save in _state.untold if save.error is not None]
    if not failed:
        return
    forget()
    for save in failed:
        when = time.strftime("%H:%M:%S")
        print(f"paddlelike: the save into {save.target} failed ({when}): {save.error}", file=sys.stderr)  # noqa: T201
    atexit._run_exitfuncs()  # what others want to be done, since there is no way back from here
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):
            stream.flush()
    os._exit(1)
