"""Files and folders of a replaced version of a directory: list them, rescue late arrivals, remove them."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Collection, Iterator, Mapping, Set

from paddlelike.foundation.locks import opened


def has_others(directory: str, paths: Set[str]) -> bool:
    """Return whether there is a file in a directory that is not among ``paths``."""
    try:
        if paths >= set(os.listdir(directory)):
            return False  # the usual case, without a look at each file
        return any(not folder and path not in paths for path, _, folder in walk(directory))
    except OSError:  # for example, no directory
        return os.path.isdir(directory)


def remove_folders(root: str, paths: Collection[str]) -> list[str]:
    """Remove the folders of ``paths`` that are empty now, and return them."""
    removed = []
    for path in paths:
        folder = os.path.dirname(path)
        while folder:
            try:
                os.rmdir(os.path.join(root, folder))
            except OSError:
                break
            removed.append(folder)
            folder = os.path.dirname(folder)
    return removed


def remove_tree(path: str) -> None:
    """Remove a folder and everything in it, as far as possible, or the file in its place."""
    if not os.path.isdir(path) or os.path.islink(path):
        with contextlib.suppress(OSError):
            os.unlink(path)
        return
    with contextlib.suppress(OSError, RecursionError):  # RecursionError for a thousand nested folders
        shutil.rmtree(path, ignore_errors=True)


def rescue(old: str, directory: str, known: Mapping[str, int], *, remove: bool) -> None:
    """Move files that others added to the replaced version ``old`` during the swap into ``directory``.

    ``known`` are its files, by inode, when it was listed; ``remove`` deletes these.
    """
    with contextlib.suppress(OSError), opened(old, os.O_RDONLY) as (here, _):  # the next save cleans up
        folders = []
        for path, inode, is_folder in list(walk(old)):
            if is_folder:
                folders.append(path)
            # S4
            elif known.get(path) != inode:
                _move_late(old, directory, path, known.get(path))
            elif remove:
                os.unlink(path, dir_fd=here)
        for path in reversed(folders) if remove else ():
            with contextlib.suppress(OSError):
                os.rmdir(path, dir_fd=here)


def _move_late(old: str, directory: str, path: str, known: int | None) -> None:
    """Move a file into ``directory``, replacing only the file with the inode ``known``."""
    target = os.path.join(directory, path)
    with contextlib.suppress(OSError):  # removed meanwhile
        if not _is_inside(target):
            return
        os.makedirs(os.path.dirname(target), exist_ok=True)
        # S4
        if not os.path.lexists(target) or os.lstat(target).st_ino == known:
            os.rename(os.path.join(old, path), target)


def _is_inside(path: str) -> bool:
    """Return whether no folder along the path is a link."""
    folder = os.path.dirname(path)
    return os.path.realpath(folder) == folder  # also of folders that do not exist yet


def walk(root: str) -> Iterator[tuple[str, int, bool]]:
    """Yield everything below ``root``: path, inode, whether it is a folder; folders before their contents."""
    folders = [""]
    while folders:
        inside = folders.pop()
        front = f"{inside}/" if inside else ""
        with os.scandir(os.path.join(root, inside)) as entries:
            for entry in entries:
                path = front + entry.name
                folder = entry.is_dir(follow_symlinks=False)
                yield path, entry.inode(), folder
                if folder:
                    folders.append(path)
