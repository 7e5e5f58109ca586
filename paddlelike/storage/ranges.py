"""Checksums of a file that several processes write, each one a range of it.

While a process writes its range, it hashes the pieces of the file (:mod:`.hashing`) within the range. For a
piece shared with another range it computes the crc32 of its part. The process that joins the ranges reads the
shared pieces back, at most 1 MiB at each border, and checks the crc32 before it hashes them. So all checksums
describe the bytes that were in memory.
"""

from __future__ import annotations

import base64
import zlib
from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple, Protocol

import xxhash

from paddlelike.errors import StorageError
from paddlelike.storage.hashing import PART, PIECE, Buffer, Checksum, PartHasher, join_pieces

_PARTS: Final = PIECE // PART * 8  # bytes of the digests of a piece's parts


class RangeSums(NamedTuple):
    """The checksums of a range of a file.

    Attributes
    ----------
    start, size
        The range, in bytes.
    pieces
        The xxh3_128 of each piece of the file that lies within the range, in order.
    head, tail
        The crc32 of the bytes before the first of these pieces and after the last.
    parts
        The digests of the parts of these pieces, in order.
    """

    start: int
    size: int
    pieces: tuple[str, ...]
    head: int
    tail: int
    parts: bytes

    @classmethod
    def parse(cls, held: Mapping[str, Any]) -> RangeSums:
        """Return the sums from another process's JSON.

        Raises
        ------
        ValueError
            They are not the sums of a range.
        """
        start, size, head, tail = (held.get(name) for name in ("start", "size", "head", "tail"))
        text = held.get("pieces")
        if type(start) is not int or type(size) is not int or type(head) is not int or type(tail) is not int:
            raise ValueError(f"{held!r:.100} are not the checksums of a range")
        if not isinstance(text, str) or len(text) != 32 * len(_list_inner(start, size)):
            raise ValueError(f"{text!r:.50} is not a list of checksums for {size} bytes from byte {start} on")
        parts = base64.b64decode(held.get("parts") or "", validate=True)
        if len(parts) != _PARTS * len(_list_inner(start, size)):
            raise ValueError(f"{len(parts)} bytes are not the checksums of the parts of {size} bytes")
        pieces = tuple(text[at : at + 32] for at in range(0, len(text), 32))
        return cls(start, size, pieces, head, tail, parts)

    def to_json(self) -> dict[str, Any]:
        """Return the sums as JSON values."""
        parts = base64.b64encode(self.parts).decode()
        return self._asdict() | {"pieces": "".join(self.pieces), "parts": parts}


class RangeHasher:
    """Receives the bytes of a range of a file, in order.

    >>> hasher = RangeHasher(PIECE - 1, 2)
    >>> hasher.update(b"ab")
    >>> hasher.sums() == RangeSums(PIECE - 1, 2, (), zlib.crc32(b"a"), zlib.crc32(b"b"), b"")
    True
    """

    def __init__(self, start: int, size: int) -> None:
        self._start, self._size = start, size
        inner = _list_inner(start, size)
        self._begin = inner.start * PIECE if inner else min(-(-start // PIECE) * PIECE, start + size)
        self._end = inner.stop * PIECE if inner else self._begin
        self._at = start
        self._head = self._tail = 0
        self._piece = xxhash.xxh3_128()
        self._pieces: list[str] = []
        self._parts = PartHasher()

    def update(self, data: Buffer) -> None:
        """Add more bytes."""
        view = memoryview(data).cast("B")
        while view:
            if self._at < self._begin:
                part = view[: self._begin - self._at]
                self._head = zlib.crc32(part, self._head)
            elif self._at < self._end:
                part = view[: PIECE - self._at % PIECE]
                self._piece.update(part)
                self._parts.update(part)
                if (self._at + len(part)) % PIECE == 0:
                    self._pieces.append(self._piece.hexdigest())
                    self._piece = xxhash.xxh3_128()
            else:
                part = view
                self._tail = zlib.crc32(part, self._tail)
            self._at += len(part)
            view = view[len(part) :]

    def sums(self) -> RangeSums:
        """Return the checksums of the range."""
        pieces, parts = tuple(self._pieces), self._parts.digests()
        return RangeSums(self._start, self._size, pieces, self._head, self._tail, parts)


class _Readable(Protocol):
    @property
    def size(self) -> int: ...

    def read_at(self, offset: int, size: int) -> Buffer: ...


def join_ranges(file: _Readable, front: bytes, ranges: Iterable[RangeSums]) -> Checksum:
    """Return the xxh3_128 of a file that consists of ``front`` and the ranges.

    Raises
    ------
    StorageError
        Some bytes are in no range, or the file differs from the written bytes.
    """
    known: dict[int, str] = {}
    parts: dict[int, bytes] = {}
    ends = [(0, len(front), zlib.crc32(front))]
    for one in ranges:
        inner, stop = _list_inner(one.start, one.size), one.start + one.size
        known.update(zip(inner, one.pieces, strict=True))
        parts.update(
            (i, one.parts[at : at + _PARTS])
            for i, at in zip(inner, range(0, len(one.parts), _PARTS), strict=True)
        )
        begin = inner.start * PIECE if inner else min(-(-one.start // PIECE) * PIECE, stop)
        ends += [(one.start, begin, one.head), (inner.stop * PIECE if inner else begin, stop, one.tail)]
    for index in range(max(-(-file.size // PIECE), 1)):
        if index not in known:
            data = bytes(file.read_at(index * PIECE, PIECE))
            _check_ends(data, index * PIECE, sorted(ends))
            known[index] = xxhash.xxh3_128_hexdigest(data)
            hasher = PartHasher()
            hasher.update(data)
            parts[index] = hasher.digests()
    return join_pieces([known[index] for index in sorted(known)], b"".join(parts[i] for i in sorted(parts)))


def _check_ends(data: bytes, begin: int, ends: Iterable[tuple[int, int, int]]) -> None:
    at = begin
    for start, stop, crc in ends:
        if start >= stop or not begin <= start < begin + len(data):
            continue
        if start != at or zlib.crc32(data[start - begin : stop - begin]) != crc:
            raise StorageError(
                f"its bytes {start} to {stop} are not those that were written",
                hint="do all processes see the same directory? Otherwise save without by_servers=",
            )
        at = stop
    if at != begin + len(data):
        raise StorageError(f"no process wrote its bytes {at} to {begin + len(data)}")


def _list_inner(start: int, size: int) -> range:
    """Return the indexes of the pieces of a file that lie within a range."""
    first, stop = -(-start // PIECE), (start + size) // PIECE
    return range(first, max(first, stop))
