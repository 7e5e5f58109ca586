"""What a killed save left beside the directory: told from the directory itself, and cleared up.

The new version of a directory is built in ``new/`` (:mod:`.generation`), which holds the version before after
the swap. ``staged`` tells the two apart: it holds the random token that is also in the new version's
manifest, or, without a manifest, the inodes and times of the new files; an inode number alone would not do,
since a file system gives it out again. ``staged`` also lists the files of the version before: what others put
into it while it was swapped out is not among them, and is moved over before the rest is removed.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

from paddlelike.errors import FormatError, StorageError
from paddlelike.storage.local import journal, manifest_file
from paddlelike.storage.local.files import File
from paddlelike.storage.local.filesystem.retired import remove_tree, rescue
from paddlelike.storage.local.layout import Layout
from paddlelike.storage.names import check_path
from paddlelike.storage.problems import is_system_error

__all__ = ["clear", "write_staged"]

_MOST: Final = 1 << 28  # bytes of ``staged``


def write_staged(
    layout: Layout, token: str | None, written: Mapping[str, tuple[int, int]], files: Mapping[str, int]
) -> None:
    """Write ``staged``: the token of the new version, or its files' stamps; and the files of the present one.

    Raises
    ------
    OSError
        It cannot be written.
    """
    with open(os.path.join(layout.staging, "staged"), "x", encoding="utf-8") as file:
        file.write(json.dumps({"token": token, "written": written, "files": files}))


def clear(layout: Layout, *, spare: bool) -> None:
    """Finish what a killed process left half done, and remove what it left over. The lock is held.

    ``spare``: keep the version before, for the next save to be built upon.

    Raises
    ------
    StorageError, SaveError
        A commit in several steps cannot be finished.
    """
    journal.finish(layout)
    new, old = os.path.join(layout.staging, "new"), os.path.join(layout.staging, "spare")
    staged = _read_staged(layout)
    if staged is not None and os.path.isdir(new) and not os.path.islink(new) and _is_swapped(layout, staged):
        rescue(new, layout.directory, staged.files, remove=False)
        if spare:
            remove_tree(old)
            with contextlib.suppress(OSError):
                os.rename(new, old)
    with os.scandir(layout.staging) as entries:
        left = [entry for entry in entries if entry.path != layout.lock]
    for entry in left:
        if not (spare and entry.path == old and entry.is_dir(follow_symlinks=False)):
            remove_tree(entry.path)


class _Staged(NamedTuple):
    """How a new version is known, and the files of the version before."""

    token: str | None
    written: dict[str, Any]  # path -> stamp, without a token
    files: dict[str, int]  # path -> inode


def _read_staged(layout: Layout) -> _Staged | None:
    """Return what is staged; None where nothing is, or it is damaged. Raises StorageError."""
    path = os.path.join(layout.staging, "staged")
    with (
        _raise_system_errors(layout),
        contextlib.suppress(FormatError, ValueError, AttributeError, KeyError, TypeError, RecursionError),
    ):
        with File(path) as file:
            held = json.loads(file.read(_MOST).decode())
        written = {path: tuple(stamp) for path, stamp in held["written"].items() if check_path(path) == path}
        files = {path: inode for path, inode in held["files"].items() if type(inode) is int}
        token = held["token"]
        return _Staged(token if isinstance(token, str) else None, written, files)
    return None


def _is_swapped(layout: Layout, staged: _Staged) -> bool:
    """Return whether the directory is the new version. Raises StorageError."""
    if staged.token is not None:
        with _raise_system_errors(layout), contextlib.suppress(FormatError):
            manifest = manifest_file.read_at(layout)
            # S11
            return manifest is not None and manifest.token == staged.token
        return False
    for path, stamp in staged.written.items():
        with contextlib.suppress(OSError):
            facts = os.lstat(os.path.join(layout.directory, path))
            if (facts.st_ino, facts.st_mtime_ns) == stamp:
                return True
    return False


@contextlib.contextmanager
def _raise_system_errors(layout: Layout) -> Iterator[None]:
    """Pass over a file that is not there, but not over one that the system refuses to read.

    What is in it decides which of two versions is removed.
    """
    try:
        yield
    except StorageError as error:
        if is_system_error(error):
            raise StorageError(
                f"what a killed save left beside {layout.base} cannot be cleared up: {error.message}",
                hint=error.hint,
            ) from error
