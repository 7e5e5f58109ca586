"""Sources of readers: bytes at offsets, and files by name, in buffers, files and folders."""

from __future__ import annotations

import os
from contextlib import AbstractContextManager
from typing import Any, BinaryIO, Final, Protocol, TypeGuard, cast, runtime_checkable

from paddlelike.errors import FormatError

Buffer = bytes | bytearray | memoryview

_CHUNK: Final = 4096  # holds nearly every header, and the whole of most small files


@runtime_checkable
class Source(Protocol):
    """Bytes at offsets. ``storage`` opens files as sources; :func:`as_source` converts others."""

    @property
    def size(self) -> int:
        """The number of bytes."""

    def read_at(self, offset: int, size: int) -> Buffer:
        """Return up to ``size`` bytes from ``offset``; fewer only at the end."""

    def readinto_at(self, offset: int, target: memoryview) -> int:
        """Fill ``target`` from ``offset`` and return the number of bytes, smaller only at the end."""


Readable = Buffer | BinaryIO | Source


class Folder(Protocol):
    """A set of named files. The locations of ``storage`` are folders."""

    def list_names(self) -> list[str]:
        """Return the names of all files, sorted; "/" between parts."""

    def has(self, name: str) -> bool:
        """Return whether there is a file of that name."""

    def open_file(self, name: str) -> AbstractContextManager[Source]:
        """Open the file of that name."""


def is_folder(source: object) -> TypeGuard[Folder]:
    """Return whether ``source`` is a set of named files, not the bytes of one file."""
    return hasattr(source, "list_names")


class BufferSource:
    """The bytes of a buffer."""

    def __init__(self, buffer: Buffer) -> None:
        self._view = memoryview(buffer).cast("B")
        self.size = len(self._view)

    def read_at(self, offset: int, size: int) -> Buffer:
        return self._view[offset : offset + size]

    def readinto_at(self, offset: int, target: memoryview) -> int:
        part = self._view[offset : offset + len(target)]
        target[: len(part)] = part
        return len(part)


class _FileSource:
    """The bytes of a seekable binary file from its current position to its end."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._start = file.tell()
        self.size = max(file.seek(0, os.SEEK_END) - self._start, 0)

    def read_at(self, offset: int, size: int) -> Buffer:
        # the size is clamped because a buffered file allocates the memory before it reads
        self._file.seek(self._start + offset)
        return self._file.read(max(min(size, self.size - offset), 0))

    def readinto_at(self, offset: int, target: memoryview) -> int:
        self._file.seek(self._start + offset)
        done = 0
        while done < len(target):
            count = cast(Any, self._file).readinto(target[done:])
            if not count:
                break
            done += count
        return done


def as_source(readable: Readable) -> Source:
    """Return ``readable`` as a Source; a seekable binary file begins at its current position.

    >>> bytes(as_source(b"abcdef").read_at(2, 3))
    b'cde'
    """
    if isinstance(readable, bytes | bytearray | memoryview):
        return BufferSource(readable)
    if hasattr(readable, "read_at"):  # isinstance of a protocol is many times slower
        return cast(Source, readable)
    return _FileSource(readable)


class Cursor:
    """Reads the beginning of a source piece by piece. A missing piece raises FormatError."""

    __slots__ = ("at", "chunk", "chunk_at", "end", "source")

    def __init__(self, source: Source, at: int = 0) -> None:
        self.source = source
        self.chunk = source.read_at(at, _CHUNK)  # the bytes read last, and their offset
        self.chunk_at = at
        self.at = at
        self.end = source.size

    def take(self, size: int, what: str) -> Buffer:
        """Return the next ``size`` bytes.

        Raises
        ------
        FormatError
            They are not there; the error calls them ``what``.
        """
        self.need(size, what)
        start = self.at - self.chunk_at
        if start + size > len(self.chunk):
            self.chunk = self.source.read_at(self.at, max(size, _CHUNK))
            self.chunk_at, start = self.at, 0
            if len(self.chunk) < size:  # the file became shorter while it was read
                raise FormatError(f"offset {self.at}: {what} could not be read to its end")
        self.at += size
        return self.chunk[start : start + size]

    def readinto_at(self, offset: int, target: memoryview) -> int:
        """Fill ``target`` from ``offset``; use the bytes read last if they contain the range."""
        start = offset - self.chunk_at
        if start < 0 or start + len(target) > len(self.chunk):
            return self.source.readinto_at(offset, target)
        target[:] = self.chunk[start : start + len(target)]
        return len(target)

    def need(self, size: int, what: str) -> None:
        """Raise FormatError unless ``size`` more bytes are there."""
        left = self.end - self.at
        if size > left:
            raise FormatError(
                f"offset {self.at}: {what} takes {size} bytes, but {left} are left of {self.end}"
            )

    def skip(self, size: int, what: str) -> None:
        """Skip ``size`` bytes. Raises FormatError when fewer are left."""
        self.need(size, what)
        self.at += size

    def take_int(self, size: int, what: str, *, signed: bool = False) -> int:
        """Return the next little-endian integer of ``size`` bytes. Raises FormatError when fewer are left."""
        return int.from_bytes(self.take(size, what), "little", signed=signed)
