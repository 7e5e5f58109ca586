"""Read the current manifest of a layout, and compare a file with its record."""

from __future__ import annotations

import contextlib
import os
import stat
from typing import Final

from paddlelike.errors import FormatError, StorageError
from paddlelike.storage import verification
from paddlelike.storage.local.filesystem.file import File
from paddlelike.storage.local.filesystem.owners import check_believed, is_own
from paddlelike.storage.local.layout import Layout
from paddlelike.storage.manifest import RESTORE, Manifest, Record, decode
from paddlelike.storage.problems import find_kind

_MOST: Final = 1 << 30  # bytes: three million files
_SUFFIXES: Final = (".pdparams", ".pdopt", ".pdmodel")
_TRIES: Final = 20  # attempts while others save


class IncompleteError(FormatError):
    """A manifest continues one that is missing."""


def read_at(layout: Layout) -> Manifest | None:
    """Return the manifest of a layout, at its current or its earlier path, or None without one.

    Raises
    ------
    FormatError
        The manifest is damaged, or names files that cannot be its own.
    StorageError
        It cannot be read.
    """
    for _ in range(_TRIES):
        for place in (layout.manifest, layout.earlier_manifest):
            if (found := _read(place)) is not None:
                break
        else:
            return None
        data, facts = found
        if not is_own(facts):
            is_beside = place == layout.earlier_manifest and not layout.is_prefix
            described = [layout.base] if is_beside else _list_described(layout, data)
            check_believed(place, facts, described)
        try:
            manifest = _decode(layout, data)
            break
        except FormatError:
            # S10, since another save may have come between the manifests
            again = _read(place)
            if again is not None and again[0] == data:
                raise
    else:
        raise StorageError(f"{layout.base} was saved again and again while its manifest was read")
    if manifest.is_prefix != layout.is_prefix:
        return None  # such as the manifest of ``fluid.save``'s files beside a directory of the same name
    for path in manifest.files if layout.is_prefix else ():
        if not layout.owns(path):
            raise FormatError(
                f"the manifest of {layout.base} names {path!r}, which cannot be one of its files"
            )
    return manifest


def compare_with_record(path: str, record: Record) -> tuple[str, str]:
    """Return the field of :class:`Verification` in which a file belongs, and the reason or "".

    Raises
    ------
    StorageError
        It cannot be read.
    """
    kind = find_kind(path, follow=False)
    if kind is None:
        return "missing", ""
    if kind == stat.S_IFLNK:
        return "missing", f"it is a link to {os.readlink(path)!r}"
    if kind != stat.S_IFREG:
        return "missing", "it is not a regular file"
    with File(path) as file:
        return verification.compare_file(file, record)


def read_part(layout: Layout, path: str) -> Manifest:
    """Return an earlier manifest that continues no other one. Raises the errors of :func:`read_at`."""
    return decode(_read_part(layout, path))


def _decode(layout: Layout, data: bytes) -> Manifest:
    """Parse a manifest and those that it continues, which are identified by their digests, whoever owns
    them.
    """
    return decode(data, lambda path: _read_part(layout, path))


def _list_described(layout: Layout, data: bytes) -> list[str]:
    """Return the paths of the files that a manifest describes."""
    with contextlib.suppress(FormatError):
        files = _decode(layout, data).files
        variables = [str(record.facts.get("variable", path)) for path, record in files.items()]
        parts = [layout.base + suffix for suffix in _SUFFIXES] if layout.is_prefix else []
        return [*parts, *(os.path.join(layout.directory, path) for path in {*files, *variables})]
    return []


def _read_part(layout: Layout, path: str) -> bytes:
    found = _read(os.path.join(layout.directory, path))
    if found is None:
        raise IncompleteError(f"the manifest continues {path}, which is missing", hint=RESTORE)
    return found[0]


def _read(path: str) -> tuple[bytes, os.stat_result] | None:
    try:
        with File(path) as file:
            return file.read(_MOST), file.get_facts()
    except StorageError as error:
        if isinstance(error.__cause__, FileNotFoundError | NotADirectoryError):
            return None
        raise
