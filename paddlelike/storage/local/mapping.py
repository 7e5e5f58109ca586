"""Files that somebody has mapped: a shared lock on such a file keeps savers from writing into it.

Savers replace files, and a mapping keeps the one that was replaced. The exception is the generation before
that ``keep_generation`` has the next save write over: there a file is written into only by who has its
lock alone, and only while it has no other name. The system lets go of a lock with the last mapping.
"""

from __future__ import annotations

import os

try:
    import fcntl
except ImportError:  # not a POSIX system
    fcntl = None  # type: ignore[assignment]

__all__ = ["hold", "is_free"]


def hold(fd: int) -> bool:
    """Keep savers from writing into an open file; False: one is writing into it now.

    It is held until the last copy of the descriptor is closed, and a mapping has one.
    """
    if fcntl is None:
        return True
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:  # there are no such locks here, and so nobody writes into files
        return True
    return True


def is_free(fd: int) -> bool:
    """Whether an open file may be written into; if so, it cannot be mapped before it is closed."""
    if fcntl is None or os.fstat(fd).st_nlink != 1:
        return False
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return os.fstat(fd).st_nlink == 1
