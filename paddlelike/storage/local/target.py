"""Checks before a save: the directory can be written, and no folder in it is a file or leads out of it."""

from __future__ import annotations

import errno
import os
from collections.abc import Mapping
from typing import Final

from paddlelike.errors import SaveError
from paddlelike.storage.local.layout import Layout
from paddlelike.storage.problems import explain, is_directory, is_there

__all__ = ["check_folders", "prepare_target"]

_READ_ONLY: Final = os.strerror(errno.EROFS)


def check_folders(directory: str, names: Mapping[str, str]) -> None:
    """Check the folders that the files of ``{path: name}`` are in.

    Raises
    ------
    SaveError
        One is a file, or is to become one; or it is a link: nothing is written through a link.
    """
    seen: set[str] = set()
    for path, name in names.items():
        folder = os.path.dirname(path) if "/" in path else ""
        while folder and folder not in seen:
            seen.add(folder)
            if folder in names:
                raise SaveError(
                    f"variable {names[folder]!r} is a file where {name!r} needs a directory",
                    hint="rename one of them, or use filename= for one file of all",
                )
            _check_folder(os.path.join(directory, folder), name)
            folder = os.path.dirname(folder)


def _check_folder(folder: str, name: str) -> None:
    # S7
    if os.path.islink(folder):
        raise SaveError(
            f"variable {name!r} cannot be saved: {folder} is a link to {os.readlink(folder)!r}",
            hint="make it a directory, or save the whole model where the link points to",
        )
    if is_there(folder) and not is_directory(folder):
        raise SaveError(
            f"variable {name!r} cannot be saved: {folder} is a file, not a directory",
            hint="rename the variable (ParamAttr(name=...)), or move the file away",
        )


def prepare_target(layout: Layout) -> None:
    """Create the parent of a directory that is to be saved.

    Raises
    ------
    SaveError
        It cannot be created, or the directory or its parent cannot be written.
    OSError
        The system does not say whether it can.
    """
    directory, parent = layout.directory, layout.parent
    if is_there(directory) and not is_directory(directory):
        raise SaveError(
            f"{directory} is a file; a directory is needed to save into",
            hint="pass another path, or move the file away",
        )
    try:
        os.makedirs(parent, exist_ok=True)
    except OSError as error:
        raise explain(SaveError, f"{directory} cannot be created", error) from error
    for folder in (directory, parent):
        if os.path.isdir(folder) and _is_read_only(folder):
            raise explain(SaveError, f"{directory} cannot be written", OSError(errno.EROFS, _READ_ONLY))
    if os.path.isdir(directory) and not _may_write(directory):
        raise SaveError(
            f"{directory} cannot be written: this user may not write there", hint="choose another directory"
        )
    if not _may_write(parent):
        raise SaveError(
            f"{directory} cannot be saved as one: its parent directory {parent} cannot be written",
            hint=f"save into a directory below it, such as {os.path.join(directory, 'model')}",
        )


def _is_read_only(directory: str) -> bool:
    return hasattr(os, "statvfs") and bool(os.statvfs(directory).f_flag & os.ST_RDONLY)


def _may_write(directory: str) -> bool:
    return os.access(directory, os.W_OK | os.X_OK, effective_ids=os.access in os.supports_effective_ids)
