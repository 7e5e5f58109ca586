"""One saver at a time: a lock file beside the directory, held by flock, gone when nobody saves.

The system lets go of the lock when its holder dies, however it dies. Where a file system has no flock, the
process number in the file counts, as long as that process lives on this machine.
"""

from __future__ import annotations

import contextlib
import errno
import os
import socket
import stat
import time
import weakref
from types import TracebackType
from typing import Final

from paddlelike.errors import SaveError
from paddlelike.storage.problems import explained

try:
    import fcntl
except ImportError:  # not a POSIX system
    fcntl = None  # type: ignore[assignment]

__all__ = ["Lock"]

_FLAGS: Final = (
    os.O_RDWR
    | os.O_CREAT
    | getattr(os, "O_CLOEXEC", 0)
    | getattr(os, "O_NOFOLLOW", 0)
    | getattr(os, "O_NONBLOCK", 0)  # a device in its place is not waited for
)
_NO_FLOCK: Final = {errno.ENOSYS, errno.ENOLCK, errno.ENOTSUP, errno.EOPNOTSUPP, errno.EINVAL}
_PAUSE: Final = 0.02  # seconds between two tries


class Lock:
    """A lock file, held inside the ``with``.

    Parameters
    ----------
    path
        The file; it is made, and removed at the end.
    what
        What is locked, for the message.
    wait
        Seconds to wait for another holder; None: as long as it takes.

    Raises
    ------
    SaveError
        Another process, which is named, still holds it.
    """

    def __init__(self, path: str, what: str, *, wait: float | None = 0.0) -> None:
        self._path = path
        self._what = what
        self._wait = wait
        self._fd = -1

    def __enter__(self) -> Lock:
        until = None if self._wait is None else time.monotonic() + self._wait
        while not self._taken():
            if until is not None and time.monotonic() >= until:
                raise SaveError(
                    f"{self._what} is being saved by {self._holder()} at this moment; nothing was changed",
                    hint="save into another directory, or wait for it with wait=seconds",
                )
            time.sleep(_PAUSE)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        fd, self._fd = self._fd, -1
        _held.discard(self)
        if fd < 0:  # this is a process that was forked meanwhile, and the lock is its parent's
            return
        try:
            os.unlink(self._path)  # while it is held: whoever waits for this file looks again
        except OSError:
            pass  # the next saver takes the file over
        finally:
            os.close(fd)

    def _taken(self) -> bool:
        try:
            fd = os.open(self._path, _FLAGS, 0o666)
        except OSError as error:
            raise explained(SaveError, f"{self._what} cannot be locked ({self._path})", error) from error
        try:
            if not stat.S_ISREG(os.fstat(fd).st_mode):
                raise SaveError(f"{self._what} cannot be locked: {self._path} is no regular file")
            mine = _flock(fd, self._path) and _is_there(fd, self._path)
            if mine:
                os.ftruncate(fd, 0)
                os.write(fd, f"{os.getpid()} {socket.gethostname()} {_birth(os.getpid())}\n".encode())
        except OSError as error:
            self._let_go(fd)
            raise explained(SaveError, f"{self._what} cannot be locked ({self._path})", error) from error
        except BaseException:
            os.close(fd)
            raise
        if not mine:
            os.close(fd)
            return False
        self._fd = fd
        _held.add(self)
        return True

    def _let_go(self, fd: int) -> None:
        with contextlib.suppress(OSError):
            if _is_there(fd, self._path) and os.fstat(fd).st_size == 0:
                os.unlink(self._path)  # nothing but what was made here
        os.close(fd)

    def _holder(self) -> str:
        pid, host, _ = _content(self._path)
        if not pid:
            return "another process"
        if host != socket.gethostname():
            return f"process {pid} on {host}"
        return "another thread of this process" if pid == os.getpid() else f"process {pid}"


_held: Final[weakref.WeakSet[Lock]] = weakref.WeakSet()


def _leave_to_the_parent() -> None:
    """In a forked process: else a lock would be held as long as that lives, though its holder was killed."""
    for lock in list(_held):
        fd, lock._fd = lock._fd, -1
        os.close(fd)
    _held.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_leave_to_the_parent)


def _flock(fd: int, path: str) -> bool:
    """Whether the lock is ours now."""
    if fcntl is not None:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            if error.errno in (errno.EWOULDBLOCK, errno.EACCES):
                return False
            if error.errno not in _NO_FLOCK:
                raise
        else:
            return True
    pid, host, birth = _content(path)
    return not pid or (host == socket.gethostname() and _birth(pid) != birth)


def _is_there(fd: int, path: str) -> bool:
    """Whether the locked file is still the one of that name: its last holder may have removed it."""
    try:
        return os.path.samestat(os.fstat(fd), os.lstat(path))
    except FileNotFoundError:
        return False


def _content(path: str) -> tuple[int, str, str]:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            pid, host, birth = file.read(1000).split()
        return int(pid), host, birth
    except (OSError, ValueError):
        return 0, "", ""


def _birth(pid: int) -> str:
    """When a process began, so that another one of the same number is not taken for it; '-': it is dead."""
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
