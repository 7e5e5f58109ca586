"""A regular file, opened for reading."""

from __future__ import annotations

import os
from types import TracebackType

from paddlelike.errors import FormatError, OutOfMemoryError
from paddlelike.foundation.locks import OpenFile
from paddlelike.storage.interfaces import Path
from paddlelike.storage.local.filesystem.opening import open_regular, unreadable


class File:
    """A file opened for reading: its size, and bytes at positions, also from several threads.

    Used as a context manager, it closes itself and puts its path in front of a FormatError. ``own``: see
    :func:`.opening.open_regular`.
    """

    __slots__ = ("_fd", "_file", "path", "size")

    def __init__(self, path: Path, *, own: bool = False) -> None:
        self.path = os.fspath(path)
        self._file: OpenFile | None
        self._file, facts = open_regular(self.path, own=own)
        self._fd: int = self._file.args[0]
        self.size = facts.st_size

    def get_facts(self) -> os.stat_result:
        """Return the result of ``stat`` for the open file. Raises OSError."""
        return os.fstat(self._fd)

    def read_at(self, offset: int, size: int) -> bytes:
        """Return up to ``size`` bytes from ``offset``; fewer only at the end."""
        wanted = max(min(size, self.size - offset), 0)
        data = self._pread(wanted, offset)
        if len(data) < wanted:
            rest = bytearray(wanted - len(data))
            count = self.readinto_at(offset + len(data), memoryview(rest))
            data += bytes(rest[:count])
        return data

    def readinto_at(self, offset: int, target: memoryview) -> int:
        """Fill ``target`` from ``offset``; return the number of bytes, smaller only at the end."""
        done = 0
        while done < len(target):
            count = self._preadv(target[done:], offset + done)
            if count == 0:
                break
            done += count
        return done

    def read(self, most: int | None = None) -> bytes:
        """Return the whole file.

        Raises
        ------
        FormatError
            It is larger than ``most``.
        StorageError
            It cannot be read.
        """
        if most is not None and self.size > most:
            raise FormatError(f"{self.size} bytes, expected at most {most}")
        return self.read_at(0, self.size)

    def close(self) -> None:
        """Close the file. A second call does nothing."""
        self._fd = -1
        self._file = None

    def __enter__(self) -> File:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
        if isinstance(error, FormatError):
            raise FormatError(f"{self.path}: {error.message}", hint=error.hint) from error

    def _pread(self, size: int, offset: int) -> bytes:
        try:
            if hasattr(os, "pread"):
                return os.pread(self._fd, size, offset)
            os.lseek(self._fd, offset, os.SEEK_SET)
            return os.read(self._fd, size)
        except OSError as error:
            raise unreadable(self.path, error) from error
        except MemoryError as error:
            raise OutOfMemoryError(
                f"{self.path}: {size} bytes are to be read at once, more than the free memory"
            ) from error

    def _preadv(self, target: memoryview, offset: int) -> int:
        if not hasattr(os, "preadv"):
            data = self._pread(len(target), offset)
            target[: len(data)] = data
            return len(data)
        try:
            return os.preadv(self._fd, [target], offset)
        except OSError as error:
            raise unreadable(self.path, error) from error
