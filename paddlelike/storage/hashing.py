"""Checksums of files: sha256, which anybody can check, or crc32, which costs half as much.

A checksum is text, ``sha256:<hex>`` or ``crc32:<hex>``, so that it says itself how it was made.
"""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Callable, Iterable
from typing import Final, Literal, Protocol

from paddlelike.storage.local.files import File

__all__ = ["ALGORITHMS", "Algorithm", "Hasher", "hasher", "joined_crc32", "of_file", "of_parts"]

Algorithm = Literal["sha256", "crc32"]
Buffer = bytes | bytearray | memoryview

_PIECE: Final = 1 << 20  # bytes: stays in the processor's cache between hashing and writing


class Hasher(Protocol):
    """Takes bytes and gives their checksum, as hashlib's objects do."""

    def update(self, data: Buffer, /) -> None:
        """Take more bytes."""

    def hexdigest(self) -> str:
        """The checksum of all bytes so far, in hexadecimal."""

    def copy(self) -> Hasher:
        """Another one that has taken the same bytes."""


class _Crc32:
    def __init__(self, data: Buffer = b"") -> None:
        self._value = zlib.crc32(data)

    def update(self, data: Buffer, /) -> None:
        self._value = zlib.crc32(data, self._value)

    def hexdigest(self) -> str:
        return f"{self._value:08x}"

    def copy(self) -> _Crc32:
        other = _Crc32()
        other._value = self._value
        return other


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


def joined_crc32(parts: Iterable[tuple[int, int]]) -> int:
    """The crc32 of a file of those of its parts, ``(crc, length)`` in their order; no bytes are needed.

    As zlib's ``crc32_combine``: a crc is linear over GF(2), and a zero byte after the data multiplies it by a
    matrix, whose powers of two follow by squaring.

    >>> joined_crc32([(zlib.crc32(b"left "), 5), (zlib.crc32(b"right"), 5)]) == zlib.crc32(b"left right")
    True
    """
    whole = 0
    for crc, length in parts:
        whole = _shifted(whole, length) ^ crc
    return whole


def _shifted(crc: int, count: int) -> int:
    """A crc after ``count`` zero bytes, without the inversions at the ends, which cancel out."""
    matrix = [0xEDB88320, *(1 << bit for bit in range(31))]  # one zero bit
    for _ in range(3):
        matrix = [_times(matrix, column) for column in matrix]
    while count and crc:
        if count & 1:
            crc = _times(matrix, crc)
        matrix = [_times(matrix, column) for column in matrix]
        count >>= 1
    return crc


def _times(matrix: list[int], vector: int) -> int:
    out = 0
    for column in matrix:
        if not vector:
            break
        if vector & 1:
            out ^= column
        vector >>= 1
    return out
