"""Checks before a save: the directory is writable, and no folder in it is a file or leads outside."""

from __future__ import annotations

import errno
import os
from collections.abc import Mapping

from paddlelike.errors import SaveError
from paddlelike.storage.local.layout import Layout
from paddlelike.storage.problems import explain, is_directory, is_there


def check_folders(directory: str, names: Mapping[str, str]) -> None:
    """Check the folders that the files of ``{path: name}`` are in.

    Raises
    ------
    SaveError
        One is or becomes a file, or is a link: nothing is written through a link.
    """
    seen: set[str] = set()
    for path, name in names.items():
        folder = os.path.dirname(path) if "/" in path else ""
        while folder and folder not in seen:
            seen.add(folder)
            if folder in names:
                raise SaveError(
                    f"variable {names[folder]!r} is a file where {name!r} needs a directory",
                    hint="rename one of them (ParamAttr(name=...)), or use filename= for one file",
                )
            _check_folder(os.path.join(directory, folder), name)
            folder = os.path.dirname(folder)


def check_own_folder(layout: Layout, error: Exception) -> None:
    """Check, after an error of a save, that no other process has moved the folder of this one.

    Raises
    ------
    SaveError
        Another process has moved it, because it took over the lock; raised from ``error``.
    """
    # S19
    if layout.work != layout.staging and not is_there(layout.work):
        raise SaveError(
            f"{layout.directory} cannot be saved: this process was stopped for too long, and another has "
            "taken its lock over; it finishes this save if the commit had begun",
            hint="save again",
        ) from error


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


def choose_layout(directory: str) -> Layout:
    """Return the layout of a save into a directory: beside it, or inside if its parent is not writable.

    >>> import tempfile
    >>> choose_layout(tempfile.gettempdir() + "/new").is_inside
    False
    """
    is_inside = (
        os.path.isdir(directory) and _may_write(directory) and not _may_write(os.path.dirname(directory))
    )
    return Layout(directory, is_prefix=False, is_inside=is_inside)


def describe_inside(layout: Layout) -> str:
    """Describe the limitation of a save whose parent directory is not writable."""
    parent = os.path.dirname(layout.base)
    return (
        f"{layout.base} is saved file by file, since its parent {parent} cannot be written: programs "
        "other than this may read a mix of two saves while the files are moved, or after a kill until the "
        "next load or save"
    )


def prepare_target(layout: Layout) -> None:
    """Create the parent of a directory that is to be saved.

    Raises
    ------
    SaveError
        It cannot be created, or the directory or its parent cannot be written.
    OSError
        The system does not tell whether it is writable.
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
        if not os.path.isdir(folder) or _may_write(folder):
            continue
        number = errno.EROFS if _is_read_only(folder) else errno.EACCES
        raise explain(
            SaveError, f"{directory} cannot be written", OSError(number, os.strerror(number), folder)
        )


def _is_read_only(directory: str) -> bool:
    return hasattr(os, "statvfs") and bool(os.statvfs(directory).f_flag & os.ST_RDONLY)


def _may_write(directory: str) -> bool:
    try:
        return os.access(directory, os.W_OK | os.X_OK, effective_ids=os.access in os.supports_effective_ids)
    except OSError as error:
        raise explain(SaveError, f"{directory} cannot be read", error) from error
