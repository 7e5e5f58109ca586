"""Checksums of files: sha256, which anybody can check, or crc32, which costs half as much.

A checksum is text, ``sha256:<hex>`` or ``crc32:<hex>``, so that it says itself how it was made.
"""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Callable, Iterable
from typing import Final, Literal, Protocol

from paddlelike.storage.local import File

__all__ = ["ALGORITHMS", "Algorithm", "Hasher", "hasher", "of_file", "of_parts"]

Algorithm = Literal["sha256", "crc32"]
Buffer = bytes | bytearray | memoryview

_PIECE: Final = 1 << 20  # bytes: stays in the processor's cache between hashing and writing


class Hasher(Protocol):
    """Takes bytes and gives their checksum, as hashlib's objects do."""

    def update(self, data: Buffer, /) -> None:
        """Take more bytes."""

    def hexdigest(self) -> str:
        """The checksum of all bytes so far, in hexadecimal."""


class _Crc32:
    def __init__(self, data: Buffer = b"") -> None:
        self._value = zlib.crc32(data)

    def update(self, data: Buffer, /) -> None:
        self._value = zlib.crc32(data, self._value)

    def hexdigest(self) -> str:
        return f"{self._value:08x}"


ALGORITHMS: Final[dict[str, Callable[..., Hasher]]] = {"sha256": hashlib.sha256, "crc32": _Crc32}


def hasher(algorithm: str) -> Hasher:
    """A new hasher of a known algorithm."""
    return ALGORITHMS[algorithm]()


def of_parts(parts: Iterable[Buffer], algorithm: str = "sha256") -> str:
    """The checksum of ``parts``, one after the other.

    >>> of_parts([b"ab", b"c"], "crc32")
    'crc32:352441c2'
    """
    made = hasher(algorithm)
    for part in parts:
        made.update(part)
    return f"{algorithm}:{made.hexdigest()}"


def of_file(file: File, algorithm: str = "sha256") -> str:
    """The checksum of an open file."""
    made = hasher(algorithm)
    piece = memoryview(bytearray(min(_PIECE, max(file.size, 1))))
    offset = 0
    while count := file.readinto_at(offset, piece):
        made.update(piece[:count])
        offset += count
    return f"{algorithm}:{made.hexdigest()}"
