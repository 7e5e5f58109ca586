"""Comparison of the bytes of files with a manifest's records."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext

from paddlelike.errors import PaddlelikeError
from paddlelike.formats.sources import Folder, Source, as_source
from paddlelike.storage import hashing
from paddlelike.storage.location import File
from paddlelike.storage.manifest import Record


def compare_size(name: str, size: int, record: Record | None) -> str | None:
    """Return why a file of ``size`` bytes differs from its record, or cannot be compared; else None."""
    if record is None:
        return f"{name}: the manifest has no record of this file"
    if size != record.size:
        return f"{name}: it has {size} bytes, {record.size} were saved"
    if record.checksum is None:
        return f"{name}: no checksum was computed when it was saved"
    return None


def compare_buffer(name: str, data: bytes | memoryview, record: Record | None) -> str | None:
    """Return why the bytes of a file differ from its record, or None if they match."""
    problem = compare_size(name, len(data), record)
    if problem is not None or record is None:
        return problem
    algorithm = record.algorithm
    return None if algorithm is None else compare_checksum(name, hashing.hash_bytes(data, algorithm), record)


def compare_file(name: str, open_file: Callable[[], File], record: Record | None) -> str | None:
    """Read a file and return why it differs from its record, or None if it matches."""
    try:
        with open_file() as file:
            problem = compare_size(name, file.size, record)
            if problem is not None or record is None or record.algorithm is None:
                return problem
            return compare_checksum(name, hashing.hash_file(file, record.algorithm).text, record)
    except (PaddlelikeError, OSError) as error:
        return f"{name}: {error}"


def compare_checksum(name: str, checksum: str, record: Record) -> str | None:
    """Return the problem if this checksum differs from the record, else None."""
    if checksum == record.checksum:
        return None
    return f"{name}: its bytes are not those that were saved ({checksum}; the manifest has {record.checksum})"


class ComparedFolder:
    """A folder whose files are read whole, once, and compared with their records when they are opened.

    Attributes
    ----------
    bad
        A line for every file so far that differs from its record.
    """

    def __init__(self, folder: Folder, records: Mapping[str, Record]) -> None:
        self._folder = folder
        self._records = records
        self.bad: list[str] = []

    def list_names(self) -> list[str]:
        """Return the names of all files, sorted."""
        return self._folder.list_names()

    def has(self, name: str) -> bool:
        """Return whether there is a file of that name."""
        return self._folder.has(name)

    def open_file(self, name: str) -> AbstractContextManager[Source]:
        """Read a file, compare it with its record, and return its bytes as a source."""
        with self._folder.open_file(name) as file:
            data = bytes(file.read_at(0, file.size))
        record = self._records.get(name)
        problem = None if record is None or record.checksum is None else compare_buffer(name, data, record)
        if problem is not None:
            self.bad.append(problem)
        return nullcontext(as_source(data))
