"""The generation before: what others put into it is moved over, what was dropped on purpose is not."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Collection, Iterator, Mapping

__all__ = ["forget", "has_others", "remove_folders", "remove_tree", "rescue", "walk"]


def has_others(directory: str, paths: Collection[str]) -> bool:
    """Whether there is a file in a directory that is not among ``paths``."""
    try:
        return any(not folder and path not in paths for path, _, folder in walk(directory))
    except OSError:  # such as: there is no directory
        return os.path.isdir(directory)


def forget(old: str, inodes: Mapping[str, int]) -> None:
    """Take what was dropped on purpose out of the old generation, so that it is not rescued."""
    gone = []
    for path, inode in inodes.items():
        where = os.path.join(old, path)
        with contextlib.suppress(OSError):
            if _is_here(where) and os.lstat(where).st_ino == inode:
                os.unlink(where)
                gone.append(path)
    remove_folders(old, gone)


def remove_folders(root: str, paths: Collection[str]) -> list[str]:
    """Remove the folders in which ``paths`` were and nothing is any more; says which."""
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
    """Remove a folder and everything in it, as far as it goes; or what lies in its place."""
    if not os.path.isdir(path) or os.path.islink(path):
        with contextlib.suppress(OSError):
            os.unlink(path)
        return
    with contextlib.suppress(RecursionError):  # a thousand folders in each other, which nobody saves
        shutil.rmtree(path, ignore_errors=True)


def rescue(old: str, directory: str, known: dict[str, int] | None, *, remove: bool) -> None:
    """Move over what others put into the old generation after it was listed as ``known``; remove the rest."""
    try:
        here = os.open(old, os.O_RDONLY)
    except OSError:
        return  # the next save clears it away
    try:
        folders = []
        for path, inode, folder in list(walk(old)):
            if folder:
                folders.append(path)
            if known is not None and known.get(path) == inode:
                if remove:
                    os.unlink(path, dir_fd=here)
            elif not folder or not os.path.lexists(os.path.join(directory, path)):
                _move_late(old, directory, path, over=known is not None)
        for path in reversed(folders) if remove else ():
            with contextlib.suppress(OSError):
                os.rmdir(path, dir_fd=here)
    except OSError:
        pass  # the next save clears it away
    finally:
        os.close(here)


def _move_late(old: str, directory: str, path: str, *, over: bool) -> None:
    target = os.path.join(directory, path)
    if _is_here(target) and (over or not os.path.lexists(target)):
        with contextlib.suppress(OSError):  # the folder it was in has been moved
            os.rename(os.path.join(old, path), target)


def _is_here(path: str) -> bool:
    """Whether no folder on the way is a link to somewhere else."""
    folder = os.path.dirname(path)
    return os.path.realpath(folder) == folder


def walk(root: str) -> Iterator[tuple[str, int, bool]]:
    """Everything below ``root``: path, inode, whether it is a folder; folders before what is in them."""
    folders = [""]
    while folders:
        inside = folders.pop()
        with os.scandir(os.path.join(root, inside)) as entries:
            for entry in entries:
                path = f"{inside}/{entry.name}" if inside else entry.name
                folder = entry.is_dir(follow_symlinks=False)
                yield path, entry.inode(), folder
                if folder:
                    folders.append(path)
