"""Directories behind URLs, as readers see them: the files that the marker lists, or without a marker all
files.

See :mod:`.marker`, and :mod:`.transaction` for saves.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable
from types import TracebackType
from typing import Any, Final, TypeVar

from paddlelike.errors import FormatError, StorageError
from paddlelike.foundation.locks import Lock
from paddlelike.storage.manifest import Author, Manifest, Record
from paddlelike.storage.names import relative_path
from paddlelike.storage.options import DEFAULT_OPTIONS, SaveOptions
from paddlelike.storage.problems import is_system_error
from paddlelike.storage.remote import marker
from paddlelike.storage.remote.base import PIECE, Info, Store, translate_errors
from paddlelike.storage.remote.marker import RemoteRoot
from paddlelike.storage.remote.registry import open_store
from paddlelike.storage.remote.transaction import RemoteTransaction
from paddlelike.storage.threads import map_in_threads
from paddlelike.storage.verification import Verification, compare_file, compare_files

T = TypeVar("T")

_THREADS: Final = 16  # requests at once
_FEW: Final = 3  # number of files from which all heads are fetched at once


def locate(url: str) -> RemoteDirectory:
    """Return the directory that a URL names.

    Raises
    ------
    ExtraMissingError
        A package that reaches it is not installed.
    StorageError
        The URL has no store, or names no directory.
    """
    store, root = open_store(url)
    return RemoteDirectory(store, url, root)


def locate_prefix(url: str) -> RemoteDirectory:
    """Return the directory of the files whose URLs begin with ``url``.

    Raises
    ------
    ExtraMissingError
        A package that reaches it is not installed.
    """
    whole = locate(url)
    return RemoteDirectory(whole.store, url.rpartition("/")[0], whole.root.rpartition("/")[0], whole.root)


class RemoteDirectory(RemoteRoot):
    """A directory of a store, for readers."""

    def __init__(self, store: Store, url: str, root: str, base: str | None = None) -> None:
        super().__init__(store, url, root, base)
        self._listing: _Listing | None = None

    @property
    def key(self) -> str:
        return self.path

    def recover(self) -> None:
        """Do nothing: the marker lists what was saved."""

    def exists(self) -> bool:
        self._listing = None
        return bool(self._list().names)

    def has(self, name: str) -> bool:
        return relative_path(name) in self._list().names

    def list_names(self) -> list[str]:
        return sorted(self._list().names)

    def open_file(self, name: str) -> RemoteFile:
        listing = self._list()
        found = listing.names.get(relative_path(name))
        if found is None:
            raise StorageError(f"{self.path}/{name} cannot be read: there is no such file in {self.path}")
        path, info = found
        places = [path] if path.startswith(self.root + "/") else [path, f"{self.root}/{name}"]
        return RemoteFile(self.store, f"{self.path}/{name}", places, info.size, self._head(listing, path))

    def read_all(self, names: Iterable[str], read: Callable[[str, Any], T]) -> dict[str, T]:
        def read_one(name: str) -> T:
            with self.open_file(name) as file:
                return read(name, file)

        names = list(names)
        return dict(zip(names, map_in_threads(read_one, names, _THREADS), strict=True))

    def manifest(self) -> Manifest | None:
        try:
            return self.read_marker().manifest
        except (FormatError, StorageError) as error:
            if is_system_error(error):
                raise
            return None

    def verify(self) -> Verification:
        """Compare every file with the manifest.

        Raises
        ------
        StorageError
            The store cannot be reached.
        """
        try:
            found = self.read_marker()
            if found.manifest is None and not self.is_prefix:
                prefix = locate_prefix(self.path)
                if prefix.read_marker().manifest is not None:
                    return prefix.verify()
        except FormatError as error:
            return Verification(self.path, problem=error.message)
        with translate_errors(self.path):
            present = self.present()
        if found.manifest is None:
            return Verification(
                self.path, extra=tuple(sorted(present)), problem=f"it has no manifest ({self.copy})"
            )

        def compare(name: str, record: Record) -> tuple[str, str]:
            if not self.has(name):
                return "missing", ""
            with self.open_file(name) as file:
                return compare_file(file, record)

        extra = [] if self.is_prefix else sorted(present)
        return compare_files(self.path, found.manifest, extra, compare)

    def stamp(self) -> object:
        with translate_errors(self.path):
            number = marker.find_newest(self.store, self.base)
        if number:
            return number
        found = self.read_marker()
        if found.manifest is not None:
            return found.number, hashlib.sha256(found.data).hexdigest()
        with translate_errors(self.path):
            return tuple(sorted(self.present().items()))

    def begin(
        self,
        options: SaveOptions = DEFAULT_OPTIONS,
        *,
        program: str | None = None,
        part: str | None = None,
        state: Any = None,
    ) -> RemoteTransaction:
        """Begin a transaction; ``durability``, ``wait`` and ``keep_generation`` have no effect on a store."""
        return RemoteTransaction(self, options, Author(program, part), state, locate)

    def _list(self) -> _Listing:
        if self._listing is None:
            found = self.read_marker()
            with translate_errors(self.path):
                names = {name: (f"{self.root}/{name}", info) for name, info in self.present().items()}
                if found.manifest is not None:
                    names = {name: where for name, where in names.items() if name in found.manifest.files}
                    for folder in set(found.at.values()):
                        for name, info in self.store.find(folder).items():
                            if found.at.get(name) == folder:
                                names[name] = f"{folder}/{name}", info
            self._listing = _Listing(names)
        return self._listing

    def _head(self, listing: _Listing, path: str) -> bytes:
        """Return the first bytes of a file; from the third file on, all are fetched at once."""
        with listing.lock.hold():
            return self._fetch_head(listing, path)

    def _fetch_head(self, listing: _Listing, path: str) -> bytes:
        listing.opened += 1
        if listing.opened < _FEW:
            return b""
        if listing.heads is None:
            listing.heads = {}
            folders: dict[str, list[str]] = {}
            for name, (where, _) in listing.names.items():
                folders.setdefault(where[: -len(name) - 1], []).append(name)
            with translate_errors(self.path):
                for folder, names in folders.items():
                    for name, head in self.store.fetch(folder, names).items():
                        listing.heads[f"{folder}/{name}"] = head
        return listing.heads.get(path, b"")


class _Listing:
    def __init__(self, names: dict[str, tuple[str, Info]]) -> None:
        self.names = names
        self.lock = Lock()
        self.heads: dict[str, bytes] | None = None
        self.opened = 0


class RemoteFile:
    """A file of a store, opened for reading.

    Parameters
    ----------
    places
        The possible paths of the file: a file that is being moved may be at the second path.
    head
        The first bytes of the file, as far as they are known.
    """

    def __init__(self, store: Store, shown: str, places: list[str], size: int, head: bytes) -> None:
        self.path = shown
        self.size = size
        self._store = store
        self._places = places
        self._head = head

    def read_at(self, offset: int, size: int) -> bytes:
        """Return up to ``size`` bytes from ``offset``; fewer only at the end.

        Raises
        ------
        StorageError
            The store cannot be reached.
        """
        stop = min(offset + size, self.size)
        if stop <= offset:
            return b""
        if stop <= len(self._head):
            return self._head[offset:stop]
        with translate_errors(self.path):
            for other in range(len(self._places)):
                try:
                    return self._store.read(self._places[other], offset, stop)
                except FileNotFoundError:
                    if other + 1 == len(self._places):
                        raise
        raise AssertionError("the location of a file is missing")

    def readinto_at(self, offset: int, target: memoryview) -> int:
        """Fill ``target`` from ``offset``; return the number of bytes, smaller only at the end."""
        done = 0
        while done < len(target):
            data = self.read_at(offset + done, min(len(target) - done, PIECE))
            if not data:
                break
            target[done : done + len(data)] = data
            done += len(data)
        return done

    def read(self, most: int | None = None) -> bytes:
        """Return the whole file.

        Raises
        ------
        FormatError
            It is larger than ``most``.
        """
        if most is not None and self.size > most:
            raise FormatError(f"{self.size} bytes; such a file has {most} at most")
        return self.read_at(0, self.size)

    def close(self) -> None:
        """Do nothing: no connection is held."""

    def __enter__(self) -> RemoteFile:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if isinstance(error, FormatError):
            raise FormatError(f"{self.path}: {error.message}", hint=error.hint) from error
