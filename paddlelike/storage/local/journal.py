"""Commits in several steps, for file systems that cannot swap two directories in one.

The new files wait in ``new/`` of the hidden entry; the files that they replace are kept in ``old/``. The save
commits when ``journal`` gets its name. From then on it is finished file by file, if necessary by the next
load or save (:func:`recover`); each step may be repeated. A save that fails midway replaces the journal, by
one rename, by one that restores the old files.

The journal records inode, size and time of writing of every target before and after its step. A target that
matches neither record was replaced by another program after the kill. If no target is new then, no file of
the save is visible, and the save is dropped. Otherwise the files are a mix that only a person can resolve,
and nothing changes.
"""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import time
from collections.abc import Sequence
from typing import Final

from paddlelike.errors import PaddlelikeError, SaveError, StorageError
from paddlelike.storage.local.filesystem.cross_device import move_across_devices
from paddlelike.storage.local.filesystem.lock import Lock
from paddlelike.storage.local.filesystem.lock_file import list_folders
from paddlelike.storage.local.filesystem.owners import ForeignError, check_own, check_replaceable
from paddlelike.storage.local.filesystem.retired import remove_folders
from paddlelike.storage.local.filesystem.system import sync_directory, sync_file_system
from paddlelike.storage.local.journal_file import Identity, Journal, Target, read_journal, write_journal
from paddlelike.storage.local.layout import Layout
from paddlelike.storage.problems import explain, is_directory, is_there

_WAIT: Final = 60.0  # seconds for a living process to finish its save
_OTHERS_WAIT: Final = 5.0  # seconds for another user's process, whose lock is invisible
_PAUSE: Final = 0.02  # seconds between two looks


def recover(layout: Layout) -> None:
    """Finish a save whose process was killed in the middle of a commit; otherwise this is one ``stat``.

    It waits for a process that is still saving, without taking its lock.

    Raises
    ------
    StorageError
        The save cannot be finished by this process; the message says why.
    """
    if not is_there(layout.journal):
        return
    start = time.monotonic()
    lock = Lock(layout.lock, layout.base)
    try:
        while True:
            has_lock_file = is_there(layout.lock)  # exists as long as the journal, unless removed
            if not is_there(layout.journal) or (_is_own(layout) and read_journal(layout) is None):
                return  # nothing to finish; the next save removes what is left
            if _acquire(lock, create=not has_lock_file, seconds=time.monotonic() - start):
                layout.work = lock.folder
                try:
                    finish(layout)
                finally:
                    lock.release()
                return
            if time.monotonic() - start >= _WAIT:
                raise SaveError(f"a process has been saving it for {_WAIT:.0f} s")
            time.sleep(_PAUSE)
    except PaddlelikeError as error:
        is_refused = type(error.__cause__) is PermissionError and not isinstance(error, ForeignError)
        hint = None if is_refused else error.hint
        raise StorageError(
            f"{layout.base} holds a save that was interrupted and cannot be finished: {error.message}",
            hint=hint or "load or save it once as a user who may write there",
        ) from error


def _is_own(layout: Layout) -> bool:
    """Return whether the hidden entry may be read; another user's entry depends on its lock."""
    try:
        check_own(layout.staging)
    except ForeignError:
        return False
    return True


def _acquire(lock: Lock, *, create: bool, seconds: float) -> bool:
    """Take the lock of a save that may be dead; return False if it is alive, or may be and is foreign."""
    try:
        return lock.acquire(create=create)
    except SaveError as error:
        if not isinstance(error.__cause__, PermissionError) or seconds >= _OTHERS_WAIT:
            raise
        return False


def commit(layout: Layout, paths: Sequence[str], dropped: Sequence[str] = (), *, sync: bool = False) -> None:
    """Move all of ``paths`` from ``new/`` into the directory and remove ``dropped`` there, or change nothing.

    Raises
    ------
    SaveError
        A file cannot be moved; nothing has changed.
    """
    directory = layout.directory
    try:
        _check_inside(directory, [*paths, *dropped])
        check_replaceable(directory, [*paths, *dropped])
        targets, folders = _keep_old(layout, paths, dropped)
        forward = os.path.join(layout.work, "forward")
        back = os.path.join(layout.work, "back")
        journal = Journal("forward", targets, folders, sync)
        write_journal(forward, journal)
        write_journal(back, journal._replace(direction="back"))
        if sync:
            sync_file_system(layout.work)
        else:  # on the disk first, since a journal found after a power cut moves them
            for path in paths:
                # S16
                sync_directory(os.path.join(layout.work, "new", path))
        # S5
        os.rename(forward, layout.journal)
    except StorageError as error:
        raise SaveError(error.message, hint=error.hint) from error
    except OSError as error:
        if not is_directory(directory):
            raise _make_removed_error(layout) from error
        raise explain(SaveError, f"{directory} cannot be written", error) from error
    try:
        if sync:
            sync_directory(layout.staging)
            sync_directory(layout.parent)
        _replay(layout, journal)
    except Exception as error:
        # S5
        os.rename(back, layout.journal)
        if not is_directory(directory):
            _take_away(layout, layout.journal)
            raise _make_removed_error(layout) from error
        _replay(layout, journal._replace(direction="back"))
        if isinstance(error, OSError):
            raise explain(SaveError, f"{directory} cannot be written", error) from error
        raise


def finish(layout: Layout) -> None:
    """Continue the journal of a killed process, if there is one. The lock is held.

    Raises
    ------
    StorageError
        The journal is damaged, or somebody else has replaced some of its files since.
    SaveError
        The system refuses a step.
    """
    journal = read_journal(layout)
    if journal is None:
        return
    try:
        _adopt(layout, layout.staging)
        if not is_directory(layout.directory) or _is_superseded(layout, journal):
            _take_away(layout, layout.journal)  # no files, or only somebody else's: nothing to finish
            return
    except OSError as error:
        if isinstance(error, StorageError):
            raise
        raise explain(SaveError, f"{layout.directory} cannot be written", error) from error
    _replay(layout, journal)


def _adopt(layout: Layout, folder: str) -> None:
    """Move the files that an earlier holder of the lock staged into the current holder's folder. Raises
    OSError.
    """
    for each in [folder, *list_folders(folder)]:
        if each != folder:
            _adopt(layout, each)
        for name in ("new", "old") if each != layout.work else ():
            # S19
            with contextlib.suppress(FileNotFoundError):
                os.rename(os.path.join(each, name), os.path.join(layout.work, name))


def _take_away(layout: Layout, path: str) -> None:
    """Remove a file, unless another process has taken over the lock. A missing file is ignored."""
    if layout.work == layout.staging:
        _remove(path)
        return
    # S19
    away = os.path.join(layout.work, "away")
    _remove(away)
    try:
        os.replace(path, away)
    except FileNotFoundError:
        os.stat(layout.work)  # raises where another has moved it
    except OSError as error:
        if error.errno != errno.EXDEV:
            raise
        _remove(path)


def _make_removed_error(layout: Layout) -> SaveError:
    return SaveError(f"{layout.directory} was removed by somebody during the save", hint="save again")


def _is_superseded(layout: Layout, journal: Journal) -> bool:
    """Return whether another program has replaced files since the kill and no file of the save is visible.

    Raises
    ------
    StorageError
        They have replaced only some of the files.
    """
    foreign, new = [], []
    for target in journal.targets:
        found = _identity(os.path.join(layout.directory, target.path))
        if found is not None and target.new is not None and found[1:] == target.new[1:]:
            new.append(target.path)  # a copied file has another inode
        elif not _is_old(found, target, journal.direction) and not (found is None and target.new is None):
            foreign.append(target.path)
    # S6
    if foreign and new:
        raise StorageError(
            f"a save into {layout.directory} was interrupted, and {', '.join(foreign[:8])} "
            f"{'was' if len(foreign) == 1 else 'were'} replaced by somebody else since, while "
            f"{', '.join(new[:8])} {'is' if len(new) == 1 else 'are'} of that save; nothing was changed",
            hint=f"restore all files, then remove {layout.journal}; {layout.staging} holds the files of the "
            "interrupted save in new, and those before it in old, numbered as in the journal",
        )
    # S6
    return bool(foreign)


def _is_old(found: Identity | None, target: Target, direction: str) -> bool:
    if found is None or target.old is None or direction == "forward":
        return found == target.old
    return found[1:] == target.old[1:]  # on the way back a file may have been copied


def _replay(layout: Layout, journal: Journal) -> None:
    directory = layout.directory
    new, old = (os.path.join(layout.work, name) for name in ("new", "old"))
    targets = journal.targets
    for each in (new, old):
        check_own(each, beside=directory)
    _check_inside(directory, [target.path for target in targets])
    _check_inside(new, [target.path for target in targets if target.new is not None])
    _check_inside(old, ["0"])
    try:
        _mark_changed(directory)
        if journal.direction == "forward":
            moved = [target.path for target in targets if target.new is not None]
            _move_all(directory, [(os.path.join(new, path), os.path.join(directory, path)) for path in moved])
            dropped = [target.path for target in targets if target.new is None]
            for path in dropped:
                _take_away(layout, os.path.join(directory, path))
            remove_folders(directory, dropped)
        else:
            _move_all(
                directory,
                [
                    (os.path.join(old, str(index)), os.path.join(directory, target.path))
                    for index, target in enumerate(targets)
                    if target.old is not None
                    and _identity(os.path.join(directory, target.path)) != target.old
                ],
            )
            for target in targets:
                if target.old is None:
                    _take_away(layout, os.path.join(directory, target.path))
            for folder in reversed(journal.folders):
                if is_directory(os.path.join(directory, folder)):
                    os.rmdir(os.path.join(directory, folder))
        _mark_changed(directory)
        if journal.sync:
            sync_file_system(directory)
            sync_directory(layout.parent)
        _take_away(layout, layout.journal)
    except OSError as error:
        raise explain(SaveError, f"{directory} cannot be written", error) from error


def _mark_changed(directory: str) -> None:
    """Make readers notice a change, also where only contents change, and within a tick of the system's
    clock.
    """
    now = time.time_ns()
    try:
        os.utime(directory, ns=(now, now))
    except PermissionError:  # another user's, whose group may write
        os.utime(directory)


def _check_inside(root: str, paths: Sequence[str]) -> None:
    for folder in {os.path.dirname(os.path.join(root, path)) for path in paths}:
        # S7
        if os.path.realpath(folder) != folder:
            raise StorageError(
                f"{folder} leads out of the directory through a link", hint="remove it if it is not yours"
            )


def _keep_old(layout: Layout, paths: Sequence[str], dropped: Sequence[str]) -> tuple[list[Target], list[str]]:
    """Keep copies of what will be replaced; return the targets, and the folders that do not exist yet."""
    directory, new = layout.directory, os.path.join(layout.work, "new")
    old = os.path.join(layout.work, "old")
    os.mkdir(old, 0o700)
    targets = []
    folders: dict[str, None] = {}
    for index, path in enumerate([*paths, *dropped]):
        target = os.path.join(directory, path)
        if is_there(target):
            _link_or_copy(target, os.path.join(old, str(index)))
        is_new = index < len(paths)
        targets.append(
            Target(path, _identity(target), _identity(os.path.join(new, path)) if is_new else None)
        )
        parts = path.split("/")[:-1]
        for depth in range(1, len(parts) + 1):
            folder = "/".join(parts[:depth])
            if not is_directory(os.path.join(directory, folder)):
                folders[folder] = None
    os.stat(directory)  # raises where it was removed
    return targets, list(folders)


def _identity(path: str) -> Identity | None:
    try:
        facts = os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise explain(StorageError, f"{path} cannot be looked up", error) from error
    return facts.st_ino, facts.st_size, facts.st_mtime_ns


def _link_or_copy(source: str, target: str) -> None:
    try:
        os.link(source, target, follow_symlinks=False)
    except OSError:  # another file system, or one without hard links
        shutil.copy2(source, target, follow_symlinks=False)


def _move_all(directory: str, moves: Sequence[tuple[str, str]]) -> None:
    """Move files over others; skip files that were moved before. Between the first and the last move,
    programs that ignore the journal see a mix of two saves, so no other system calls come between.
    """
    left = [(source, target) for source, target in moves if is_there(source)]
    for folder in {os.path.dirname(target) for _, target in left} - {directory}:
        os.makedirs(folder, exist_ok=True)
    here = [_same_device(*move) for move in left]
    for (source, target), near in zip(left, here, strict=True):
        if near:
            _move(source, target)
    move_across_devices([move for move, near in zip(left, here, strict=True) if not near])


def _same_device(source: str, target: str) -> bool:
    return os.lstat(source).st_dev == os.stat(os.path.dirname(target)).st_dev


def _move(source: str, target: str) -> None:
    try:
        os.replace(source, target)
    except OSError as error:
        if error.errno not in (errno.EBUSY, errno.EXDEV) or is_directory(target):
            raise
        move_across_devices([(source, target)])  # the file is a mount point itself


def _remove(path: str) -> None:
    with contextlib.suppress(FileNotFoundError):
        os.unlink(path)
