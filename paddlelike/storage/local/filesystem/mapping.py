"""Locks on memory-mapped files: a shared lock keeps saves from writing into such a file.

Saves replace files, and a mapping keeps the replaced file. The exception is ``keep_generation``, where the
next save overwrites the files of the previous version. It writes into such a file only under an exclusive
lock, and only while the file has no other name. The system releases a shared lock with the last mapping.
"""

from __future__ import annotations

import os

try:
    import fcntl
except ImportError:  # not a POSIX system
    fcntl = None  # type: ignore[assignment]


def hold(fd: int) -> bool:
    """Keep saves from writing into an open file; return False if a save is writing into it now.

    The lock is held until the last copy of the descriptor is closed, and a mapping has one.
    """
    if fcntl is None:
        return True
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:  # without such locks, no save writes into files
        return True
    return True


def is_free(fd: int) -> bool:
    """Return whether an open file may be written into; if so, it cannot be mapped before it is closed."""
    if fcntl is None:
        return False
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    # S14
    return os.fstat(fd).st_nlink == 1
