"""Commits in several steps, where a file system cannot exchange two directories in one.

The new files wait in ``DIR.saving/new``, what they replace is kept in ``DIR.saving/old``. The commit is the
moment ``DIR.journal`` gets its name: from then on the save is finished file by file, by whoever comes next if
need be (:func:`recover`), and each step may be done twice. A saver that fails on the way puts another journal
in its place, which leads back; so the direction is decided by one rename as well.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import shutil
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from paddlelike.errors import PaddlelikeError, SaveError, StorageError
from paddlelike.storage.local.carrying import carry
from paddlelike.storage.local.lock import Lock
from paddlelike.storage.local.opening import open_regular
from paddlelike.storage.local.retired import remove_folders
from paddlelike.storage.local.siblings import Siblings
from paddlelike.storage.local.system import sync_directory, sync_file_system
from paddlelike.storage.names import relative_path
from paddlelike.storage.problems import explained

__all__ = ["commit", "finish", "recover"]

_FORMAT: Final = 1
_MOST: Final = 1 << 28  # bytes: a million paths
_WAIT: Final = 60.0  # seconds for a living saver to come to its end


class _Journal(NamedTuple):
    """What a commit in several steps does."""

    direction: str  # "forward", or "back" to how it was
    inside: bool  # the files lie beside the journal, not below its base
    paths: list[str]
    kept: list[bool]  # of each path: whether there was a file, which is in "old" now
    folders: list[str]  # that were not there
    manifest: bool
    sync: bool
    dropped: list[str]  # that go; there were files, which are in "old" behind those of ``paths``


def recover(path: str | os.PathLike[str]) -> None:
    """Finish a save into ``path`` whose saver was killed in the middle of a commit; else this is one stat.

    Raises
    ------
    StorageError
        The save cannot be finished by this process; the message says why.
    """
    siblings = Siblings.of(path)
    if not os.path.lexists(siblings.journal):
        return
    try:
        with Lock(siblings.lock, siblings.base, wait=_WAIT):
            finish(siblings)
    except PaddlelikeError as error:
        raise StorageError(
            f"{siblings.base} holds a save that was interrupted and cannot be finished: {error.message}",
            hint="let somebody who may write there load or save it once",
        ) from error


def commit(
    siblings: Siblings,
    directory: str,
    paths: Sequence[str],
    dropped: Sequence[str] = (),
    *,
    manifest: bool,
    sync: bool = False,
) -> None:
    """Move ``paths`` from the staging area into ``directory`` and remove ``dropped`` there: all, or nothing.

    Raises
    ------
    SaveError
        With the reason; everything is as it was.
    """
    try:
        _check_inside(directory, [*paths, *dropped])
    except StorageError as error:
        raise SaveError(error.message, hint=error.hint) from error
    try:
        kept, folders = _keep(siblings.staging, directory, [*paths, *dropped])
        inside = directory != siblings.base
        journal = _Journal("forward", inside, list(paths), kept, folders, manifest, sync, list(dropped))
        forward = os.path.join(siblings.staging, "forward")
        back = os.path.join(siblings.staging, "back")
        for path, facts in ((forward, journal), (back, journal._replace(direction="back"))):
            with open(path, "x", encoding="utf-8") as file:
                json.dump({"format": _FORMAT, **facts._asdict()}, file)
        if sync:
            sync_file_system(siblings.staging)
        os.rename(forward, siblings.journal)
        if sync:
            sync_directory(siblings.parent)
    except OSError as error:
        raise explained(SaveError, f"{directory} cannot be written", error) from error
    try:
        finish(siblings)
    except Exception as error:
        os.rename(back, siblings.journal)
        finish(siblings)
        if isinstance(error, OSError):
            raise explained(SaveError, f"{directory} cannot be written", error) from error
        raise


def finish(siblings: Siblings) -> None:
    """Go on where the journal, if there is one, says that somebody stopped. The lock is held."""
    journal = _read(siblings)
    if journal is None:
        return
    directory = siblings.parent if journal.inside else siblings.base
    new, old = (os.path.join(siblings.staging, name) for name in ("new", "old"))
    _check_inside(directory, [*journal.paths, *journal.dropped])
    _check_inside(new, journal.paths)
    _check_inside(old, ["0"])
    try:
        os.utime(directory)  # so that readers notice, also where only contents change
        if journal.direction == "forward":
            _move_all([(os.path.join(new, path), os.path.join(directory, path)) for path in journal.paths])
            for path in journal.dropped:
                _remove(os.path.join(directory, path))
            remove_folders(directory, journal.dropped)
            if journal.manifest and os.path.lexists(siblings.next):
                os.replace(siblings.next, siblings.manifest)
        else:
            before = [*zip(journal.kept, [*journal.paths, *journal.dropped], strict=True)]
            _move_all(
                [
                    (os.path.join(old, str(number)), os.path.join(directory, path))
                    for number, (kept, path) in enumerate(before)
                    if kept
                ]
            )
            for kept, path in before:
                if not kept:
                    _remove(os.path.join(directory, path))
            for folder in reversed(journal.folders):
                if os.path.isdir(os.path.join(directory, folder)):
                    os.rmdir(os.path.join(directory, folder))
            if journal.manifest:
                _remove(siblings.next)
        os.utime(directory)
        if journal.sync:
            sync_file_system(directory)
            sync_directory(siblings.parent)
        os.unlink(siblings.journal)
    except OSError as error:
        raise explained(SaveError, f"{directory} cannot be written", error) from error


def _check_inside(root: str, paths: Sequence[str]) -> None:
    for folder in {os.path.dirname(os.path.join(root, path)) for path in paths}:
        if os.path.realpath(folder) != folder:
            raise StorageError(
                f"{folder} leads elsewhere through a link", hint="remove it if it is not yours"
            )


def _keep(staging: str, directory: str, paths: Sequence[str]) -> tuple[list[bool], list[str]]:
    """Keep what will be replaced; say what there was, and which folders there are not yet."""
    old = os.path.join(staging, "old")
    os.mkdir(old)
    kept = []
    folders: dict[str, None] = {}
    for number, path in enumerate(paths):
        target = os.path.join(directory, path)
        kept.append(os.path.lexists(target))
        if kept[-1]:
            _twin(target, os.path.join(old, str(number)))
        parts = path.split("/")[:-1]
        for depth in range(1, len(parts) + 1):
            folder = "/".join(parts[:depth])
            if not os.path.isdir(os.path.join(directory, folder)):
                folders[folder] = None
    return kept, list(folders)


def _twin(source: str, target: str) -> None:
    try:
        os.link(source, target, follow_symlinks=False)
    except OSError:  # another file system, or one without hard links
        shutil.copy2(source, target, follow_symlinks=False)


def _move_all(moves: Sequence[tuple[str, str]]) -> None:
    """Move files over others; nothing for those with which that was done before.

    Between the first and the last move those who know nothing of the journal see a mix of two saves. So there
    are no other calls of the system between them.
    """
    left = [(source, target) for source, target in moves if os.path.lexists(source)]
    for folder in {os.path.dirname(target) for _, target in left}:
        os.makedirs(folder, exist_ok=True)
    here = [_same_device(*move) for move in left]
    for (source, target), near in zip(left, here, strict=True):
        if near:
            _move(source, target)
    carry([move for move, near in zip(left, here, strict=True) if not near])


def _same_device(source: str, target: str) -> bool:
    return os.lstat(source).st_dev == os.stat(os.path.dirname(target)).st_dev


def _move(source: str, target: str) -> None:
    try:
        os.replace(source, target)
    except OSError as error:
        if error.errno not in (errno.EBUSY, errno.EXDEV) or os.path.isdir(target):
            raise
        carry([(source, target)])  # the file is a mount point itself


def _remove(path: str) -> None:
    with contextlib.suppress(FileNotFoundError):
        os.unlink(path)


def _read(siblings: Siblings) -> _Journal | None:
    """The journal, believed only where it leads nowhere else."""
    if not os.path.lexists(siblings.journal):
        return None
    try:
        fd, facts = open_regular(siblings.journal)
    except StorageError as error:
        if isinstance(error.__cause__, FileNotFoundError) and not os.path.islink(siblings.journal):
            return None  # somebody else came to its end
        raise
    try:
        with open(fd, "rb") as file:
            if facts.st_size > _MOST:
                raise ValueError(f"{facts.st_size} bytes")
            return _parsed(json.loads(file.read(facts.st_size).decode()), siblings)
    except (ValueError, KeyError, TypeError, RecursionError, StorageError) as error:
        raise StorageError(
            f"{siblings.journal} is no journal of a save ({error!r:.200})",
            hint="remove it if it is not yours; the files in the directory are as they are",
        ) from error


def _parsed(held: Any, siblings: Siblings) -> _Journal:
    if held["format"] != _FORMAT or held["direction"] not in ("forward", "back"):
        raise ValueError(f"format {held['format']!r:.50}, direction {held['direction']!r:.50}")
    for key, kind in (
        ("inside", bool),
        ("manifest", bool),
        ("sync", bool),
        ("paths", list),
        ("folders", list),
    ):
        if not isinstance(held[key], kind):
            raise TypeError(f"{key} is {held[key]!r:.50}")
    held.setdefault("dropped", [])
    for path in held["paths"] + held["folders"] + held["dropped"]:
        if not isinstance(path, str) or relative_path(path) != path:
            raise ValueError(f"{path!r:.50} is no path of a file")
        if held["inside"] and not siblings.is_beside(path):
            raise ValueError(f"{path!r:.50} is a file of somebody else")
    kept = held["kept"]
    count = len(held["paths"]) + len(held["dropped"])
    if len(kept) != count or not all(isinstance(there, bool) for there in kept):
        raise ValueError("kept does not fit the paths")
    return _Journal(**{key: held[key] for key in _Journal._fields})
