"""Where saved files lie: a local directory, or one behind a URL; the same calls for both."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Mapping
from types import TracebackType
from typing import Any, Final, Protocol, TypeVar
from urllib.parse import unquote, urlsplit

from paddlelike.errors import FormatError, StorageError
from paddlelike.storage import manifest
from paddlelike.storage.local import files as local
from paddlelike.storage.local.files import Path
from paddlelike.storage.local.transaction import Committed, Transaction
from paddlelike.storage.local.writing import Buffer
from paddlelike.storage.manifest import Manifest, Record, Verification
from paddlelike.storage.names import relative_path
from paddlelike.storage.options import DEFAULT_OPTIONS, SaveOptions
from paddlelike.storage.parts import Part

__all__ = ["File", "LocalDirectory", "Location", "Writing", "beside", "is_remote", "locate"]

T = TypeVar("T")

_URL: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.\-]+://")


class File(Protocol):
    """A file opened for reading: :class:`paddlelike.storage.local.files.File`, or one elsewhere."""

    path: str

    @property
    def size(self) -> int:
        """The number of bytes."""

    def read_at(self, offset: int, size: int) -> bytes:
        """Up to ``size`` bytes from ``offset``; fewer only at the end."""

    def readinto_at(self, offset: int, target: memoryview) -> int:
        """Fill ``target`` from ``offset``; returns the number of bytes, smaller only at the end."""

    def read(self, most: int | None = None) -> bytes:
        """The whole file. FormatError: it is larger than ``most``."""

    def close(self) -> None:
        """Close the file; twice is no error."""

    def __enter__(self) -> File: ...

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None: ...


class Writing(Protocol):
    """A transaction in progress, such as :class:`~paddlelike.storage.local.transaction.Transaction`."""

    def add(self, name: str, buffers: Iterable[Buffer], facts: Mapping[str, Any] | None = None) -> None:
        """Add the file of variable ``name``. The buffers are read at the commit, not copied now."""

    def keep(self, name: str, record: Record, *, base: Path | None = None) -> bool:
        """Let the file of ``name`` be the one that was saved as ``record``; False: it is not there."""

    def commit(self) -> Committed:
        """Write all files, or none of them."""


class Location(Protocol):
    """A directory, wherever it is."""

    path: str

    @property
    def key(self) -> str:
        """The same text for the same directory, however it is spelt."""

    def recover(self) -> None:
        """Finish a save whose saver was killed in the middle of a commit."""

    def exists(self) -> bool:
        """Whether there is such a directory."""

    def has(self, name: str) -> bool:
        """Whether there is a file of that name."""

    def list_names(self) -> list[str]:
        """The names of all files, sorted; "/" between parts."""

    def open_file(self, name: str) -> File:
        """The file of variable ``name``."""

    def read_all(self, names: Iterable[str], read: Callable[[str, Any], T]) -> dict[str, T]:
        """``{name: read(name, file)}``, several files at once."""

    def manifest(self) -> Manifest | None:
        """The manifest; None when there is none, or none to be trusted."""

    def verify(self) -> Verification:
        """Compare every file with the manifest."""

    def stamp(self) -> object:
        """What changes when files of the directory are replaced; None: there is no telling."""

    def begin(
        self,
        options: SaveOptions = DEFAULT_OPTIONS,
        *,
        program: str | None = None,
        state: Any = None,
        part: Part | None = None,
    ) -> Writing:
        """Begin a transaction; see :class:`~.local.transaction.Transaction` for the parameters."""


class LocalDirectory:
    """A directory of this machine's file systems.

    Parameters
    ----------
    base
        The path that the names of the files begin with, where these are only some of the directory's.
    """

    def __init__(self, directory: Path, base: str | None = None) -> None:
        self.path = os.path.normpath(os.fspath(directory) or ".")
        self._base = base

    @property
    def key(self) -> str:
        return os.path.realpath(self.path)

    def recover(self) -> None:
        local.recover(self.path if self._base is None else self._base)

    def exists(self) -> bool:
        self.recover()
        return os.path.isdir(self.path)

    def has(self, name: str) -> bool:
        return os.path.isfile(os.path.join(self.path, relative_path(name)))

    def list_names(self) -> list[str]:
        return local.list_names(self.path)

    def open_file(self, name: str) -> local.File:
        return local.open_file(self.path, name)

    def read_all(self, names: Iterable[str], read: Callable[[str, Any], T]) -> dict[str, T]:
        return local.read_all(self.path, names, read)

    def manifest(self) -> Manifest | None:
        try:
            return manifest.read(self.path if self._base is None else self._base)
        except (FormatError, StorageError):
            return None

    def verify(self) -> Verification:
        return manifest.verify(self.path if self._base is None else self._base)

    def stamp(self) -> object:
        try:
            if self._base is not None:
                return _stamps(self.path, os.path.basename(self._base))
            facts = os.stat(self.path)
        except OSError:
            return None
        return facts.st_dev, facts.st_ino, facts.st_mtime_ns

    def begin(
        self,
        options: SaveOptions = DEFAULT_OPTIONS,
        *,
        program: str | None = None,
        state: Any = None,
        part: Part | None = None,
    ) -> Transaction:
        return Transaction(
            self.path,
            beside=self._base,
            durability=options.durability,
            checksum=options.checksum,
            program=program,
            state=state,
            wait=options.wait,
            keep_generation=options.keep_generation,
            part=part,
        )


def _stamps(directory: str, begin: str) -> object:
    with os.scandir(directory) as entries:
        facts = [each.stat() for each in entries if each.name.startswith(begin) and each.is_file()]
    return sorted((each.st_ino, each.st_mtime_ns) for each in facts)


def is_remote(path: Path) -> bool:
    """Whether a path is the URL of something that is not on this machine's file systems.

    >>> is_remote("/data/model"), is_remote("file:///data/model"), is_remote("s3://bucket/model")
    (False, False, True)
    """
    text = os.fspath(path)
    return text.startswith("hdfs:") or (_URL.match(text) is not None and not text.startswith("file://"))


def beside(path: Path) -> tuple[Location, str]:
    """The place of the files whose paths begin with ``path``, and what their names there begin with.

    >>> where, name = beside("models/net")
    >>> where.path, name
    ('models', 'net')
    """
    text = os.fspath(path)
    if is_remote(text):
        from paddlelike.storage.remote import directory as remote

        return remote.beside(text), text.rpartition("/")[2]
    if text.startswith("file://"):
        text = unquote(urlsplit(text).path)
    directory, name = os.path.split(text)
    return LocalDirectory(directory, text), name


def locate(path: Path) -> Location:
    """The directory that a path or a URL names.

    ``hdfs:`` paths go through the ``hadoop fs`` command line, ``file://`` is a local path, and other URLs go
    through fsspec, which is the extra "remote".
    """
    text = os.fspath(path)
    if text.startswith("file://"):
        return LocalDirectory(unquote(urlsplit(text).path))
    if not is_remote(text):
        return LocalDirectory(text)
    from paddlelike.storage.remote import directory as remote

    return remote.locate(text)
