"""Forked copies of this process: its memory at one instant, and checks without side effects here.

The two processes share every page until this process writes into it, so a copy takes milliseconds and hardly
any memory. A snapshot has a low priority and its own interpreter, so its work does not delay the threads
here.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import gc
import itertools
import mmap
import os
import select
import signal
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

import numpy as np

from paddlelike.foundation.locks import Keys, Lock, OpenFile, RLock, open_pipe, own_files

_PIECE: Final = 2 << 20  # bytes that are read at a time
_PRIORITY: Final = 10  # share of the processor while training takes all of it
_LOOK: Final = 2000  # milliseconds between two checks that the parent is alive
_SHARE: Final = 0.1  # share of all processors for work that nobody waits for
_RESTS: Final = 20.0  # seconds at most, as another process may wait
_LONGEST: Final = 120.0  # seconds; a copy may wait for ever for a lock that another thread held
_REST: Final = 0.02  # seconds between two checks whether somebody waits

# Advice of Linux's madvise.
_DONTFORK: Final = 10
_DOFORK: Final = 11
POPULATE_WRITE: Final = 23  #: give memory now rather than at its first write; since Linux 5.14

Work = Callable[[Any, Callable[[], None]], Any]


class _Span(ctypes.Structure):
    _fields_ = (("address", ctypes.c_void_p), ("size", ctypes.c_size_t))


class Snapshot:
    """A copy of all memory at this instant, kept until :meth:`close` or the end of this process.

    Parameters
    ----------
    work
        The function that :meth:`ask` calls in the other process; it takes and returns JSON values. No other
        thread exists there, so it must not need a lock that another thread may have held. It calls its second
        argument after every few megabytes: that pauses, so that the work takes a tenth of the processors (20
        s at most).
    without
        Addresses and sizes of memory to leave out.

    Raises
    ------
    OSError
        The system cannot fork the process, or does not let its memory be read.
    """

    def __init__(
        self, work: Work = lambda request, rest: request, *, without: Sequence[tuple[int, int]] = ()
    ) -> None:
        self._parent = os.getpid()
        self._files: list[OpenFile] = []  # for requests, for answers, and as a sign of life
        self._children: list[int] = []
        from pathlib import Path  # late: it takes long

        library = ctypes.CDLL(None, use_errno=True) if sys.platform == "linux" else None
        if library is None or not hasattr(library, "process_vm_readv") or not hasattr(os, "pidfd_open"):
            raise OSError(errno.ENOSYS, "this system has no snapshots")
        self._read = library.process_vm_readv
        self._read.restype = ctypes.c_ssize_t
        highest = max(int(path.name) for path in Path("/proc/self/fd").iterdir())
        self._asking = Lock()
        parent, ends = self._parent, list[OpenFile]()
        self._waited_for = mmap.mmap(-1, 1)

        def serve() -> None:
            waiting, telling = (end.args[0] for end in ends)
            _serve(waiting, telling, max(highest, telling), parent, work, Rests(self._waited_for))

        try:
            for mine in (1, 0):
                pipe = open_pipe()
                self._files.append(pipe.pop(mine))
                ends += pipe
            # Other forks keep that memory.
            _fork(self._children, serve, lambda: _left_out(without))
            del pipe, ends[:]
            self._files.extend(own_files(map(os.pidfd_open, self._children)))
            self._end, self._answers, self._alive = (file.args[0] for file in self._files)
            probe = np.zeros(1, np.uint8)
            list(self.read(probe.ctypes.data, probe.nbytes))  # the administrator may forbid it
        except BaseException:
            self.close()
            raise

    def read(self, address: int, size: int) -> Iterator[memoryview]:
        """Yield the bytes at an address, in pieces.

        Raises
        ------
        OSError
            The process that holds the memory has been killed.
        """
        died = select.poll()
        died.register(self._alive, select.POLLIN)
        for at in range(address, address + size, _PIECE):
            piece = np.empty(min(_PIECE, address + size - at), np.uint8)
            spans = _Span(piece.ctypes.data, piece.nbytes), _Span(at, piece.nbytes)
            into, source = map(ctypes.byref, spans)
            count = self._read(
                *self._children, into, ctypes.c_ulong(1), source, ctypes.c_ulong(1), ctypes.c_ulong(0)
            )
            code = ctypes.get_errno() if count < 0 else errno.EFAULT
            if died.poll(0):  # then its id may be that of another process
                raise self._make_killed()
            if count != piece.nbytes:
                raise OSError(code, os.strerror(code))
            yield piece.data

    def ask(self, request: object) -> Any:
        """Make the other process do its work, and return the result. Several threads may call this.

        Raises
        ------
        OSError
            The system refused the work in the other process, or that process has been killed.
        """
        import json  # late: it takes long

        with self._asking.hold():
            line, answer = json.dumps(request).encode() + b"\n", b""
            try:
                while line:
                    line = line[os.write(self._end, line) :]
                while not answer.endswith(b"\n"):
                    data = os.read(self._answers, 1 << 16)
                    if not data:
                        raise self._make_killed()
                    answer += data
            except BrokenPipeError:
                raise self._make_killed() from None
        found = json.loads(answer)
        if "error" in found:
            raise OSError(*found["error"])
        return found["value"]

    def hurry(self) -> None:
        """Work without pauses from now on, because a caller waits for the end."""
        self._waited_for[0] = 1

    def _make_killed(self) -> OSError:
        """Return the error for a process that ended too early, with its signal or exit code."""
        how = ""
        with contextlib.suppress(OSError):  # somebody else has waited for it
            found = os.waitid(os.P_PIDFD, self._alive, os.WEXITED | os.WNOWAIT)
            if found is not None and found.si_code != os.CLD_EXITED:
                how = f" by signal {found.si_status}"
        return OSError(errno.ESRCH, f"the process that holds the values was killed{how}")

    def close(self) -> None:
        """End the process that holds the memory."""
        for child in self._children:
            with contextlib.suppress(OSError):  # killed, and already waited for by somebody else
                for alive, _ in (file.args for file in self._files[2:]):
                    signal.pidfd_send_signal(alive, signal.SIGKILL)
                    os.waitid(os.P_PIDFD, alive, os.WEXITED)
                if len(self._files) < 3:
                    _end_child(child)
        self._children.clear()
        self._files.clear()

    def __del__(self) -> None:
        if os.getpid() == self._parent:
            self.close()


_forks: Final = RLock()  # held by the thread that forks this process
_forks.hold_in_forks()


def _fork(
    children: list[int],
    serve: Callable[[], object],
    around: Callable[[], contextlib.AbstractContextManager[object]],
) -> None:
    """Fork this process inside ``around()`` and append the child's id; the child serves requests, then ends.

    The child receives no signals. This process receives none before the child's id is in the list.
    """
    parent = os.getpid()
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
    try:
        with warnings.catch_warnings(), _forks.hold(), around():
            for kind in (DeprecationWarning, RuntimeWarning):  # of threads, which the child does not need
                warnings.simplefilter("ignore", kind)
            children.extend(itertools.starmap(os.fork, ((),)))
        if os.getpid() != parent:
            serve()
    finally:
        if os.getpid() != parent:
            os._exit(0)
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)


def _end_child(child: int) -> None:
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)


@contextlib.contextmanager
def _left_out(spans: Sequence[tuple[int, int]]) -> Iterator[None]:
    """Exclude the whole pages of some memory from forks inside the ``with`` block."""
    try:
        for span in spans:
            advise(*span, _DONTFORK)
        yield
    finally:
        for span in spans:
            advise(*span, _DOFORK)


def advise(address: int, nbytes: int, advice: int) -> None:
    """Call ``madvise`` for the whole pages of some memory; do nothing on systems without it."""
    start, end = -(-address // mmap.PAGESIZE), (address + nbytes) // mmap.PAGESIZE
    if start < end and hasattr(library := ctypes.CDLL(None), "madvise"):
        size = (end - start) * mmap.PAGESIZE
        library.madvise(ctypes.c_void_p(start * mmap.PAGESIZE), ctypes.c_size_t(size), advice)


class Rests:
    """Pauses that limit the share of the processors that some work takes."""

    def __init__(
        self, waited_for: mmap.mmap | bytearray, clock: Callable[[], float] = time.process_time
    ) -> None:
        self._waited_for = waited_for
        self._clock = clock
        self._left = _RESTS
        self._rested = clock()
        count = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
        self._factor = max(1 / (_SHARE * count) - 1, 0.0)

    def __call__(self) -> None:
        worked = self._clock() - self._rested
        begin = time.monotonic()
        end = begin + min(worked * self._factor, self._left)
        while not self._waited_for[0] and (now := time.monotonic()) < end:
            time.sleep(min(end - now, _REST))
        self._left -= time.monotonic() - begin
        self._rested = self._clock()


def _serve(
    waiting: int, telling: int, highest: int, parent: int, work: Work, rest: Callable[[], None]
) -> None:
    """Serve the parent's requests in the child, until the parent closes the pipe or dies."""
    import json  # late: it takes long

    try:
        gc.disable()  # no finalizers: they are the parent's
        first, last = sorted((waiting, telling))
        os.closerange(0, first)  # else readers would wait for the end of the parent's files
        os.closerange(first + 1, last)
        os.closerange(last + 1, highest + 1)
        with contextlib.suppress(OSError):
            os.nice(_PRIORITY)
        ready = select.poll()
        ready.register(waiting, select.POLLIN)
        line = b""
        while os.getppid() == parent:
            if not ready.poll(_LOOK):
                continue
            data = os.read(waiting, 1 << 16)
            if not data:
                break
            line += data
            if line.endswith(b"\n"):
                answer = json.dumps(_answer(work, json.loads(line), rest)).encode() + b"\n"
                line = b""
                while answer:
                    answer = answer[os.write(telling, answer) :]
    except BaseException as error:
        answer = json.dumps({"error": [errno.EIO, f"{type(error).__name__}: {error}"]}).encode() + b"\n"
        os.write(telling, answer)


def _answer(work: Work, request: object, rest: Callable[[], None]) -> dict[str, object]:
    try:
        return {"value": work(request, rest)}
    except OSError as error:
        return {"error": [error.errno or errno.EIO, error.strerror or str(error)]}
    except Exception as error:
        return {"error": [errno.EIO, f"{type(error).__name__}: {error}"]}


def try_aside(check: Callable[[], bool], hold: Keys, seconds: float = _LONGEST) -> bool | None:
    """Run ``check`` in a fork of this process and return its result, or None if that fails.

    It fails if the system cannot fork, or if ``check`` takes longer than ``seconds`` or ends the process. The
    lock of ``hold`` is taken for the fork, since a lock of another thread would stay taken in the copy.

    >>> from paddlelike.foundation.locks import RLock
    >>> changed = []
    >>> try_aside(lambda: changed.append(1) is None, RLock().hold), changed
    (True, [])
    """
    if not hasattr(os, "fork"):
        return None
    children: list[int] = []

    def serve() -> None:
        code = b"?"
        try:
            code = b"y" if check() else b"n"
        finally:
            os.write(pipe[1].args[0], code)

    pipe = open_pipe()
    try:
        _fork(children, serve, hold)
        pipe.pop()
        with pipe[0] as (answer, _):
            is_there = select.select([answer], [], [], seconds)[0]
            found = os.read(answer, 1) if is_there else b""
    finally:
        for child in children:
            _end_child(child)
    return {b"y": True, b"n": False}.get(found)
