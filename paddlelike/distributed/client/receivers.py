"""Receivers of answers of unknown size, or too large to be kept in memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from paddlelike.errors import FrameError

_CHUNK: Final = 4 << 20  # bytes forwarded at a time; at least as many as arrive at a time


class Pieces:
    """A receiver of one array of unknown length.

    Parameters
    ----------
    most
        The largest number of bytes that is accepted.

    >>> pieces = Pieces(10)
    >>> pieces.place(0, 0, 3)[:] = b"abc"
    >>> pieces.place(0, 3, 2)[:] = b"de"
    >>> pieces.join_pieces()
    b'abcde'
    """

    def __init__(self, most: int = 0) -> None:
        self._most = most
        self._pieces: list[bytearray] = []
        self._size = 0

    def place(self, index: int, offset: int, length: int) -> memoryview:
        """Return memory for the next piece. Raises FrameError for a piece out of order or beyond the end."""
        if offset != self._size or offset + length > self._most:
            raise FrameError(
                f"a record of {length} bytes at {offset} of array {index}: expected one at {self._size}, "
                f"and at most {self._most} bytes in all"
            )
        self._size += length
        self._pieces.append(bytearray(length))
        return memoryview(self._pieces[-1])

    def check(self) -> None:
        """Accept any length."""

    def join_pieces(self) -> bytes:
        """Return all bytes."""
        return b"".join(self._pieces)


class Sink:
    """A receiver that forwards data in order and keeps one piece in memory.

    Parameters
    ----------
    size
        The expected number of bytes.
    take
        Called with the offset and the bytes of each piece, whose memory is reused afterwards.

    >>> pieces = []
    >>> sink = Sink(5, lambda offset, data: pieces.append((offset, bytes(data))))
    >>> sink.place(0, 0, 3)[:] = b"abc"
    >>> sink.place(0, 3, 2)[:] = b"de"
    >>> sink.check()
    >>> pieces
    [(0, b'abcde')]
    """

    def __init__(self, size: int, take: Callable[[int, memoryview], None]) -> None:
        self.size = size
        self._take = take
        self._memory = memoryview(bytearray(min(size, _CHUNK)))
        self._given = 0  # bytes passed on
        self._filled = 0  # bytes of the memory

    def place(self, index: int, offset: int, length: int) -> memoryview:
        """Return memory for the next ``length`` bytes. Raises FrameError for a record out of order."""
        if offset != self._given + self._filled or length > self.size - offset:
            raise FrameError(
                f"a record of {length} bytes at {offset} of {self.size} bytes, but "
                f"{self._given + self._filled} arrived"
            )
        if self._filled + length > len(self._memory):
            self._flush()
        if length > len(self._memory):
            self._memory = memoryview(bytearray(length))
        place = self._memory[self._filled : self._filled + length]
        self._filled += length
        return place

    def check(self) -> None:
        """Forward the last piece. Raises FrameError unless all bytes have arrived."""
        self._flush()
        if self._given != self.size:
            raise FrameError(f"{self._given} of {self.size} bytes arrived")

    def _flush(self) -> None:
        if self._filled:
            self._take(self._given, self._memory[: self._filled])
        self._given, self._filled = self._given + self._filled, 0
