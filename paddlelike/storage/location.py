"""Locations of saved files: a path or a URL becomes a directory with the same methods for both."""

from __future__ import annotations

import os
from urllib.parse import unquote, urlsplit

from paddlelike.errors import PaddlelikeError
from paddlelike.foundation.near_names import suggest_names
from paddlelike.storage.interfaces import File, Location, Path, Writing
from paddlelike.storage.local.directory import LocalDirectory
from paddlelike.storage.names import is_remote

__all__ = [
    "File", "LocalDirectory", "Location", "Writing", "find_near_file", "is_remote", "locate", "locate_prefix",
]  # fmt: skip


def locate(path: Path) -> Location:
    """Return the directory of a path or a URL.

    ``file://`` is a local path; other URLs go through the store of their scheme, see
    :mod:`paddlelike.storage.remote.registry`.

    Raises
    ------
    ExtraMissingError
        A package that reaches the URL is not installed.
    StorageError
        The URL has no store, or names no directory.
    """
    text = os.fspath(path)
    if text.startswith("file://"):
        return LocalDirectory(unquote(urlsplit(text).path))
    if not is_remote(text):
        return LocalDirectory(text)
    from paddlelike.storage.remote import directory as remote  # most programs do not need it

    return remote.locate(text)


def locate_prefix(path: Path) -> tuple[Location, str]:
    """Return the directory of the files whose paths begin with ``path``, and the beginning of their names
    there.

    >>> where, name = locate_prefix("models/net")
    >>> where.path, name
    ('models', 'net')

    Raises
    ------
    ExtraMissingError
        A package that reaches the URL is not installed.
    StorageError
        The URL has no store, or names no directory.
    """
    text = os.fspath(path)
    if is_remote(text):
        from paddlelike.storage.remote import directory as remote

        return remote.locate_prefix(text), text.rpartition("/")[2]
    if text.startswith("file://"):
        text = unquote(urlsplit(text).path)
    directory, name = os.path.split(text)
    return LocalDirectory(directory, text), name


def find_near_file(path: Path) -> str | None:
    """Return a hint with the names beside a missing file that are similar, or None without any."""
    try:
        where, name = locate_prefix(path)
        names = where.list_names() if is_remote(os.fspath(path)) else os.listdir(where.path or ".")
    except (OSError, PaddlelikeError):
        return None
    return suggest_names(name, sorted({one.split("/")[0] for one in names})) or None
