"""The manifest of earlier saves in a directory, and their records that are still valid."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Collection

from paddlelike.errors import FormatError, PaddlelikeError, SaveError, StorageError
from paddlelike.storage.local.filesystem.file import File
from paddlelike.storage.local.filesystem.retired import has_others
from paddlelike.storage.local.layout import Layout
from paddlelike.storage.local.present_manifest import read_at
from paddlelike.storage.local.unchanged import recognize_copy
from paddlelike.storage.manifest import Manifest, Record
from paddlelike.storage.names import is_manifest, make_part_name
from paddlelike.storage.problems import is_system_error, is_there
from paddlelike.storage.verification import is_still


def read_manifest(layout: Layout, names: Collection[str]) -> tuple[Manifest | None, str | None]:
    """Return the current manifest if it describes files besides ``names``, or the reason why it cannot be
    used.

    Raises
    ------
    SaveError
        The system refuses to read it, and only it lists the links of chains.
    """
    if not has_others(layout.directory, {*names, layout.manifest_name}):
        return None, None
    try:
        return read_at(layout), None
    except (StorageError, FormatError) as error:
        folder = os.path.join(layout.directory, os.path.dirname(make_part_name(0)))
        if is_system_error(error) and is_there(folder):
            message = f"{layout.base} cannot be saved, and nothing was changed: {error.message}"
            raise SaveError(message, hint="save again; the manifest names the links of its chains") from error
        return None, f"the manifest before this save was not used: {error.message}"


def find_records(
    directory: str, before: Manifest | None, names: Collection[str]
) -> tuple[dict[str, Record], list[str]]:
    """Return the records of unchanged files except ``names``, and the files that other programs replaced."""
    found: dict[str, Record] = {}
    replaced: list[str] = []
    for path, record in before.files.items() if before is not None else ():
        if path in names:
            continue
        where = os.path.join(directory, path)
        same = record if is_still(where, record) else recognize_copy(where, record)
        if same is not None:
            found[path] = same
        elif is_there(where):
            replaced.append(path)
    return found, replaced


def remove_old_manifest(layout: Layout) -> None:
    """Remove the manifest that earlier versions of this library wrote beside the directory."""
    path = layout.earlier_manifest
    with contextlib.suppress(OSError, PaddlelikeError), File(path) as file:  # no longer read
        if file.read_at(0, 1) == b"{":
            os.unlink(path)


def list_parts(directory: str, continued: Manifest | None) -> list[str]:
    """Return the earlier manifests in a directory that a new manifest does not need."""
    kept: list[str] = []
    if continued is not None:
        kept = [*continued.parts, make_part_name(len(continued.parts))]
    folder = os.path.dirname(make_part_name(0))
    with contextlib.suppress(OSError):
        names = (f"{folder}/{name}" for name in os.listdir(os.path.join(directory, folder)))
        return sorted(name for name in names if is_manifest(name) and name not in kept)
    return []
