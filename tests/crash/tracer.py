"""Runs a function in a process of its own and kills it before its n-th call that can change files.

The function runs in a fork, so nothing is started twice; the fork is followed by ptrace, thread by thread.
A call that changes no file is not a kill point of its own: a kill before it leaves what one before the next
leaves. Which calls change nothing is said by tables; every other call counts, and :func:`watched` lets
the files be compared around the calls that do not. Linux alone has the means.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import platform
import signal
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

__all__ = ["Outcome", "kill_after", "kill_at", "observed", "recorded", "usable", "watched"]

_TRACEME, _SYSCALL, _SETOPTIONS, _GET_SYSCALL_INFO = 0, 24, 0x4200, 0x420E
_OPTIONS = 1 | 2 | 4 | 8 | 0x100000  # mark stops of calls; follow fork, vfork and clone; die with the tracer
_WALL = 0x40000000
_ENTRY = 1

# memory, signals, clocks, threads, own numbers: what has nothing to do with files
_HARMLESS = {
    "x86_64": {9, 10, 11, 12, 13, 14, 15, 24, 25, 28, 35, 39, 56, 96, 98, 99, 102, 104, 107, 108, 131, 186,
               202, 203, 204, 218, 228, 229, 230, 273, 318, 334, 435},
    "aarch64": {98, 99, 113, 115, 122, 123, 124, 132, 134, 135, 139, 165, 169, 172, 174, 175, 176, 177, 178,
                214, 215, 220, 222, 226, 233, 278, 293, 435},
}  # fmt: skip

# what reads files and directories, or works on descriptors and locks, which die with the process
_READING = {
    "x86_64": {0, 3, 4, 5, 6, 8, 17, 19, 21, 32, 33, 63, 72, 73, 78, 79, 89, 137, 138, 217, 221, 262, 267,
               269, 292, 332, 439},
    "aarch64": {17, 23, 24, 25, 32, 43, 44, 48, 57, 61, 62, 63, 65, 67, 78, 79, 80, 160, 223, 291, 439},
}  # fmt: skip
_OPEN = {"x86_64": {2: 1, 257: 2}, "aarch64": {56: 2}}  # open, openat: which argument holds the flags
_IOCTL, _ASKS_FOR_TERMINAL = {"x86_64": 16, "aarch64": 29}, 0x5401
_MACHINE = platform.machine()

# what tells when files are safe: those that take a descriptor first, and those that take two paths
_BY_DESCRIPTOR = {
    "x86_64": {1: "write", 18: "write", 20: "write", 296: "write", 74: "sync", 75: "sync", 306: "sync",
               77: "write"},
    "aarch64": {64: "write", 68: "write", 66: "write", 70: "write", 82: "sync", 83: "sync", 267: "sync",
                46: "write"},
}  # fmt: skip
_ALL = {"x86_64": {306: ("all",)}, "aarch64": {267: ("all",)}}  # syncfs
_BY_PATHS = {"x86_64": {82: (0, 1), 264: (1, 3), 316: (1, 3)}, "aarch64": {38: (1, 3), 276: (1, 3)}}


class Outcome(NamedTuple):
    """How a run ended."""

    killed: bool
    calls: int  # that can change files
    status: int  # exit code of a run that was not killed
    last: int  # the number of the call that was not let through
    seen: int = 0  # all calls


class _Info(ctypes.Structure):
    _fields_ = [
        ("op", ctypes.c_uint8),
        ("pad", ctypes.c_uint8 * 3),
        ("arch", ctypes.c_uint32),
        ("instruction", ctypes.c_uint64),
        ("stack", ctypes.c_uint64),
        ("number", ctypes.c_uint64),
        ("args", ctypes.c_uint64 * 6),
        ("more", ctypes.c_uint64),
    ]


def usable() -> str | None:
    """Why this machine cannot trace a process; None: it can."""
    if not sys.platform.startswith("linux"):
        return "ptrace as it is used here is Linux's"
    try:
        outcome = kill_at(lambda: Path.cwd() and None, 1)
    except OSError as error:
        return f"ptrace is refused: {error}"
    return None if outcome.killed else "ptrace did not stop a call"


def kill_at(function: Callable[[], object], number: int) -> Outcome:
    """Run ``function`` in a fork that dies instead of its ``number``-th call that can change files."""
    return _followed(function, lambda calls, info, child: calls == number)


def watched(function: Callable[[], object], state: Callable[[], object]) -> Outcome:
    """Run ``function`` in a fork; AssertionError where ``state()`` changes by calls that change no files.

    ``state`` is asked before each call. Between two answers there may be a call that counts, also one of
    another thread; then nothing is compared.
    """
    before, last = None, -1

    def compare(calls: int, info: _Info, *, quiet: bool) -> None:
        nonlocal before, last
        now = state()
        assert not quiet or before is None or now == before, f"call {last} changed files: {before} -> {now}"
        before, last = now, info.number

    return _followed(function, lambda calls, info, child: False, compare)


def recorded(function: Callable[[], object]) -> list[tuple[str, ...]]:
    """What ``function`` writes, syncs and renames in a fork, in order, see :func:`observed`."""
    events: list[tuple[str, ...]] = []
    observed(function, events.append)
    return [event for event in events if event[0] != "change"]


def observed(function: Callable[[], object], see: Callable[[tuple[str, ...]], object]) -> None:
    """Run ``function`` in a fork, and call ``see`` before each of its calls that can change files.

    It is given ("write", path), ("sync", path), ("sync", path, "all") for a whole file system,
    ("rename", a, b), or ("change",) for any other call.
    """
    by_descriptor, by_paths = _BY_DESCRIPTOR.get(_MACHINE, {}), _BY_PATHS.get(_MACHINE, {})

    def note(calls: int, info: _Info, child: int) -> bool:
        call = info.number
        event: tuple[str, ...] = ("change",)
        if call in by_descriptor:
            with contextlib.suppress(OSError):
                path = Path(f"/proc/{child}/fd/{info.args[0]}").readlink()
                event = (by_descriptor[call], str(path), *_ALL.get(_MACHINE, {}).get(call, ()))
        elif call in by_paths:
            first, second = (_text_at(child, info.args[at]) for at in by_paths[call])
            event = ("rename", first, second)
        see(event)
        return False

    outcome = _followed(function, note)
    assert outcome.status == 0, outcome


def _text_at(process: int, address: int) -> str:
    with open(f"/proc/{process}/mem", "rb", 0) as memory:
        memory.seek(address)
        return os.fsdecode(memory.read(4096).split(b"\0", 1)[0])


def _changes_files(info: _Info) -> bool:
    """Return whether a call can change files; an unknown one can."""
    call = info.number
    if call in _HARMLESS.get(_MACHINE, ()) or call in _READING.get(_MACHINE, ()):
        return False
    at = _OPEN.get(_MACHINE, {}).get(call)
    if at is not None:
        return bool(info.args[at] & (os.O_CREAT | os.O_TRUNC))
    return call != _IOCTL.get(_MACHINE) or info.args[1] != _ASKS_FOR_TERMINAL


def _followed(
    function: Callable[[], object],
    kills: Callable[[int, _Info, int], bool],
    watch: Callable[..., None] | None = None,
) -> Outcome:
    """Run ``function`` in a fork; kill it at the call that can change files for which ``kills`` says so.

    ``watch(calls, info, quiet=...)`` sees every call; ``quiet``: none that can change files has been under
    way since the one before.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
    libc.ptrace.restype = ctypes.c_long

    def before() -> None:
        if libc.ptrace(_TRACEME, 0, None, None):
            os._exit(77)
        os.kill(os.getpid(), signal.SIGSTOP)

    child = _fork(function, before)
    _, status = os.waitpid(child, _WALL)
    if not os.WIFSTOPPED(status):
        raise PermissionError("PTRACE_TRACEME failed")
    if libc.ptrace(_SETOPTIONS, child, None, _OPTIONS):
        raise OSError(ctypes.get_errno(), "PTRACE_SETOPTIONS failed")
    libc.ptrace(_SYSCALL, child, None, None)
    try:
        return _follow(libc, child, kills, watch)
    except BaseException:
        os.kill(child, signal.SIGKILL)
        while os.waitpid(-1, _WALL)[0] != child:  # its other threads end first
            pass
        raise


def _follow(
    libc: ctypes.CDLL,
    child: int,
    kills: Callable[[int, _Info, int], bool],
    watch: Callable[..., None] | None,
) -> Outcome:
    info, calls, seen, last = _Info(), 0, 0, -1
    changing, quiet = set(), True  # threads in a call that can change files; none was since the last call
    while True:
        thread, status = os.waitpid(-1, _WALL)
        if not os.WIFSTOPPED(status):
            changing.discard(thread)
            if thread != child:
                continue
            killed = os.WIFSIGNALED(status)
            return Outcome(killed, calls, -1 if killed else os.WEXITSTATUS(status), last, seen)
        stop, deliver = os.WSTOPSIG(status), 0
        if stop == signal.SIGTRAP | 0x80:
            size = ctypes.sizeof(info)
            got = libc.ptrace(_GET_SYSCALL_INFO, thread, size, ctypes.addressof(info))
            if got > 0 and info.op == _ENTRY:
                seen += 1
                if watch is not None:
                    watch(calls, info, quiet=quiet and not changing)
                    quiet = not changing
                if _changes_files(info):
                    calls, quiet = calls + 1, False
                    changing.add(thread)
                    if kills(calls, info, child):
                        last = info.number
                        os.kill(child, signal.SIGKILL)
                        continue
            else:
                changing.discard(thread)
        elif stop not in (signal.SIGTRAP, signal.SIGSTOP):
            deliver = stop
        libc.ptrace(_SYSCALL, thread, None, deliver)


def kill_after(function: Callable[[], object], seconds: float) -> Outcome:
    """Run ``function`` in a fork that is killed after some time."""
    child = _fork(function, lambda: None)
    time.sleep(seconds)
    os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    killed = os.WIFSIGNALED(status)
    return Outcome(killed, 0, -1 if killed else os.WEXITSTATUS(status), -1)


def _fork(function: Callable[[], object], before: Callable[[], None]) -> int:
    sys.stdout.flush()
    sys.stderr.flush()
    child = os.fork()
    if child:
        return child
    code = 1
    try:
        before()
        function()
        code = 0
    except BaseException:
        traceback.print_exc()
        sys.stderr.flush()
    finally:
        os._exit(code)
