"""Lock files where there is no flock: whoever creates the file holds the lock; a dead one is taken over.

A lock file names its holder: process, machine, when the process began, and a random token. It gets its name
whole, by a hard link; where there are none, it is created empty, and an empty one is being written.

A stale file is taken over by one process alone: the one that creates ``PATH.<its token>``, which is a lock
file as well. Only that one may remove the stale file, and only while the stale token is still in it: no file
that another process has created meanwhile is ever removed.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import socket
import time
from typing import Final, NamedTuple

__all__ = ["SAVED", "Content", "Seen", "make_content", "read_content", "take"]

_UNFINISHED: Final = 10.0  # seconds after which whoever created an empty lock file is dead

SAVED: Final = b"saved\n"  # after the content: the holder only waits for the disk

Seen = dict[str, tuple[tuple[int, int], float]]  # empty lock files: by path, which one, and first seen when


class Content(NamedTuple):
    """The holder of a lock."""

    pid: int
    host: str
    start: str  # tells the process from a later one with its id
    token: str
    is_saved: bool = False

    def is_stale(self) -> bool:
        """Return whether the holder was a process of this machine, and is dead."""
        return self.host == socket.gethostname() and _get_start(self.pid) != self.start


def make_content() -> bytes:
    """Return the content of a lock file that this process holds."""
    pid = os.getpid()
    return f"{pid} {socket.gethostname()} {_get_start(pid)} {secrets.token_hex(8)}\n".encode()


def read_content(path: str) -> Content | None:
    """Return the holder that a lock file names; None where it names none."""
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            pid, host, start, *rest = file.read(1000).split()
        return Content(int(pid), host, start, rest[0] if rest else "0", len(rest) > 1)
    except (OSError, ValueError):
        return None


def take(path: str, seen: Seen) -> bool:
    """Create a lock file, if nobody alive holds it, and return whether it was created.

    ``seen`` is the same dict at every attempt of one waiting lock.

    Raises
    ------
    OSError
        The file cannot be created.
    """
    if _create(path):
        return True
    holder = read_content(path)
    token = None
    if holder is None:
        token = _find_unfinished(path, seen)
    elif holder.is_stale():
        token = holder.token
    if token is None:
        return False
    over = f"{path}.{token}"
    if not take(over, seen):
        return False
    try:
        now = read_content(path)
        if (now.token == token) if now is not None else (_find_unfinished(path, seen) == token):
            with contextlib.suppress(FileNotFoundError):
                os.unlink(path)
    finally:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(over)
    return _create(path)


def _create(path: str) -> bool:
    """Create a lock file of this process, whole; False: there is one."""
    content = make_content()
    aside = f"{path}-{content.split()[-1].decode()}"
    with open(aside, "xb") as file:
        file.write(content)
    try:
        os.link(aside, path)
    except FileExistsError:
        return False
    except FileNotFoundError:
        raise
    except OSError:  # no hard links
        try:
            fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
        except FileExistsError:
            return False
        try:
            os.write(fd, content)
        finally:
            os.close(fd)
    finally:
        with contextlib.suppress(FileNotFoundError):  # the last holder cleared the folder
            os.unlink(aside)
    return read_content(path) is not None


def _find_unfinished(path: str, seen: Seen) -> str | None:
    """Return a name for an empty lock file that has not changed for long; by this process's own clock."""
    try:
        facts = os.stat(path, follow_symlinks=False)
    except OSError:
        return None
    which = facts.st_ino, facts.st_mtime_ns
    if path not in seen or seen[path][0] != which:
        seen[path] = which, time.monotonic()
    return f"{which[0]:x}-{which[1]:x}" if time.monotonic() - seen[path][1] >= _UNFINISHED else None


def _get_start(pid: int) -> str:
    """Return when a process began, which tells it from a later one with its id; '-': it is dead."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
            return file.read().rpartition(")")[2].split()[19]
    except (OSError, IndexError):
        pass
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return "-"
    except OSError:
        pass
    return "0"
