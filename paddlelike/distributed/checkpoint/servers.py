"""The servers of a job as a save on trainer 0 sees them, and where the bytes go that come from them."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, Protocol

import numpy as np

from paddlelike.core.scope import global_scope
from paddlelike.errors import FrameError
from paddlelike.framework.graph.program import Program

__all__ = ["OneByOne", "Servers", "Sink", "Wanted", "servers_of"]

Array = np.ndarray[Any, Any]
Wanted = tuple[str, str]  # endpoint, name of the variable there

_CHUNK: Final = 4 << 20  # bytes that are written at a time; at least as much as comes at a time


class Servers(Protocol):
    """What a save asks of the servers. They stand still between two steps of synchronous training."""

    def pull(self, wanted: Sequence[Wanted]) -> list[Array]:
        """Whole variables of servers, in arrays of their own."""

    def stream(self, wanted: Wanted, sink: Callable[[], Sink]) -> None:
        """The bytes of one variable into a sink; into another one when the call has to be repeated."""

    def rows(self, wanted: Wanted) -> Array:
        """The ids that a server's shard of a table holds, (n,) int64, in the order of its rows."""

    def write(self, directory: str, names: Sequence[str]) -> dict[str, Mapping[str, Any]]:
        """Have every server write its rows of these files of a directory; returns their answers by endpoint.

        See :func:`paddlelike.distributed.checkpoint.serve.write`.
        Without names they only report their position.
        """


class Sink:
    """A receiver that hands on what comes in pieces, in order, with the memory of one piece.

    Parameters
    ----------
    size
        Bytes that are expected.
    take
        Gets the offset and the bytes of each piece, whose memory is used again afterwards.

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
        self._given = 0  # bytes handed on
        self._filled = 0  # bytes of the memory

    def place(self, index: int, offset: int, length: int) -> memoryview:
        """The memory of the next ``length`` bytes."""
        if offset != self._given + self._filled or length > self.size - offset:
            raise FrameError(
                f"{length} bytes at {offset} of {self.size}, of which {self._given + self._filled} came"
            )
        if self._filled + length > len(self._memory):
            self._hand_on()
        if length > len(self._memory):
            self._memory = memoryview(bytearray(length))
        place = self._memory[self._filled : self._filled + length]
        self._filled += length
        return place

    def check(self) -> None:
        """Hand on the last piece. Raises FrameError unless all bytes have come."""
        self._hand_on()
        if self._given != self.size:
            raise FrameError(f"{self._given} of {self.size} bytes came")

    def _hand_on(self) -> None:
        if self._filled:
            self._take(self._given, self._memory[: self._filled])
        self._given, self._filled = self._given + self._filled, 0


class OneByOne:
    """Servers that are asked one thing at a time: several threads write files, a trainer has one voice."""

    def __init__(self, servers: Servers) -> None:
        self._servers = servers
        self._lock = threading.Lock()

    def pull(self, wanted: Sequence[Wanted]) -> list[Array]:
        with self._lock:
            return self._servers.pull(wanted)

    def stream(self, wanted: Wanted, sink: Callable[[], Sink]) -> None:
        with self._lock:
            self._servers.stream(wanted, sink)

    def rows(self, wanted: Wanted) -> Array:
        with self._lock:
            return self._servers.rows(wanted)

    def write(self, directory: str, names: Sequence[str]) -> dict[str, Mapping[str, Any]]:
        with self._lock:
            return self._servers.write(directory, names)


def servers_of(executor: Any, program: Program) -> Servers:
    """The servers that a trainer's program works with; connects to them if ``executor`` has not yet."""
    from paddlelike.distributed.client.connection import Connection

    connection = executor._remote.open()
    assert isinstance(connection, Connection)
    return OneByOne(connection.trainer(global_scope(), program.global_block()))
