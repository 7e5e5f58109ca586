"""Checksums of files: xxh3_128, as fast as memory; sha256, for standard tools; crc32.

A checksum is text that names its algorithm, such as ``xxh3_128:<hex>``.

``xxh3_128`` is computed by pieces of 1 MiB, so that a slice of a large file can be compared alone. For a file
of at most 1 MiB it is the plain xxh3_128 of the bytes, as ``xxhsum -H2`` prints it; for a larger file it is
the xxh3_128 of the 16-byte digests (big-endian) of its pieces. A slice that ends within a piece is compared
by parts: the manifest holds the xxh3_64 of each 16 KiB of the file, in one base64 text. If a file has more
than 16,384 parts, 2, 4, ... 64 neighbours are joined to the xxh3_64 of their digests.
"""

from __future__ import annotations

import base64
import contextlib
import zlib
from collections.abc import Callable, Sequence
from typing import Final, Literal, NamedTuple, Protocol

import xxhash

from paddlelike.foundation.progress import advance_progress

Algorithm = Literal["xxh3_128", "sha256", "crc32"]
Buffer = bytes | bytearray | memoryview

PIECE: Final = 1 << 20  # bytes of a piece with a checksum of its own; fits the processor's cache
PART: Final = 1 << 14  # bytes of the smallest part of a piece with a checksum of its own
_MOST: Final = 1 << 14  # parts of a file
_LEAST: Final = 4  # fewer parts are not worth their checksums


class Checksum(NamedTuple):
    """The checksum of a file, with the checksums of its pieces.

    Attributes
    ----------
    text
        The checksum as text, with the name of its algorithm in front.
    pieces
        The xxh3_128 of each piece of a file over 1 MiB; empty for smaller files and other algorithms.
    parts
        The xxh3_64 of each part, see :func:`list_parts`.
    """

    text: str
    pieces: tuple[str, ...] = ()
    parts: str = ""


class Hasher(Protocol):
    """Computes a checksum of the bytes that it receives, with the methods of hashlib's objects."""

    def update(self, data: Buffer, /) -> None:
        """Add more bytes."""

    def hexdigest(self) -> str:
        """Return the checksum of all bytes so far, in hexadecimal."""

    def copy(self) -> Hasher:
        """Return another hasher that has received the same bytes."""


class _Readable(Protocol):
    @property
    def size(self) -> int: ...

    def readinto_at(self, offset: int, target: memoryview) -> int: ...


class PieceHasher:
    """The xxh3_128 of a file, with the checksums of its pieces and parts."""

    __slots__ = ("_done", "_parts", "_piece", "_room")

    def __init__(self) -> None:
        self._done: list[bytes] = []  # digests of whole pieces
        self._piece = xxhash.xxh3_128()
        self._room = PIECE
        self._parts = PartHasher()

    def update(self, data: Buffer, /) -> None:
        """Add more bytes."""
        size = len(data) if isinstance(data, bytes) else memoryview(data).nbytes
        if size <= self._room:
            self._piece.update(data)
            self._room -= size
            self._parts.update(data)
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
            self._parts.update(part)
            at += len(part)

    def hexdigest(self) -> str:
        """Return the checksum of all bytes so far, in hexadecimal."""
        if not self._done:
            return self._piece.hexdigest()
        return xxhash.xxh3_128_hexdigest(b"".join(self._done) + self._piece.digest())

    def pieces(self) -> tuple[str, ...]:
        """Return the checksums of the pieces, or none for a single piece."""
        if not self._done:
            return ()
        return (*(digest.hex() for digest in self._done), self._piece.hexdigest())

    def copy(self) -> PieceHasher:
        """Return another hasher that has received the same bytes."""
        other = PieceHasher()
        other._done = self._done.copy()
        other._piece = self._piece.copy()
        other._room = self._room
        other._parts = self._parts.copy()
        return other


class PartHasher:
    """Computes the xxh3_64 of each part of the bytes that it receives."""

    __slots__ = ("_done", "_part", "_room")

    def __init__(self) -> None:
        self._done = bytearray()
        self._part = xxhash.xxh3_64()
        self._room = PART

    def update(self, data: Buffer, /) -> None:
        """Add more bytes."""
        view = memoryview(data).cast("B")
        at, size = 0, len(view)
        while at < size:
            if self._room == PART and size - at >= PART:
                self._done += xxhash.xxh3_64_digest(view[at : at + PART])
                at += PART
                continue
            part = view[at : at + self._room]
            self._part.update(part)
            self._room -= len(part)
            at += len(part)
            if not self._room:
                self._done += self._part.digest()
                self._part.reset()
                self._room = PART

    def digests(self) -> bytes:
        """Return the digests of all parts, concatenated."""
        return bytes(self._done) + (b"" if self._room == PART else self._part.digest())

    def copy(self) -> PartHasher:
        """Return another hasher that has received the same bytes."""
        other = PartHasher()
        other._done = self._done.copy()
        other._part = self._part.copy()
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


def _make_sha256() -> Hasher:
    import hashlib  # late: it takes long

    return hashlib.sha256()


ALGORITHMS: Final[dict[str, Callable[[], Hasher]]] = {
    "xxh3_128": PieceHasher,
    "sha256": _make_sha256,
    "crc32": _Crc32,
}


def new_hasher(algorithm: str) -> Hasher:
    """Return a new hasher of one of :data:`ALGORITHMS`."""
    return ALGORITHMS[algorithm]()


def hash_bytes(data: Buffer, algorithm: str = "xxh3_128") -> str:
    """Return the checksum of a file's bytes with little overhead.

    >>> hash_bytes(b"abc", "crc32")
    'crc32:352441c2'
    """
    if algorithm == "xxh3_128":
        if len(data) > PIECE:
            view = memoryview(data)
            pieces = (view[at : at + PIECE] for at in range(0, len(data), PIECE))
            data = b"".join(map(xxhash.xxh3_128_digest, pieces))
        return f"xxh3_128:{xxhash.xxh3_128_hexdigest(data)}"
    hasher = new_hasher(algorithm)
    hasher.update(data)
    return f"{algorithm}:{hasher.hexdigest()}"


def finish(hasher: Hasher, algorithm: str) -> Checksum:
    """Return the checksum of the bytes that a hasher of an algorithm has received."""
    text = f"{algorithm}:{hasher.hexdigest()}"
    if not isinstance(hasher, PieceHasher):
        return Checksum(text)
    return Checksum(text, hasher.pieces(), encode_parts(hasher._parts.digests()))


def join_pieces(pieces: Sequence[str], parts: bytes = b"") -> Checksum:
    """Return the xxh3_128 of a file from the checksums of its pieces, with the digests of its parts.

    >>> hasher = PieceHasher()
    >>> hasher.update(bytes(PIECE + 1))
    >>> join_pieces(hasher.pieces(), hasher._parts.digests()) == finish(hasher, "xxh3_128")
    True
    """
    if len(pieces) == 1:
        return Checksum(f"xxh3_128:{pieces[0]}", (), encode_parts(parts))
    text = f"xxh3_128:{xxhash.xxh3_128_hexdigest(bytes.fromhex(''.join(pieces)))}"
    return Checksum(text, tuple(pieces), encode_parts(parts))


def encode_parts(digests: bytes) -> str:
    """Return the digests of all parts of a file as one text; '' if there are few parts."""
    count = len(digests) // 8
    if count < _LEAST:
        return ""
    group = choose_part(count * PART) // PART
    if group > 1:
        size = 8 * group
        digests = b"".join(
            xxhash.xxh3_64_digest(digests[at : at + size]) for at in range(0, len(digests), size)
        )
    return base64.b64encode(digests).decode()


def choose_part(size: int) -> int:
    """Return the number of bytes of each part of a file.

    >>> choose_part(100), choose_part(1 << 28), choose_part(1 << 30), choose_part(1 << 50)
    (16384, 16384, 65536, 1048576)
    """
    part = PART
    while -(-size // part) > _MOST and part < PIECE:
        part *= 2
    return part


def list_parts(text: str, size: int) -> tuple[int, list[bytes]]:
    """Return the size of each part of a file in bytes, and their digests; none if they do not match."""
    part, digests = choose_part(size), b""
    with contextlib.suppress(ValueError):  # not base64: the pieces are compared instead
        digests = base64.b64decode(text)
    if len(digests) != 8 * -(-size // part):
        return part, []
    return part, [digests[at : at + 8] for at in range(0, len(digests), 8)]


def hash_part(data: Buffer, part: int) -> bytes:
    """Return the digest of one part of a file whose parts have ``part`` bytes each."""
    hasher = PartHasher()
    hasher.update(data)
    digests = hasher.digests()
    return digests if part == PART else xxhash.xxh3_64_digest(digests)


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
