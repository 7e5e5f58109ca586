"""The store behind every URL that fsspec knows, such as ``s3://``, ``gs://`` or ``memory://``."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, TypeVar

from paddlelike.errors import StorageError
from paddlelike.storage.interfaces import Buffer
from paddlelike.storage.remote.base import PIECE, Info, Store, missing_extra
from paddlelike.storage.threads import map_in_threads

T = TypeVar("T")

_THREADS: Final = 16  # requests at once: they wait for the network
_HEAD: Final = 4096  # bytes that are fetched of every file before the first is read
_TRIES: Final = 5  # attempts to list a changing folder
_WRITERS: Final = 4  # files that are sent at once: each holds a piece in memory


def open_url(url: str) -> tuple[Store, str]:
    """Return the store of a URL, and the path in it.

    Raises
    ------
    ExtraMissingError
        fsspec, or its package for this protocol, is not installed.
    StorageError
        fsspec does not know the protocol, or the URL names no directory.
    """
    try:
        from fsspec.core import url_to_fs
    except ImportError as error:
        raise missing_extra(url, error) from error
    try:
        fs, root = url_to_fs(url)
    except ImportError as error:
        raise missing_extra(url, error) from error
    except ValueError as error:
        raise StorageError(f"{url} is not an address that fsspec knows: {error}") from error
    root = str(root).rstrip("/")
    if not root.strip("/"):
        raise StorageError(f"{url} names no directory", hint="such as s3://bucket/model")
    return FsspecStore(fs), root


class FsspecStore:
    """A file system of fsspec."""

    def __init__(self, fs: Any) -> None:
        self._fs = fs

    def is_same(self, other: Store) -> bool:
        return isinstance(other, FsspecStore) and other._fs == self._fs

    def find(self, folder: str) -> dict[str, Info]:
        self._fs.invalidate_cache()
        try:
            found = self._fs.find(folder, detail=True)
        except FileNotFoundError:
            return {}
        front = folder + "/"
        return {
            path[len(front) :]: Info(int(info["size"] or 0), _tag(info))
            for path, info in found.items()
            if path.startswith(front) and info.get("type") != "directory"
        }

    def read(self, path: str, start: int = 0, stop: int | None = None) -> bytes:
        return bytes(self._fs.cat_file(path, start=start, end=stop))

    def fetch(self, folder: str, names: Iterable[str]) -> dict[str, bytes]:
        def head(name: str) -> tuple[str, bytes]:
            try:
                return name, self.read(f"{folder}/{name}", 0, _HEAD)
            except Exception:  # an empty file, in some stores; its reader gets an error
                return name, b""

        return dict(_at_once(head, names))

    def write(self, folder: str, files: Mapping[str, Iterable[Buffer]]) -> None:
        def write(item: tuple[str, Iterable[Buffer]]) -> None:
            name, buffers = item
            path = f"{folder}/{name}"
            self._fs.makedirs(path.rpartition("/")[0], exist_ok=True)
            file = self._fs.open(path, "wb", block_size=PIECE)
            try:
                for buffer in buffers:
                    file.write(buffer)
            except BaseException:
                with contextlib.suppress(Exception):  # otherwise its deletion would send a part
                    file.discard()
                    file.closed = True
                raise
            file.close()

        _at_once(write, files.items(), _WRITERS)

    def put(self, path: str, data: bytes) -> None:
        self._fs.pipe_file(path, data)

    def create(self, path: str, data: bytes) -> bool:
        try:
            self._fs.pipe_file(path, data, mode="create")
        except FileExistsError:
            return False
        except Exception:  # stores differ in their error for an existing file
            with contextlib.suppress(Exception):
                return self._holds(path, data)
            raise
        try:
            return self._holds(path, data)  # some stores check first and then overwrite a newer file
        except FileNotFoundError:  # a later one replaced it
            return True

    def _holds(self, path: str, data: bytes) -> bool:
        found = self.read(path)
        if found != data and data.startswith(found):
            raise ConnectionError(f"{path} was read back as {len(found)} of {len(data)} bytes")
        return found == data

    def list_prefix(self, front: str) -> dict[str, Info | None]:
        above, _, begin = front.rpartition("/")
        entries = self._list_folder(above)
        named = [(str(entry["name"]).rstrip("/").rpartition("/")[2], entry) for entry in entries]
        return {
            name: None if entry.get("type") == "directory" else Info(int(entry["size"] or 0), _tag(entry))
            for name, entry in named
            if name.startswith(begin)
        }

    def _list_folder(self, path: str) -> list[dict[str, Any]]:
        for _ in range(_TRIES):
            self._fs.invalidate_cache()
            try:
                return list(self._fs.ls(path, detail=True))
            except FileNotFoundError:  # or an entry was removed meanwhile
                if not self._fs.isdir(path):
                    break
        return []

    def move(self, source: str, target: str, names: Iterable[str]) -> None:
        def copy(name: str) -> None:
            try:
                self.copy(source, target, [name])
            except FileNotFoundError:  # some file systems raise it for any error of the file
                if name in self.find(source):
                    raise

        _at_once(copy, names)

    def copy(self, source: str, target: str, names: Iterable[str]) -> None:
        def copy(name: str) -> None:
            path = f"{target}/{name}"
            self._fs.makedirs(path.rpartition("/")[0], exist_ok=True)
            self._fs.cp_file(f"{source}/{name}", path)

        _at_once(copy, names)

    def remove(self, folder: str, names: Iterable[str]) -> None:
        def remove(name: str) -> None:
            with contextlib.suppress(FileNotFoundError):
                self._fs.rm_file(f"{folder}/{name}")

        _at_once(remove, names)
        if ".saving-" in folder:
            with contextlib.suppress(Exception):  # object stores have no folders
                self._fs.rm(folder, recursive=True)


def _tag(info: Mapping[str, Any]) -> str:
    for key in ("ETag", "etag", "md5", "checksum", "LastModified", "mtime", "last_modified", "created"):
        if info.get(key) is not None:
            return f"{key}:{info[key]}"
    return ""


def _at_once(work: Callable[[Any], T], items: Iterable[Any], threads: int = _THREADS) -> list[T]:
    return map_in_threads(work, items, threads)
