"""One save at a time: a lock file in the hidden entry beside the directory, held by flock.

The system releases the lock whenever its holder dies. On a file system without flock, the creator of the file
holds the lock while its process lives, or its lease lasts (:mod:`.lock_file`).

Threads of one process take the lock in the order of their requests. Processes poll the lock, more often the
longer they have waited, and record in the lock file that they wait. A process that releases the lock and
finds such a record lets others go first, so no process waits for ever.
"""

from __future__ import annotations

import atexit
import contextlib
import errno
import os
import stat
import threading
import time
import weakref
from types import TracebackType
from typing import Final

from paddlelike.errors import SaveError
from paddlelike.foundation.locks import Event, RLock, close_at_end, close_files, open_file
from paddlelike.foundation.warn import warn_user
from paddlelike.storage.local.filesystem.lock_file import (
    AWAITED,
    SAVED,
    Content,
    Heartbeat,
    Seen,
    append,
    make_content,
    read_content,
    renew,
    take,
)
from paddlelike.storage.local.filesystem.owners import ForeignError, is_ours, open_folder
from paddlelike.storage.local.filesystem.retired import remove_tree
from paddlelike.storage.problems import explain

try:
    import fcntl
except ImportError:  # not a POSIX system
    fcntl = None  # type: ignore[assignment]

_FLAGS: Final = (
    os.O_RDWR
    | os.O_CREAT
    | getattr(os, "O_CLOEXEC", 0)
    | getattr(os, "O_NOFOLLOW", 0)
    | getattr(os, "O_NONBLOCK", 0)  # never block on a device in its place
)
_MODE: Final = 0o755  # mode of the folder: readers look for a journal, nobody else writes
_NO_FLOCK: Final = {errno.ENOSYS, errno.ENOLCK, errno.ENOTSUP, errno.EOPNOTSUPP, errno.EINVAL}
_PAUSE: Final = 0.02  # seconds between the first two attempts
_TURN: Final = 0.04  # seconds for threads of one process before another process goes first
_GONE: Final = 5.0  # seconds without a poll after which a thread counts as interrupted
_END: Final = 30.0  # seconds that the end of the interpreter waits for saves in daemon threads
_TRIES: Final = 200  # attempts to take a lock whose file its last holder may be removing
_LONG: Final = 2.0  # seconds of waiting before the user gets a message
_GRACE: Final = 1.0  # seconds for another user's entry to be created or removed
_DISK: Final = 60.0  # seconds for the disk to write a committed save


class Lock:
    """A lock file, held inside the ``with``, and its folder, which is removed when it is empty.

    Parameters
    ----------
    path
        The file. It is created with its folder, and removed at the end.
    what
        A name for the locked object, for the messages.
    wait
        Seconds to wait for another holder; None for no limit. A holder that only waits for the disk gets a
        minute in any case.

    Attributes
    ----------
    folder
        The folder for the files of the holder: the one that the lock file is in, or without flock a folder
        inside it, which the next holder moves away.
    waited
        A sentence about another holder for which this one waited, or None.

    Raises
    ------
    SaveError
        The lock is entered while another process, which is named, holds it, or its file cannot be
        created.
    """

    def __init__(self, path: str, what: str, *, wait: float | None = 0.0) -> None:
        self._path = path
        self._what = what
        self._wait = wait
        self._files: list[int] = []  # the descriptor, while the lock is held
        self._end = close_at_end(self._files)  # of a lock that an interrupt left unreleased
        self._token: str | None = None  # of the file, without flock
        self._heartbeat: Heartbeat | None = None
        self._seen: Seen = {}
        self._looked = 0.0
        self._foreign: tuple[float, ForeignError] | None = None  # time of the last holder, and its owner
        self.folder = os.path.dirname(path)
        self.waited: str | None = None

    def __enter__(self) -> Lock:
        try:
            _waiting.append(self)
            if not self._files:
                self._wait_for_turn()
            if self in _waiting:  # a fork empties it
                _waiting.remove(self)
            return self
        except BaseException:  # such as Ctrl-C, even after the lock was taken
            self.release()
            raise

    def _wait_for_turn(self) -> None:
        start = time.monotonic()
        holder, noted = "", None
        has_warned = False
        # without waiting, only a holder is a reason to refuse, not other waiting saves
        while not ((self._wait == 0 or self.is_next()) and self.acquire()):
            content = read_content(self._path)
            holder = _name_holder(content)
            if self._foreign is not None:
                holder = f"{holder} of {self._foreign[1].user} ({os.path.dirname(self._path)} is theirs)"
            seconds = time.monotonic() - start
            if self._wait is not None and seconds >= self._limit(self._wait, content):
                waited = f"; waited {seconds:.1f} s" if self._wait else ""
                raise SaveError(
                    f"{self._what} is being saved by {holder} at this moment{waited}; nothing was changed",
                    hint="save into another directory or later; save_persistables(wait=seconds) waits longer",
                ) from (None if self._foreign is None else self._foreign[1])
            if seconds >= _LONG and not has_warned:
                has_warned = True
                until = "" if self._wait is None else f", at most {self._wait:.0f} s"
                warn_user(f"waiting for {holder}, which is saving into {self._what}{until}")
            is_own = self._foreign is not None or (content is not None and content.is_own())
            if content is not None and content.token != noted and not is_own:
                noted = content.token
                with contextlib.suppress(OSError):  # removed, or another user's
                    append(self._path, AWAITED)
            _released.clear()
            _released.wait(max(_PAUSE / (1 + seconds), _PAUSE / 4))
        _turns.setdefault(self._path, time.monotonic())
        if holder:
            self.waited = f"waited {time.monotonic() - start:.1f} s for {holder}, which was saving here"

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if not self._files:  # in a process forked meanwhile, the lock belongs to the parent
            return
        with contextlib.suppress(OSError):  # otherwise the next save takes the file over
            try:
                if self._heartbeat is not None:
                    self._heartbeat.stop()
                content, now = read_content(self._path), time.monotonic()
                if content is None or not content.is_awaited:
                    _turns.pop(self._path, None)
                elif now - _turns.get(self._path, 0.0) >= _TURN:
                    _turns[self._path] = now + _TURN  # waiting processes poll within half of it
                if self._token is None:
                    os.unlink(self._path)  # while held: waiting processes look again
                elif not self.is_lost():
                    # S19
                    os.rename(self._path, os.path.join(self.folder, "lock"))
            finally:  # released even after an error of the disk or Ctrl-C
                close_files(self._files)
        if self._token is not None:
            remove_tree(self.folder)
        self._token = self._heartbeat = None
        with contextlib.suppress(OSError):  # not empty
            os.rmdir(os.path.dirname(self._path))
        _held.discard(self)
        _released.set()

    def is_next(self) -> bool:
        """Return whether no thread or process that takes precedence has waited longer than this lock."""
        self._looked = now = time.monotonic()
        first = next((one for one in _waiting if one._path == self._path and now - one._looked < _GONE), self)
        return first is self and time.monotonic() >= _turns.get(self._path, 0.0)

    def acquire(self, *, create: bool = True) -> bool:
        """Take the lock if nobody holds it, and return whether it was taken; :meth:`release` gives it back.

        ``create=False``: only if the lock file exists, as after a kill.

        Raises
        ------
        SaveError
            The lock file cannot be created, opened or locked.
        """
        for _ in range(_TRIES):
            try:
                with _opening.hold():
                    is_late = bool(_ended) and threading.current_thread() is not threading.main_thread()
                    taken = None if is_late else self._try(create=create)
            except FileNotFoundError:
                if not create:
                    return False
                continue  # the last holder removed the folder at this moment
            except ForeignError as error:
                self._refuse_dead(error)
                return False
            if is_late:
                _stay_for_ever()
            self._foreign = None
            if taken is not None:
                return taken
        raise SaveError(
            f"{self._what} cannot be locked: {self._path} is not there after it was created, {_TRIES} times",
            hint="choose another directory: this file system loses new files, or changes their type",
        )

    def release(self) -> None:
        """Release the lock and remove its file. If the lock is not held, do nothing."""
        try:
            if self in _waiting:  # after Ctrl-C at its end
                _waiting.remove(self)
            self.__exit__(None, None, None)
        finally:  # Ctrl-C may come here
            close_files(self._files)

    def is_lost(self) -> bool:
        """Return whether another process has taken over the lock because this one was stopped for too
        long.
        """
        return self._token is not None and not renew(self._path, self._token)

    def check(self) -> None:
        """Check that the lock is still held.

        Raises
        ------
        SaveError
            It was taken over.
        """
        # S2
        if self.is_lost():
            raise SaveError(
                f"{self._what} cannot be saved: this process did not renew its lock in time, and "
                f"{_name_holder(read_content(self._path))} has taken its lock over",
                hint="save again",
            )

    def hand_over(self, other: Lock) -> None:
        """Hand the lock over to another object, which holds it until the save is on the disk."""
        with contextlib.suppress(OSError):  # others then wait no longer than their limit
            os.lseek(self._files[0], 0, os.SEEK_END)
            os.write(self._files[0], SAVED)
        with _opening.hold():
            other._token, other._heartbeat, other.folder = self._token, self._heartbeat, self.folder
            self._token = self._heartbeat = None
            if other._heartbeat is not None:
                other._heartbeat.holder = weakref.ref(other)
            _held.discard(self)
            _held.add(other)
            other._files.extend(map(self._files.pop, (0,)))  # at once

    def _limit(self, wait: float, content: Content | None) -> float:
        """Return the seconds to wait for the current holder."""
        return max(wait, _DISK) if content is not None and content.is_saved else wait

    def _refuse_dead(self, error: ForeignError) -> None:
        """Raise the error for another user's entry, unless a process that may be alive holds its lock."""
        now, content = time.monotonic(), read_content(self._path)
        may_live = content is not None and not content.is_dead()
        since = now if may_live or self._foreign is None else self._foreign[0]
        self._foreign = since, error
        if not may_live and now - since >= min(_GRACE, self._wait or 0.0):
            message = f"{self._what} cannot be saved: {error.message}"
            raise SaveError(message, hint=error.hint) from error

    def _try(self, *, create: bool) -> bool | None:
        """Return whether the lock was taken, or None if its last holder removed the file meanwhile."""
        opened: list[int] = []  # until the lock is ours
        folders: list[int] = []
        _ends = close_at_end(opened), close_at_end(folders)  # for an interrupt before the calls below
        try:
            return self._try_opened(opened, folders, create=create)
        finally:
            close_files(opened)
            close_files(folders)

    def _try_opened(self, opened: list[int], folders: list[int], *, create: bool) -> bool | None:
        folder = os.path.dirname(self._path)
        try:
            if create:
                self._make_folder()
            here = open_folder(folders, folder)
            if not _has_flock(here):
                return self._try_file(create=create)
            self._open(opened, here, create=create)
        except (FileNotFoundError, ForeignError):
            raise
        except OSError as error:
            with contextlib.suppress(OSError):  # not empty
                os.rmdir(folder)
            raise explain(SaveError, f"{self._what} cannot be locked ({self._path})", error) from error
        (fd,) = opened
        try:
            if not _flock(fd):
                return False
            # S2
            if not _is_there(fd, self._path):
                return None
            os.ftruncate(fd, 0)
            os.write(fd, make_content())
        except BaseException as error:
            self._give_back(fd)
            if not isinstance(error, OSError):
                raise  # such as Ctrl-C
            raise explain(SaveError, f"{self._what} cannot be locked ({self._path})", error) from error
        self._files.extend(map(opened.pop, (0,)))  # at once
        _held.add(self)
        return True

    def _try_file(self, *, create: bool) -> bool:
        """Return whether the lock was taken, on a file system without flock. Raises OSError."""
        if not create and not os.path.lexists(self._path):
            return False
        token = take(self._path, self._seen)
        if token is None:
            return False
        open_file(self._files, self._path, _FLAGS & ~os.O_CREAT)
        self.folder = os.path.join(os.path.dirname(self._path), token)
        self._token, self._heartbeat = token, Heartbeat(self._path, token, self)
        _held.add(self)
        return True

    def _open(self, opened: list[int], folder: int, *, create: bool) -> None:
        flags = _FLAGS if create else _FLAGS & ~os.O_CREAT
        try:
            open_file(opened, os.path.basename(self._path), flags, 0o644, dir_fd=folder)
        except IsADirectoryError:
            is_good = False
        else:
            facts = os.fstat(opened[0])
            # A file without a name was just removed by its last holder; that is noticed once it is locked.
            is_alone = stat.S_ISREG(facts.st_mode) and facts.st_nlink < 2
            is_good = is_alone and is_ours(facts, os.path.dirname(self._path))
        if not is_good:
            raise SaveError(
                f"{self._what} cannot be locked: {self._path} is not a regular file of this user alone",
                hint="remove it, if nobody saves there at this moment",
            )

    def _make_folder(self) -> None:
        folder = os.path.dirname(self._path)
        try:
            os.mkdir(folder, _MODE)
        except FileExistsError:
            return  # its owner is checked once it is open
        except FileNotFoundError as error:
            parent = os.path.dirname(folder) or "."
            if not os.path.isdir(parent):
                raise SaveError(f"{self._what} cannot be locked: its parent directory was removed") from None
            raise explain(SaveError, f"no file can be created in {parent}", error) from error  # such as /proc

    def _give_back(self, fd: int) -> None:
        with contextlib.suppress(OSError):
            if _is_there(fd, self._path) and os.fstat(fd).st_size == 0:
                os.unlink(self._path)  # only files created here
                os.rmdir(os.path.dirname(self._path))


_held: Final[weakref.WeakSet[Lock]] = weakref.WeakSet()
_opening: Final = RLock()  # held while an open file's lock is not in the set above
_opening.hold_in_forks()
_released: Final = Event()  # notified when this process releases a lock
_waiting: Final[list[Lock]] = []  # waiting locks of this process, in order of arrival
_turns: Final[dict[str, float]] = {}  # by path, the time at which this process's turn began or begins


_ended: Final[list[bool]] = []  # an item once the interpreter is about to end


def _wait_for_others() -> None:
    """Wait for saves in daemon threads, which the end of Python would interrupt. No new ones begin."""
    with _opening.hold():
        _ended.append(True)
    end = time.monotonic() + _END
    released = time.monotonic() + _GRACE  # released locks remove their entries then
    while _held and time.monotonic() < end:
        with contextlib.suppress(RuntimeError):  # another thread changed the set
            if any(one._files for one in list(_held)):
                released = time.monotonic() + _GRACE
            elif time.monotonic() >= released:
                return
        time.sleep(_PAUSE / 4)


def _stay_for_ever() -> None:
    while True:
        time.sleep(_END)


atexit.register(_wait_for_others)


def _leave_to_parent() -> None:
    """Close the locks in a forked process, where they would otherwise outlive a killed holder."""
    for lock in list(_held):
        close_files(lock._files)
    _held.clear()
    _waiting.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_leave_to_parent)


def _name_holder(content: Content | None) -> str:
    """Describe the process in a lock file."""
    import socket  # late: it takes long

    if content is None:
        return "another process"
    if content.host != socket.gethostname():
        return f"process {content.pid} on {content.host}"
    return "another thread of this process" if content.is_own() else f"process {content.pid}"


def _has_flock(fd: int) -> bool:
    """Return whether the file system of an open folder has flock."""
    if fcntl is None:
        return False
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError as error:
        return error.errno not in _NO_FLOCK
    return True


def _flock(fd: int) -> bool:
    """Return whether this process holds the lock now."""
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno in (errno.EWOULDBLOCK, errno.EACCES):
            return False
        raise
    return True


def _is_there(fd: int, path: str) -> bool:
    """Return whether the locked file still has its name, since its last holder may have removed it."""
    try:
        return os.path.samestat(os.fstat(fd), os.lstat(path))
    except FileNotFoundError:
        return False
