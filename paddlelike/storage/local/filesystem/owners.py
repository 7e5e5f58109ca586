"""Ownership of files: files beside a directory are trusted only if this user owns them.

Others may create files in the parent of a saved directory, such as ``/tmp``. So the owner of an entry is read
from an open descriptor, never through a link. It is compared with the owner of files that this process
creates there: its effective user, or another one if a file server maps users.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Collection
from typing import Final

from paddlelike.errors import StorageError
from paddlelike.foundation.locks import open_file, opened
from paddlelike.foundation.warn import warn_user

_FOLDER: Final = (
    os.O_RDONLY | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_NOFOLLOW", 0)
)
_NEW: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_CLOEXEC", 0)
_OTHERS_WRITE: Final = stat.S_IWGRP | stat.S_IWOTH
_LINKS: Final = 40  # on the way of a path: Linux follows no more

_shown: Final[dict[tuple[int, int], int]] = {}  # (device, effective user): the owner of files created there


class ForeignError(StorageError):
    """An entry has a name that saves use, but belongs to another user.

    Attributes
    ----------
    user
        The name of its owner.
    """

    def __init__(self, path: str, uid: int) -> None:
        self.user = _name_user(uid)
        super().__init__(
            f"{path} belongs to {self.user}, not to the user that runs this ({_name_user(_get_user())}): "
            "it is not trusted, and was not changed",
            hint=f"let {self.user} save there once; remove it only if {self.user} never saved there",
        )
        self.errno, self.path = errno.EPERM, path
        self.__cause__ = PermissionError(errno.EPERM, os.strerror(errno.EPERM), path)


def open_folder(folders: list[int], path: str) -> int:
    """Open a folder of this user in which nobody else may write; return its descriptor. It is appended to the
    descriptors that the caller closes, also after an error.

    Raises
    ------
    ForeignError
        Another user owns it.
    StorageError
        It is a link or a file.
    OSError
        It cannot be opened.
    """
    try:
        open_file(folders, path, _FOLDER)
    except OSError as error:
        if error.errno not in (errno.ELOOP, errno.ENOTDIR, errno.EACCES):
            raise
        check_own(path)
        if error.errno == errno.EACCES:
            raise
        raise StorageError(
            f"{path} is a link or a file where the folder of a save belongs",
            hint="remove or rename it",
        ) from error
    fd = folders[-1]
    facts = os.fstat(fd)
    # S18
    if not is_ours(facts, os.path.dirname(path)):
        raise ForeignError(path, facts.st_uid)
    if facts.st_mode & _OTHERS_WRITE:  # created by an earlier version under a wide umask
        with contextlib.suppress(OSError):  # a file system without modes
            os.fchmod(fd, stat.S_IMODE(facts.st_mode) & ~_OTHERS_WRITE)
    return fd


def check_own(path: str, *, beside: str | None = None) -> None:
    """Check that a path is free, or belongs to this user or the owner of ``beside``. Raises ForeignError.

    Raises
    ------
    ForeignError
        Another user owns it.
    OSError
        The system does not return the owner.
    """
    try:
        facts = os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        return
    if not is_ours(facts, os.path.dirname(path)):
        if beside is not None and os.path.exists(beside) and os.stat(beside).st_uid == facts.st_uid:
            return
        raise ForeignError(path, facts.st_uid)


def check_own_file(path: str, facts: os.stat_result) -> None:
    """Check that this user owns an open file. Raises ForeignError."""
    if not is_ours(facts, os.path.dirname(path)):
        raise ForeignError(path, facts.st_uid)


def is_ours(facts: os.stat_result, parent: str) -> bool:
    """Return whether this user owns a file in the folder ``parent``, or on its file system."""
    if facts.st_uid == _get_user():
        return True
    return _find_shown(parent or ".", facts.st_dev) == facts.st_uid


def is_own(facts: os.stat_result) -> bool:
    """Return whether this user owns a file, by the user id in its ``stat`` result."""
    return facts.st_uid == _get_user()


def check_believed(path: str, facts: os.stat_result, described: Collection[str]) -> None:
    """Check that the owner of a file may replace the other files that it decides about.

    In a folder with the sticky bit, where others can create files but not replace them, root, the owner of
    the folder and the owner of the ``described`` files are allowed; elsewhere everybody is.

    Raises
    ------
    ForeignError
        It belongs to another user.
    """
    folder = os.path.dirname(path)
    try:
        around, owners = os.stat(folder), {facts.st_uid, os.lstat(path).st_uid}
        if not _is_shared(around) or owners <= {0, around.st_uid}:
            return
        there = [os.lstat(each).st_uid for each in described if os.path.lexists(each)]
    except OSError:  # reading the files raises the error
        return
    if not there or not {*owners, *there} <= {facts.st_uid}:
        raise ForeignError(path, facts.st_uid)


def list_believed(folder: str, names: list[str]) -> list[str]:
    """Return the trusted entries of a folder, and warn about the others.

    In a folder with the sticky bit, where others can create entries but not replace them, trusted entries
    belong to this user, root or the folder's owner. Without such entries, all are trusted if one user owns
    them all.

    Raises
    ------
    ForeignError
        The entries belong to several other users.
    OSError
        The system does not return the owner.
    """
    around = os.stat(folder)
    if not _is_shared(around):
        return names
    there = {}
    for name in names:
        with contextlib.suppress(FileNotFoundError):
            there[name] = os.lstat(os.path.join(folder, name))
    ours = [n for n, facts in there.items() if facts.st_uid in (0, around.st_uid) or is_ours(facts, folder)]
    others = [ForeignError(os.path.join(folder, n), there[n].st_uid) for n in there if n not in ours]
    if not ours and len({facts.st_uid for facts in there.values()}) < 2:
        return names
    if not ours:
        raise others[0]
    if others:
        more = f" (and {len(others) - 1} more)" * (len(others) > 1)
        warn_user(f"{others[0].message}{more}")
    return ours


def check_not_planted(path: str) -> None:
    """Check that no other user has put a file into a folder where others may create files.

    Raises
    ------
    ForeignError
        The file, or its link's target, belongs neither to this user nor to root nor to the folder's owner.
    OSError
        The system does not return the owner.
    """
    for facts in (os.lstat(path), os.stat(path)):
        _check_planted(path, facts)


def check_links(path: str, directory: str) -> None:
    """Check that a path leads to a directory, and that no other user has put a link into the path.

    Only links that Linux follows by default are accepted. Each link is checked before it is followed, and no
    other user can replace a trusted one.

    Raises
    ------
    ForeignError
        One is in a folder where all may create files, and belongs neither to this user nor to root nor to the
        folder's owner.
    StorageError
        The path leads to another directory.
    OSError
        The system does not return the owner, or the links are in a circle.
    """
    if not hasattr(os, "geteuid"):
        return
    at, ahead, links = os.sep, path.split(os.sep)[::-1], 0
    while ahead:
        here = os.path.normpath(os.path.join(at, ahead.pop()))
        if not os.path.islink(here):
            at = here
            continue
        _check_planted(here, os.lstat(here), writers=stat.S_IWOTH)
        links += 1
        if links > _LINKS:
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), path)
        link = os.readlink(here)
        ahead += link.split(os.sep)[::-1]
        at = os.sep if os.path.isabs(link) else at
    if at != directory:
        raise StorageError(
            f"{path} leads to {at} now, and led to {directory} before",
            hint="somebody changed a link: try again",
        )


def _check_planted(path: str, facts: os.stat_result, writers: int = _OTHERS_WRITE) -> None:
    folder = os.path.dirname(path) or "."
    around = os.stat(folder)
    if _is_shared(around, writers) and facts.st_uid not in (0, around.st_uid) and not is_ours(facts, folder):
        raise ForeignError(path, facts.st_uid)


def _is_shared(folder: os.stat_result, writers: int = _OTHERS_WRITE) -> bool:
    """Return whether others can create entries in a folder but not replace them, as the sticky bit is set."""
    return bool(folder.st_mode & writers and folder.st_mode & stat.S_ISVTX)


def check_replaceable(directory: str, paths: Collection[str]) -> None:
    """Check that no file belongs to another user in a folder whose sticky bit forbids replacing it.

    Raises
    ------
    ForeignError
        Such a file belongs to another user.
    OSError
        The system does not return the owner.
    """
    around: dict[str, os.stat_result] = {}
    for path in paths:
        where = os.path.join(directory, path)
        folder = os.path.dirname(where)
        if folder not in around and os.path.isdir(folder):
            around[folder] = os.stat(folder)
        facts = around.get(folder)
        if facts is None or not facts.st_mode & stat.S_ISVTX or _get_user() == 0 or is_own(facts):
            continue
        check_own(where)


def _get_user() -> int:
    return os.geteuid() if hasattr(os, "geteuid") else 0


def _name_user(uid: int) -> str:
    try:
        import pwd

        return f"user {pwd.getpwuid(uid).pw_name} ({uid})"
    except (ImportError, KeyError):
        return f"user {uid}"


def _find_shown(folder: str, device: int) -> int | None:
    """Return the owner that files of this process get on the file system of a folder, or None if unknown."""
    key = device, _get_user()
    if key not in _shown:
        try:
            with opened(folder, os.O_RDONLY) as (fd, _):
                if os.fstat(fd).st_dev != device:
                    return None
                _shown[key] = _create_one(fd)
        except OSError:  # nothing may be created there
            return None
    return _shown[key]


def _create_one(folder: int) -> int:
    """Create a file in an open folder, if possible without a name, and return its owner."""
    import secrets  # late: it takes long

    unnamed = getattr(os, "O_TMPFILE", None)
    if unnamed is not None:
        try:
            with opened(".", os.O_WRONLY | unnamed, 0o600, dir_fd=folder) as (fd, _):
                return os.fstat(fd).st_uid
        except OSError as error:
            if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
                raise
    name = f".{secrets.token_hex(16)}"
    with opened(name, _NEW, 0o600, dir_fd=folder) as (fd, _):
        try:
            return os.fstat(fd).st_uid
        finally:
            os.unlink(name, dir_fd=folder)
