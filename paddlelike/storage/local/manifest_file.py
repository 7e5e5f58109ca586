"""The manifest of a local directory: where it is, how it is read, and the comparison of the files with it."""

from __future__ import annotations

import os
import stat
from typing import Final

from paddlelike.errors import FormatError, StorageError
from paddlelike.storage import verification
from paddlelike.storage.interfaces import Path
from paddlelike.storage.local import journal
from paddlelike.storage.local.files import File, list_names
from paddlelike.storage.local.layout import Layout
from paddlelike.storage.manifest import Manifest, Record, decode
from paddlelike.storage.verification import Verification

__all__ = ["manifest_path", "read_at", "read_manifest", "verify"]

_MOST: Final = 1 << 30  # bytes: three million files


def manifest_path(path: Path) -> str:
    """Return the path of the manifest of a directory, or of files whose names begin with ``path``.

    >>> manifest_path("/data/model")
    '/data/model/__manifest__'
    """
    return Layout.of(path).manifest


def read_manifest(path: Path) -> Manifest | None:
    """Return the manifest of a directory, or of files whose names begin with ``path``; None: there is none.

    Raises
    ------
    FormatError
        The manifest is damaged.
    StorageError
        It cannot be read.
    """
    layout = Layout.of(path)
    journal.recover(layout)
    return read_at(layout)


def read_at(layout: Layout) -> Manifest | None:
    """Return the manifest of a layout, in its place or the earlier one; None: there is none.

    Raises
    ------
    FormatError
        The manifest is damaged, or names files that cannot be its own.
    StorageError
        It cannot be read.
    """
    data = _read(layout.manifest)
    if data is None:
        data = _read(layout.earlier_manifest)
        if data is None:
            return None
    manifest = decode(data)
    if manifest.is_prefix != layout.is_prefix:
        return None  # such as the manifest of ``fluid.save``'s files beside a directory of the same name
    for path in manifest.files if layout.is_prefix else ():
        if not layout.owns(path):
            raise FormatError(
                f"the manifest of {layout.base} names {path!r}, which cannot be one of its files"
            )
    return manifest


def verify(path: Path) -> Verification:
    """Compare every file of a directory with its manifest: sizes first, then checksums, several at once.

    A link in place of a file is not what was saved, whatever it points to; other links are extra.

    Raises
    ------
    StorageError
        There is no such directory, or a file cannot be read.
    """
    layout = Layout.of(path)
    try:
        manifest = read_manifest(path)
    except FormatError as error:
        return Verification(layout.base, problem=f"{layout.manifest}: {error.message}")
    root = layout.directory
    present = [] if layout.is_prefix else list_names(root, linked_folders=True)
    if manifest is None:
        return Verification(
            layout.base, extra=tuple(present), problem=f"it has no manifest ({layout.manifest})"
        )

    def compare(name: str, record: Record) -> tuple[str, str]:
        return _compare(os.path.join(root, name), record)

    return verification.compare_files(layout.base, manifest, present, compare)


def _compare(path: str, record: Record) -> tuple[str, str]:
    try:
        mode = os.lstat(path).st_mode
    except OSError:
        return "missing", ""
    if stat.S_ISLNK(mode):
        return "missing", f"it is a link to {os.readlink(path)!r}"
    if not stat.S_ISREG(mode):
        return "missing", "it is not a regular file"
    with File(path) as file:
        return verification.compare_file(file, record)


def _read(path: str) -> bytes | None:
    try:
        with File(path) as file:
            return file.read(_MOST)
    except StorageError as error:
        if isinstance(error.__cause__, FileNotFoundError | NotADirectoryError):
            return None
        raise
