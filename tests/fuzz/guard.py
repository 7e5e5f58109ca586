"""The limits an input runs in: processor time, memory, files, and nothing that runs code.

Python reports opened files, started programs, compiled code and imports to audit hooks. A hook cannot be
removed; this one looks away unless a guard is active.
"""

from __future__ import annotations

import os
import signal
import sys
import time
import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any, Final

__all__ = ["PEAK", "Fault", "Guard", "watch_calls"]

PEAK: Final = "bytes of memory at the peak"

_CODE: Final = (
    "compile", "exec", "import", "os.system", "os.exec", "os.fork", "os.forkpty", "os.posix_spawn",
    "os.spawn", "os.startfile", "subprocess.Popen", "socket.connect", "socket.bind", "socket.getaddrinfo", "pickle.", "marshal.",
    "ctypes.call", "webbrowser.", "urllib.", "sys._getframe", "os.putenv",
)  # fmt: skip
_PATHS: Final = (
    "os.remove", "os.rename", "os.rmdir", "os.mkdir", "os.link", "os.symlink", "os.truncate", "os.chmod",
    "os.chown", "os.utime", "os.listdir", "os.scandir", "os.setxattr", "shutil.rmtree", "shutil.copyfile",
)  # fmt: skip
_WRITE: Final = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
_WAITING: Final = 20.0  # seconds: a pipe that nobody writes into is waited for
_SYSTEM: Final = ("/proc/", "/sys/", "/dev/urandom")  # what the interpreter and libraries look at


class Fault(Exception):  # noqa: N818
    """A promise was broken; no error of the package, so that nobody catches it by mistake."""


class _TooLong(BaseException):
    """The time is over. Not an Exception: a reader must not swallow it."""


class Guard:
    """Runs one input after the other.

    Parameters
    ----------
    root
        The only directory whose files may be touched.
    seconds
        Processor time for an input.
    """

    _active: Guard | None = None
    _until = 0.0
    _installed = False

    def __init__(self, root: Path, *, seconds: float = 3.0) -> None:
        self.root = os.path.realpath(root)
        self.seconds = seconds
        self.seen: list[str] = []
        self.writes = False
        self.peak = 0  # bytes, of the last input
        if not Guard._installed:
            Guard._installed = True
            sys.addaudithook(_audit)

    @contextmanager
    def input(self, *, most: int, writes: bool = False) -> Iterator[None]:
        """Run the body: ``most`` is the limit of memory, ``writes`` allows to write inside the root.

        Raises
        ------
        Fault
            A limit was passed, or something ran, or a file elsewhere was touched.
        """
        self.seen.clear()
        self.writes = writes
        tracemalloc.reset_peak()
        before = tracemalloc.get_traced_memory()[0]
        old = signal.signal(signal.SIGPROF, _stop), signal.signal(signal.SIGALRM, _look)
        signal.setitimer(signal.ITIMER_PROF, self.seconds)
        signal.setitimer(signal.ITIMER_REAL, _WAITING, 1.0)
        Guard._until = _slept() + _WAITING
        Guard._active = self
        try:
            yield
        except _TooLong as error:
            what = f"{self.seconds} seconds of processor time, or {_WAITING} of waiting"
            raise Fault(f"it takes more than {what}") from error
        except RecursionError as error:
            raise Fault("RecursionError") from error
        finally:
            Guard._active = None
            signal.setitimer(signal.ITIMER_PROF, 0)
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGPROF, old[0])
            signal.signal(signal.SIGALRM, old[1])
            self.peak = tracemalloc.get_traced_memory()[1] - before
            if self.seen:
                raise Fault(self.seen[0])
        if self.peak > most:
            raise Fault(f"{self.peak} {PEAK}, {most} are allowed")


@contextmanager
def watch_calls() -> Iterator[None]:
    """Trace memory; what is traced already stays so."""
    traced = tracemalloc.is_tracing()
    if not traced:
        tracemalloc.start()
    try:
        yield
    finally:
        if not traced:
            tracemalloc.stop()


def _slept() -> float:
    """A clock of the seconds in which this thread had nothing to do: others may have the processors."""
    try:
        with open("/proc/thread-self/schedstat") as file:
            running, runnable = (int(number) / 1e9 for number in file.read().split()[:2])
    except OSError:  # not Linux
        return time.monotonic()
    return time.monotonic() - running - runnable


def _look(number: int, frame: FrameType | None) -> None:
    if _slept() > Guard._until:
        raise _TooLong


def _stop(number: int, frame: FrameType | None) -> None:
    raise _TooLong


def _audit(event: str, arguments: tuple[Any, ...]) -> None:
    guard = Guard._active
    if guard is None:
        return
    problem = None
    if event == "open":
        path, _, flags = arguments
        problem = _open_problem(guard, path, flags)
    elif event in _PATHS:
        paths = [
            p
            for p in arguments[: 2 if event in ("os.rename", "os.link") else 1]
            if isinstance(p, str | bytes)
        ]
        if event == "os.symlink":
            paths = [arguments[1]]
        inside = guard.writes or event in ("os.listdir", "os.scandir")
        bad = (path for path in paths if not (inside and _inside(guard.root, path)))
        problem = next((f"{event} {path!r:.200}" for path in bad), None)
    elif event.startswith(_CODE) and event != "sys._getframe":
        problem = f"{event} {str(arguments)[:200]}"
    if problem is not None:
        guard.seen.append(problem)


def _open_problem(guard: Guard, path: Any, flags: int) -> str | None:
    if not isinstance(path, str | bytes):
        return None
    text = os.fsdecode(path)
    if flags & _WRITE:
        good = guard.writes and _inside(guard.root, path)
        return None if good else f"{text!r:.200} is opened for writing"
    good = _inside(guard.root, path) or text.startswith(_SYSTEM)
    return None if good else f"{text!r:.200} is opened"


def _inside(root: str, path: Any) -> bool:
    """By name: a link inside may lead elsewhere. A name without a root is one inside some open directory."""
    text = os.path.normpath(os.fsdecode(path))
    if not text.startswith(os.sep):
        return text.split(os.sep)[0] != ".."
    return text == root or text.startswith(root + os.sep)
