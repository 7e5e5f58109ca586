"""Checksums of files: xxh3_128 at the speed of memory, sha256 for everybody's tools, crc32.

A checksum is text that names its algorithm, such as ``xxh3_128:<hex>``.

``xxh3_128`` is taken piece by piece, so that a slice of a large file can be compared without the rest. Of a
file of at most 1 MiB it is the plain xxh3_128 of the bytes, as ``xxhsum -H2`` prints it; of a larger file it
is the xxh3_128 of the 16-byte digests (big-endian) of its pieces of 1 MiB, the last of which may be shorter.
"""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Callable, Iterable, Sequence
from typing import Final, Literal, NamedTuple, Protocol

import xxhash

from paddlelike.foundation.progress import advance_progress

__all__ = [
    "ALGORITHMS",
    "PIECE",
    "Algorithm",
    "Buffer",
    "Checksum",
    "Hasher",
    "finish",
    "hash_buffers",
    "hash_bytes",
    "hash_file",
    "join_pieces",
    "new_hasher",
]

Algorithm = Literal["xxh3_128", "sha256", "crc32"]
Buffer = bytes | bytearray | memoryview

PIECE: Final = 1 << 20  # bytes of a piece with a checksum of its own; fits the processor's cache


class Checksum(NamedTuple):
    """The checksum of a file, with those of its pieces.

    Attributes
    ----------
    text
        With the name of its algorithm in front.
    pieces
        The xxh3_128 of each piece of a file over 1 MiB; of others, and with other algorithms, none.
    """

    text: str
    pieces: tuple[str, ...] = ()


class Hasher(Protocol):
    """Takes bytes and gives their checksum, as the objects of hashlib do."""

    def update(self, data: Buffer, /) -> None:
        """Take more bytes."""

    def hexdigest(self) -> str:
        """Return the checksum of all bytes so far, in hexadecimal."""

    def copy(self) -> Hasher:
        """Return another hasher that has taken the same bytes."""


class _Readable(Protocol):
    @property
    def size(self) -> int: ...

    def readinto_at(self, offset: int, target: memoryview) -> int: ...


class PieceHasher:
    """The xxh3_128 of a file, with those of its pieces."""

    __slots__ = ("_done", "_piece", "_room")

    def __init__(self) -> None:
        self._done: list[bytes] = []  # digests of whole pieces
        self._piece = xxhash.xxh3_128()
        self._room = PIECE

    def update(self, data: Buffer, /) -> None:
        """Take more bytes."""
        size = len(data) if isinstance(data, bytes) else memoryview(data).nbytes
        if size <= self._room:
            self._piece.update(data)
            self._room -= size
            return
        view = memoryview(data).cast("B")
        at = 0
        while at < size:
            if self._room == 0:
                self._done.append(self._piece.digest())
                self._piece = xxhash.xxh3_128()
                self._room = PIECE
            part = view[at : at + self._room]
            self._piece.update(part)
            self._room -= len(part)
            at += len(part)

    def hexdigest(self) -> str:
        """Return the checksum of all bytes so far, in hexadecimal."""
        if not self._done:
            return self._piece.hexdigest()
        return xxhash.xxh3_128_hexdigest(b"".join(self._done) + self._piece.digest())

    def pieces(self) -> tuple[str, ...]:
        """Return the checksums of the pieces; none where there is only one."""
        if not self._done:
            return ()
        return (*(digest.hex() for digest in self._done), self._piece.hexdigest())

    def copy(self) -> PieceHasher:
        """Return another hasher that has taken the same bytes."""
        other = PieceHasher()
        other._done = self._done.copy()
        other._piece = self._piece.copy()
        other._room = self._room
        return other


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


ALGORITHMS: Final[dict[str, Callable[[], Hasher]]] = {
    "xxh3_128": PieceHasher,
    "sha256": hashlib.sha256,
    "crc32": _Crc32,
}


def new_hasher(algorithm: str) -> Hasher:
    """Return a new hasher of one of :data:`ALGORITHMS`."""
    return ALGORITHMS[algorithm]()


def hash_bytes(data: bytes | memoryview, algorithm: str = "xxh3_128") -> str:
    """Return the checksum of a small file's bytes, with the least overhead.

    >>> hash_bytes(b"abc", "crc32")
    'crc32:352441c2'
    """
    if algorithm == "xxh3_128" and len(data) <= PIECE:
        return f"xxh3_128:{xxhash.xxh3_128_hexdigest(data)}"
    return hash_buffers([data], algorithm)


def hash_buffers(buffers: Iterable[Buffer], algorithm: str = "xxh3_128") -> str:
    """Return the checksum of buffers, one after the other.

    >>> hash_buffers([b"ab", b"c"])
    'xxh3_128:06b05ab6733a618578af5f94892f3950'
    """
    hasher = new_hasher(algorithm)
    for buffer in buffers:
        hasher.update(buffer)
    return f"{algorithm}:{hasher.hexdigest()}"


def finish(hasher: Hasher, algorithm: str) -> Checksum:
    """Return the checksum of the bytes that a hasher of an algorithm has taken."""
    pieces = hasher.pieces() if isinstance(hasher, PieceHasher) else ()
    return Checksum(f"{algorithm}:{hasher.hexdigest()}", pieces)


def join_pieces(pieces: Sequence[str]) -> Checksum:
    """Return the xxh3_128 of a file, given those of all its pieces, at least one.

    >>> hasher = PieceHasher()
    >>> hasher.update(bytes(PIECE + 1))
    >>> join_pieces(hasher.pieces()) == finish(hasher, "xxh3_128")
    True
    """
    if len(pieces) == 1:
        return Checksum(f"xxh3_128:{pieces[0]}")
    return Checksum(f"xxh3_128:{xxhash.xxh3_128_hexdigest(bytes.fromhex(''.join(pieces)))}", tuple(pieces))


def hash_file(file: _Readable, algorithm: str = "xxh3_128") -> Checksum:
    """Return the checksum of an open file."""
    hasher = new_hasher(algorithm)
    piece = memoryview(bytearray(min(PIECE, max(file.size, 1))))
    offset = 0
    while count := file.readinto_at(offset, piece):
        hasher.update(piece[:count])
        advance_progress(count)
        offset += count
    return finish(hasher, algorithm)
