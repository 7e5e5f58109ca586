"""Where the bytes of answers go whose size is not known before."""

from __future__ import annotations

from paddlelike.errors import FrameError

__all__ = ["Pieces"]


class Pieces:
    """A receiver of one array of unknown length.

    Parameters
    ----------
    most
        Bytes that are taken at most.

    >>> pieces = Pieces(10)
    >>> pieces.place(0, 0, 3)[:] = b"abc"
    >>> pieces.place(0, 3, 2)[:] = b"de"
    >>> pieces.joined()
    b'abcde'
    """

    def __init__(self, most: int = 0) -> None:
        self._most = most
        self._pieces: list[bytearray] = []
        self._size = 0

    def place(self, index: int, offset: int, length: int) -> memoryview:
        """Memory for the next piece."""
        if offset != self._size or offset + length > self._most:
            raise FrameError(
                f"a record of {length} bytes at {offset} of array {index}; {self._size} bytes came"
            )
        self._size += length
        self._pieces.append(bytearray(length))
        return memoryview(self._pieces[-1])

    def check(self) -> None:
        """Whatever came is whole."""

    def joined(self) -> bytes:
        """All of it."""
        return b"".join(self._pieces)
