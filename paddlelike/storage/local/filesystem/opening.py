"""Open regular files for reading, and refuse all other kinds without waiting for them.

In another user's directory a pipe, which would block, or a device may stand in place of a file. Links are
followed, since a model may be in a cache of files or on another disk. Their targets are only read; saves
replace the link.
"""

from __future__ import annotations

import errno
import os
import stat
from typing import Final

from paddlelike.errors import StorageError
from paddlelike.foundation.locks import OpenFile, opened
from paddlelike.storage.local.filesystem.owners import check_own_file
from paddlelike.storage.problems import explain

READING: Final = (  # the flags of open
    os.O_RDONLY
    | getattr(os, "O_CLOEXEC", 0)
    | getattr(os, "O_BINARY", 0)
    | getattr(os, "O_NONBLOCK", 0)  # no effect on a regular file
    | getattr(os, "O_NOCTTY", 0)
)
_NO_LINK: Final = getattr(os, "O_NOFOLLOW", 0)
_KINDS: Final = {
    stat.S_IFDIR: "a directory",
    stat.S_IFIFO: "a pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}


def open_regular(path: str, *, own: bool = False) -> tuple[OpenFile, os.stat_result]:
    """Return an open file and the result of ``stat`` for it.

    With ``own`` it follows no link, and opens only a file of this user.

    Raises
    ------
    StorageError
        It cannot be opened, or is not a regular file.
    """
    try:
        file = opened(path, READING | _NO_LINK if own else READING)
    except ValueError as error:  # a NUL character
        raise StorageError(f"{path!r} cannot be read: {error}") from error
    except OSError as error:
        raise unreadable(path, error) from error
    try:
        facts = os.fstat(file.args[0])
        if not stat.S_ISREG(facts.st_mode):
            raise _no_file(path, facts)
        if own:
            check_own_file(path, facts)
    except BaseException as error:
        del file  # a traceback would keep it
        if isinstance(error, OSError) and not isinstance(error, StorageError):
            raise unreadable(path, error) from error
        raise
    return file, facts


def unreadable(path: str, error: OSError) -> StorageError:
    """Return the error for a file that the system refuses to read."""
    if isinstance(error, FileNotFoundError):
        directory = os.path.dirname(path) or "."
        if not os.path.isdir(directory):
            return StorageError(f"{path} cannot be read: there is no directory {directory}")
        if os.path.islink(path):
            return StorageError(
                f"{path} cannot be read: it is a link to {os.readlink(path)!r}, which does not exist"
            )
        return StorageError(f"{path} cannot be read: there is no such file in {directory}")
    if error.errno == errno.ELOOP and os.path.islink(path):
        return StorageError(
            f"{path} is a link to {os.readlink(path)!r}; a file is expected", hint="remove it"
        )
    if error.errno == errno.ENXIO:  # a socket cannot even be opened
        return StorageError(f"{path} is a socket or a device; a file is expected")
    return explain(StorageError, f"{path} cannot be read", error)


def _no_file(path: str, facts: os.stat_result) -> StorageError:
    kind = _KINDS.get(stat.S_IFMT(facts.st_mode), "no regular file")
    return StorageError(f"{path} is {kind}; a file is expected")
