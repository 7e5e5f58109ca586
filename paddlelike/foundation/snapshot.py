"""The memory of this process as it was at one instant: a forked process holds it and does nothing else.

The two share every page until this one writes into it, so that it takes no memory and some milliseconds.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import select
import signal
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NoReturn

import numpy as np

__all__ = ["Snapshot"]

_PIECE: Final = 2 << 20  # bytes that are read at a time


class _Span(ctypes.Structure):
    _fields_ = (("address", ctypes.c_void_p), ("size", ctypes.c_size_t))


class Snapshot:
    """Holds all memory as it is now, until :meth:`close`, or the death of this process.

    Raises
    ------
    OSError
        The system cannot fork the process, or does not let its memory be read.
    """

    def __init__(self) -> None:
        library = ctypes.CDLL(None, use_errno=True) if sys.platform == "linux" else None
        if library is None or not hasattr(library, "process_vm_readv") or not hasattr(os, "pidfd_open"):
            raise OSError(errno.ENOSYS, "this system has no snapshots")
        self._read = library.process_vm_readv
        self._read.restype = ctypes.c_ssize_t
        highest = max(int(path.name) for path in Path("/proc/self/fd").iterdir())
        waiting, self._end = os.pipe()
        mask = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())  # signals are for the parent
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of the threads that the child lacks: it needs none of them
                process = os.fork()
            if process == 0:
                _hold(waiting, max(highest, self._end))
        except OSError:
            os.close(self._end)
            raise
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)
            os.close(waiting)
        self._process = process
        try:
            self._alive = os.pidfd_open(process)
        except OSError:
            os.close(self._end)
            os.waitpid(process, 0)
            raise
        probe = np.zeros(1, np.uint8)
        try:
            list(self.read(probe.ctypes.data, probe.nbytes))
        except OSError:  # as where the administrator forbids it
            self.close()
            raise

    def read(self, address: int, size: int) -> Iterator[memoryview]:
        """Yield what was at an address, in pieces.

        Raises
        ------
        OSError
            The process that holds it has been killed.
        """
        died = select.poll()
        died.register(self._alive, select.POLLIN)
        for at in range(address, address + size, _PIECE):
            piece = np.empty(min(_PIECE, address + size - at), np.uint8)
            spans = _Span(piece.ctypes.data, piece.nbytes), _Span(at, piece.nbytes)
            into, source = map(ctypes.byref, spans)
            count = self._read(
                self._process, into, ctypes.c_ulong(1), source, ctypes.c_ulong(1), ctypes.c_ulong(0)
            )
            code = ctypes.get_errno() if count < 0 else errno.EFAULT
            if died.poll(0):  # then its id may be that of another process
                raise OSError(errno.ESRCH, "the process that holds the values was killed")
            if count != piece.nbytes:
                raise OSError(code, os.strerror(code))
            yield piece.data

    def close(self) -> None:
        """End the process that holds the memory."""
        with contextlib.suppress(OSError):  # it was killed, and somebody else has waited for it
            signal.pidfd_send_signal(self._alive, signal.SIGKILL)
            os.waitid(os.P_PIDFD, self._alive, os.WEXITED)
        os.close(self._end)
        os.close(self._alive)


def _hold(waiting: int, highest: int) -> NoReturn:
    """Wait in the child until the parent has no end of the pipe any more, as after its death."""
    try:
        os.closerange(0, waiting)  # so that nobody waits for the end of the parent's files
        os.closerange(waiting + 1, highest + 1)
        os.read(waiting, 1)
    finally:
        os._exit(0)
