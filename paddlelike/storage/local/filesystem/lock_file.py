"""Lock files without flock: the creator of the file holds the lock; a stale lock is taken over.

A lock file names its holder: process id, machine, start of the process, a random token, and the boot and
process-id namespace in which the id is valid. The complete file gets its name by a hard link. Without hard
links it is created empty, so an empty lock file counts as being written. The holder appends a byte every few
seconds.

A holder on this system is stale when its process is dead. A holder on another system or in another container
is stale when its file has not changed for the time of a lease. The waiting process measures this time by its
own clock: clocks of two machines are never compared.

Only one process takes over a stale file: the one that creates ``PATH.<token of the stale file>``, itself a
lock file. Only that process may move the stale file away. If the moved file turns out to be another one, it
is restored, since a file system may show outdated entries.

A holder that was stopped for longer than the lease may continue after any check. So each holder has its own
folder beside the lock file, named by its token and made before the lock is taken. All its changes are moves
out of or into that folder. The next holder first moves all other folders into its own, so that the moves of
an earlier holder fail.
"""

from __future__ import annotations

import contextlib
import os
import re
import stat
import time
import weakref
from functools import lru_cache, partial
from typing import Final, NamedTuple

from paddlelike.foundation.locks import Event, opened
from paddlelike.foundation.threads import Thread
from paddlelike.storage.local.filesystem.retired import remove_tree

_UNFINISHED: Final = 10.0  # seconds after which the creator of an empty lock file counts as dead
_LEASE: Final = 30.0  # seconds without a change after which an invisible holder counts as dead
_BEAT: Final = 5.0  # seconds between two bytes of a holder

# bytes that may follow the first line
SAVED: Final = b"saved\n"  # the holder only waits for the disk
AWAITED: Final = b"?"  # another process waits for the lock
_ALIVE: Final = b"+"  # the holder is alive

_TOKEN: Final = re.compile("[0-9a-f]{16}")

_READING: Final = (
    os.O_RDONLY
    | getattr(os, "O_CLOEXEC", 0)
    | getattr(os, "O_NOFOLLOW", 0)
    | getattr(os, "O_NONBLOCK", 0)  # never block on a pipe in its place
)

Seen = dict[str, tuple[tuple[object, ...], float]]  # by path: the content, and the time of its last change


class Content(NamedTuple):
    """The holder of a lock."""

    pid: int
    host: str
    start: str  # distinguishes the process from a later one with the same id
    token: str
    place: str | None = None  # boot and namespace of the id; None in files of earlier versions
    beats: int = 0
    is_saved: bool = False
    is_awaited: bool = False

    def is_here(self) -> bool:
        """Return whether the process is visible in this process's namespace."""
        import socket  # late: it takes long

        return self.host == socket.gethostname() if self.place is None else self.place == _get_place()

    def is_own(self) -> bool:
        """Return whether this process holds the lock."""
        return self.pid == os.getpid() and self.is_here()

    def is_dead(self) -> bool:
        """Return whether the holder is a visible process that is dead."""
        return self.is_here() and _get_start(self.pid) != self.start


def make_content() -> bytes:
    """Return the content of a lock file that this process holds."""
    import secrets  # late: it takes long
    import socket  # late: it takes long

    pid = os.getpid()
    start, token = _get_start(pid), secrets.token_hex(8)
    return f"{pid} {socket.gethostname()} {start} {token} {_get_place()}\n".encode()


def read_content(path: str) -> Content | None:
    """Return the holder that a lock file names, or None if the file is missing or names none."""
    try:
        with (
            opened(path, _READING) as (fd, _),
            open(fd, encoding="utf-8", errors="replace", closefd=False) as file,
        ):
            if not stat.S_ISREG(os.fstat(fd).st_mode):
                return None
            first, end, rest = file.read(100_000).partition("\n")
        pid, host, start, *more = first.split()
        token, place = [*more, None, None][:2] if end else (None, None)  # otherwise it is being written
        if token is None:
            return None
        return Content(int(pid), host, start, token, place, rest.count("+"), "saved" in rest, "?" in rest)
    except (OSError, ValueError):
        return None


def take(path: str, seen: Seen) -> str | None:
    """Create a lock file and return its token, or None if a living process holds it.

    ``seen`` is the same dict at every attempt of one waiting lock. The holder's folder is beside the file;
    its name is the token.

    Raises
    ------
    OSError
        The file cannot be created.
    """
    if os.path.lexists(path) and _find_stale(path, seen) is None:
        return None
    content = make_content()
    token = content.split()[3].decode()
    folder = os.path.join(os.path.dirname(path), token)
    os.mkdir(folder, 0o755)
    is_held = False
    try:
        is_held = _take_file(path, content, seen) and _fence(folder)
    finally:
        if not is_held:
            remove_tree(folder)
    return token if is_held else None


def _take_file(path: str, content: bytes, seen: Seen) -> bool:
    if _create(path, content):
        return True
    stale = _find_stale(path, seen)
    if stale is None:
        return False
    over = f"{path}.{stale}"
    if not _take_file(over, content, seen):
        return False
    try:
        if _find_stale(path, seen) == stale:
            _move_away(path, stale, f"{over}-{content.split()[3].decode()}")
    finally:
        _remove(over)
    return _create(path, content)


def list_folders(parent: str) -> list[str]:
    """Return the folders of holders in a folder, sorted. Raises OSError."""
    return [os.path.join(parent, name) for name in sorted(os.listdir(parent)) if _TOKEN.fullmatch(name)]


def _fence(own: str) -> bool:
    """Move the folders of other holders into this one's; return False if another has moved this one."""
    for folder in list_folders(os.path.dirname(own)):
        if folder != own:
            with contextlib.suppress(FileNotFoundError):  # of one that does not wait any more, or see below
                os.rename(folder, os.path.join(own, os.path.basename(folder)))
    return os.path.isdir(own)


def renew(path: str, token: str) -> bool:
    """Change a lock file to show that its holder is alive; return whether it is still held."""
    if not _is_held(path, token):
        return False
    with contextlib.suppress(FileNotFoundError):
        append(path, _ALIVE)
    return _is_held(path, token)


def append(path: str, data: bytes) -> None:
    """Append to a lock file. Raises OSError, also if the file is missing."""
    with opened(path, os.O_WRONLY | os.O_APPEND | (_READING & ~os.O_RDONLY)) as (fd, _):
        os.write(fd, data)


class Heartbeat:
    """A thread that renews a lock file until :meth:`stop`, or the end of ``holder``."""

    def __init__(self, path: str, token: str, holder: object) -> None:
        self._stopped = Event()
        self.holder = weakref.ref(holder)
        thread = Thread(partial(self._run, path, token), f"lock {path}")
        with contextlib.suppress(RuntimeError):  # the interpreter and the save are about to end
            thread.start()

    def _run(self, path: str, token: str) -> None:
        while not self._stopped.wait(_BEAT) and self.holder() is not None:
            with contextlib.suppress(OSError):  # such as a full disk: the next byte is tried
                renew(path, token)

    def stop(self) -> None:
        """End the thread, at once or after its next check."""
        self._stopped.set()


def _create(path: str, content: bytes) -> bool:
    """Create a complete lock file; return False if the file exists."""
    token = content.split()[3].decode()
    aside = f"{path}-{token}"
    with open(aside, "xb") as file:
        file.write(content)
    try:
        os.link(aside, path)
    except FileExistsError:
        if os.stat(aside).st_nlink != 2:  # otherwise the call was answered twice, as by NFS
            return False
    except FileNotFoundError:
        raise
    except OSError:  # no hard links
        try:
            with opened(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666) as (fd, _):
                os.write(fd, content)
        except FileExistsError:
            return False
    finally:
        _remove(aside)  # if the last holder has not cleared the folder
    return _is_held(path, token)


def _find_stale(path: str, seen: Seen) -> str | None:
    """Return the token of a stale lock file, or a name for an empty file that has long been unchanged."""
    holder = read_content(path)
    if holder is not None and holder.is_here():
        return holder.token if holder.is_dead() else None
    if holder is not None:
        return holder.token if _is_unchanged(path, (holder.token, holder.beats), _LEASE, seen) else None
    try:
        written = os.stat(path, follow_symlinks=False).st_mtime_ns
    except OSError:
        return None
    return f"{written:x}" if _is_unchanged(path, (written,), _UNFINISHED, seen) else None


def _is_unchanged(path: str, now: tuple[object, ...], seconds: float, seen: Seen) -> bool:
    """Return whether a lock file has been unchanged for so long, by this process's clock."""
    if path not in seen or seen[path][0] != now:
        seen[path] = now, time.monotonic()
    return time.monotonic() - seen[path][1] >= seconds


def _move_away(path: str, stale: str, aside: str) -> None:
    """Remove a stale lock file, but no other file."""
    try:
        os.rename(path, aside)
    except FileNotFoundError:
        return
    found = read_content(aside)
    if found is not None and found.token != stale:  # a later holder's file, invisible before
        with contextlib.suppress(OSError):  # otherwise that holder notices before it commits
            with open(aside, "rb") as file:
                content = file.read()
            try:
                os.link(aside, path)
            except FileExistsError:
                pass
            except OSError:  # no hard links
                _create(path, content)
    _remove(aside)


def _is_held(path: str, token: str) -> bool:
    holder = read_content(path)
    return holder is not None and holder.token == token


def _remove(path: str) -> None:
    with contextlib.suppress(FileNotFoundError):
        os.unlink(path)


@lru_cache
def _get_place() -> str:
    """Return an identity for this boot of the machine and its process ids."""
    import socket  # late: it takes long

    try:
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
            boot = file.read().strip()
        return f"{boot}/{os.stat('/proc/self/ns/pid').st_ino}"
    except OSError:  # not Linux
        return socket.gethostname()


def _get_start(pid: int) -> str:
    """Return the start time of a process, which tells it from a later one with the same id; '-' if it is
    dead.
    """
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
            state, *facts = file.read().rpartition(")")[2].split()
        if state in "ZX" and len(os.listdir(f"/proc/{pid}/task")) < 2:
            return "-"  # a zombie
        return facts[18]
    except (OSError, IndexError, ValueError):
        pass
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return "-"
    except OSError:
        pass
    return "0"
