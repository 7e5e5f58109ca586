"""System calls that Python lacks: exchange two names, sync a file system, share blocks."""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import re
import stat
import sys
from collections.abc import Callable
from functools import lru_cache
from typing import Any, Final

from paddlelike.foundation.locks import opened

_AT_FDCWD: Final = -100
_RENAME_EXCHANGE: Final = 2
_FICLONE: Final = 0x40049409
_AT_SYMLINK_NOFOLLOW: Final = 0x100
_STATX_INO, _STATX_BTIME, _STATX_MNT_ID_UNIQUE = 0x100, 0x800, 0x4000  # the last one from Linux 6.8 on


def exchange(a: str, b: str) -> None:
    """Swap two names in one step, so that neither is ever missing.

    Raises
    ------
    OSError
        ENOSYS where the system cannot do it, EINVAL where the file system cannot.
    """
    call = _function("renameat2")
    if call is None:
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS), a)
    if call(_AT_FDCWD, os.fsencode(a), _AT_FDCWD, os.fsencode(b), ctypes.c_uint(_RENAME_EXCHANGE)):
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code), a, None, b)


def has_mounts(directory: str) -> bool:
    """Return whether something is mounted below a directory, which an exchange would not move."""
    try:
        with open("/proc/self/mountinfo", "rb") as file:
            points = [line.split(b" ", 5)[4] for line in file if line.count(b" ") > 4]
    except OSError:  # not Linux
        return False
    front = os.fsencode(os.path.join(directory, ""))
    plain = (re.sub(rb"\\([0-7]{3})", lambda octal: bytes([int(octal[1], 8)]), point) for point in points)
    return any(point.startswith(front) for point in plain)


def sync_file_system(path: str) -> None:
    """Write everything of the file system that holds ``path`` to its disk.

    Raises
    ------
    OSError
        The disk refuses it.
    """
    with opened(path, os.O_RDONLY) as (fd, _):
        call = _function("syncfs")
        if call is None:
            os.sync()
        elif call(fd):
            code = ctypes.get_errno()
            raise OSError(code, os.strerror(code), path)


def sync_directory(path: str) -> None:
    """Sync the names in a directory, or the bytes of a file, to the disk.

    Raises
    ------
    OSError
        The disk refuses it.
    """
    with opened(path, os.O_RDONLY) as (fd, _):
        os.fsync(fd)


def drop_cache(path: str) -> None:
    """Make the next read of a file come from the disk, if possible."""
    if not hasattr(os, "posix_fadvise"):
        return
    # a broken link, for example; its reader raises the error
    with contextlib.suppress(OSError), opened(path, os.O_RDONLY | os.O_NONBLOCK) as (fd, _):
        os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)


def identify_mount(path: str) -> str | None:
    """Return an identity of a file that differs in a copy or another mount of its file system, or None if the
    system has none.
    """
    call, facts = _function("statx"), ctypes.create_string_buffer(256)
    wanted = _STATX_INO | _STATX_BTIME | _STATX_MNT_ID_UNIQUE
    flags = _AT_SYMLINK_NOFOLLOW
    if call is None or call(_AT_FDCWD, os.fsencode(path), flags, ctypes.c_uint(wanted), facts):
        return None
    if int.from_bytes(facts.raw[:4], sys.byteorder) & wanted != wanted:
        return None
    try:
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
            boot = file.read().strip()
    except OSError:
        return None
    inode, birth, mount = facts.raw[0x20:0x28], facts.raw[0x50:0x5C], facts.raw[0x90:0x98]
    return f"{boot} {mount.hex()} {inode.hex()} {birth.hex()}"


def sync_tree(path: str) -> None:
    """Write a directory, its files and its own name to the disk.

    Raises
    ------
    OSError
        The disk refuses it.
    """
    for folder, _, files in os.walk(path, onerror=_raise):
        for name in files:
            where = os.path.join(folder, name)
            if stat.S_ISREG(os.lstat(where).st_mode):
                sync_directory(where)
        sync_directory(folder)
    sync_directory(os.path.dirname(path))


def _raise(error: OSError) -> None:
    raise error


def reflink(source: str, target: str) -> bool:
    """Make ``target`` share the blocks of ``source`` until one is written; return False where that fails."""
    if not sys.platform.startswith("linux"):
        return False
    import fcntl

    with open(source, "rb") as old, open(target, "xb") as new:
        try:
            fcntl.ioctl(new.fileno(), _FICLONE, old.fileno())
        except OSError:
            os.unlink(target)
            return False
    return True


@lru_cache
def _function(name: str) -> Callable[..., Any] | None:
    if not sys.platform.startswith("linux"):
        return None
    try:
        return ctypes.CDLL(None, use_errno=True)[name]  # type: ignore[no-any-return, unused-ignore]
    except (OSError, AttributeError):  # an old C library
        return None
