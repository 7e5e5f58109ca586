"""Replacement of files by files from another file system, for example if the directory is a mount point.

A rename cannot do that. The new files are first written without names in the target's file system (Linux:
O_TMPFILE), then all get their names, so no reader finds a half-written file. Where that is impossible, each
file is copied to its name.
"""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
from collections.abc import Sequence
from typing import Final

from paddlelike.foundation.locks import OpenFile, close_at_end, close_files, open_file, opened

_MANY: Final = 100  # files that are open at a time
_UNNAMED: Final = getattr(os, "O_TMPFILE", 0)
_OVER: Final = os.O_WRONLY | os.O_CREAT | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NOFOLLOW", 0)


def move_across_devices(moves: Sequence[tuple[str, str]]) -> None:
    """Replace each target of ``(source, target)`` by its source, and delete the sources afterwards.

    Raises
    ------
    OSError
        A file cannot be written.
    """
    for at in range(0, len(moves), _MANY):
        some = moves[at : at + _MANY]
        for (source, target), copy in zip(some, _copies(some), strict=True):
            os.stat(source)  # raises where another process has taken it over
            if not _remove(target) or not _name(copy, target):
                _copy(source, target)
    for source, _ in moves:
        os.unlink(source)


def _copies(moves: Sequence[tuple[str, str]]) -> list[OpenFile | None]:
    """Return open unnamed copies; None if they cannot be created."""
    copies = []
    for source, target in moves:
        copy = None
        try:
            if _UNNAMED:
                copy = opened(os.path.dirname(target), os.O_WRONLY | _UNNAMED | os.O_CLOEXEC, 0o600)
                _fill(copy.args[0], source)
        except OSError:  # no room for both, or no unnamed files there
            copy = None
        copies.append(copy)
    return copies


def _name(copy: OpenFile | None, target: str) -> bool:
    """Link an unnamed file to its name; return False if that is impossible."""
    if copy is None:
        return False
    try:
        with opened("/proc/self/fd", os.O_RDONLY) as (mine, _):
            os.link(str(copy.args[0]), target, src_dir_fd=mine, follow_symlinks=True)
    except OSError:
        return False
    return True


def _remove(path: str) -> bool:
    """Remove a file rather than overwrite it, since it may be mapped or have other names; return False for a
    mount point.
    """
    try:
        os.unlink(path)
    except FileNotFoundError:
        return True
    except OSError as error:
        if error.errno != errno.EBUSY:
            raise
        return False
    return True


def _copy(source: str, target: str) -> None:
    files: list[int] = []
    with close_at_end(files):
        open_file(files, target, _OVER, 0o600)
        _fill(files[0], source)
        close_files(files)


def _fill(fd: int, source: str) -> None:
    """Give an open file the contents, the owner, the mode and the times of another one."""
    with open(source, "rb") as old, open(fd, "wb", closefd=False) as new:
        facts = os.fstat(old.fileno())
        shutil.copyfileobj(old, new, 8 << 20)
        new.truncate()
    with contextlib.suppress(PermissionError):  # only root may change owners
        os.fchown(fd, facts.st_uid, facts.st_gid)
    os.fchmod(fd, facts.st_mode & 0o7777)
    os.utime(fd, ns=(facts.st_atime_ns, facts.st_mtime_ns))
