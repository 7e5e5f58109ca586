"""Locations of saved files: a path or a URL becomes a directory with the same methods for both."""

from __future__ import annotations

import os
from urllib.parse import unquote, urlsplit

from paddlelike.storage.interfaces import File, Location, Path, Writing
from paddlelike.storage.local.directory import LocalDirectory
from paddlelike.storage.names import is_remote

__all__ = ["File", "LocalDirectory", "Location", "Writing", "is_remote", "locate", "locate_prefix"]


def locate(path: Path) -> Location:
    """Return the directory of a path or a URL.

    ``file://`` is a local path; other URLs go through the store of their scheme, see
    :mod:`paddlelike.storage.remote.stores`.

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
