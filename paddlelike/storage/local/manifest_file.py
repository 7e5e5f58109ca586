"""The manifest of a local directory: its path, how to read it, and how to compare the files with it."""

from __future__ import annotations

import os

from paddlelike.errors import FormatError
from paddlelike.storage import verification
from paddlelike.storage.interfaces import Path
from paddlelike.storage.local.files import finish_save, list_names
from paddlelike.storage.local.layout import Layout
from paddlelike.storage.local.present_manifest import compare_with_record, read_at
from paddlelike.storage.manifest import Manifest, Record
from paddlelike.storage.verification import Verification


def manifest_path(path: Path) -> str:
    """Return the path of the manifest of a directory, or of files whose names begin with ``path``.

    >>> manifest_path("/data/model")
    '/data/model/__manifest__'
    """
    return Layout.of(path).manifest


def read_manifest(path: Path, *, is_prefix: bool | None = None) -> Manifest | None:
    """Return the manifest of a directory, or of files whose names begin with ``path``, or None.
    :meth:`.layout.Layout.of` decides between the two.

    Raises
    ------
    FormatError
        The manifest is damaged.
    StorageError
        It cannot be read.
    """
    layout = Layout.of(path, is_prefix=is_prefix)
    finish_save(layout)
    return read_at(layout)


def verify(path: Path, *, is_prefix: bool | None = None) -> Verification:
    """Compare every file of a directory with its manifest: sizes first, then checksums, several at once.

    A link in place of a file counts as a changed file, whatever its target; other links count as extra files.

    Raises
    ------
    StorageError
        There is no such directory, or a file cannot be read.
    """
    layout = Layout.of(path, is_prefix=is_prefix)
    try:
        manifest = read_manifest(path, is_prefix=is_prefix)
    except FormatError as error:
        return Verification(layout.base, problem=f"{layout.manifest}: {error.message}")
    root = layout.directory
    present = [] if layout.is_prefix else list_names(root, linked_folders=True)
    if manifest is None:
        return Verification(
            layout.base, extra=tuple(present), problem=f"it has no manifest ({layout.manifest})"
        )

    def compare(name: str, record: Record) -> tuple[str, str]:
        return compare_with_record(os.path.join(root, name), record)

    return verification.compare_files(layout.base, manifest, present, compare)
