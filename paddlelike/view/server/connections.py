"""Connections of a loopback server: how many there may be, and the time limit of requests."""

from __future__ import annotations

import contextlib
import io
import re
import socket
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from paddlelike.foundation.locks import Lock

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

MOST: Final = 32  # connections with the token, and as many without it so far
_MOST_FIELDS: Final = 100
_MOST_BYTES: Final = 1 << 16  # of all fields
_FIELD: Final = re.compile(rb"[!#$%&'*+.^_`|~0-9A-Za-z-]+:[^\x00\r\n]*\r?\n")  # RFC 9110, 5.1: no blank


class Places:
    """The slots of connections; some are reserved for clients that have shown the token.

    A new connection takes the slot of the oldest one that has not shown the token. So silent and slow
    connections, however many, cannot block others.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._strangers: dict[socket.socket, None] = {}  # in the order in which they came
        self._owners: set[socket.socket] = set()

    def enter(self, connection: socket.socket) -> None:
        """Admit a connection; if necessary, it replaces the oldest one without the token."""
        with self._lock.hold():
            if len(self._strangers) >= MOST:
                oldest = next(iter(self._strangers))
                del self._strangers[oldest]
                with contextlib.suppress(OSError):  # it has gone
                    oldest.shutdown(socket.SHUT_RDWR)
            self._strangers[connection] = None

    def admit(self, connection: socket.socket) -> bool:
        """Record that a connection has shown the token; return whether it may stay for another request."""
        with self._lock.hold():
            if connection in self._owners:
                return True
            self._strangers.pop(connection, None)
            if len(self._owners) >= MOST:
                return False
            self._owners.add(connection)
            return True

    def leave(self, connection: socket.socket) -> None:
        """Release the slot of a connection."""
        with self._lock.hold():
            self._strangers.pop(connection, None)
            self._owners.discard(connection)


class TimedReader(io.RawIOBase):
    """Reads a connection until a deadline for the whole request, not for each read."""

    def __init__(self, connection: socket.socket, seconds: float, clock: Callable[[], float]) -> None:
        self._connection = connection
        self._seconds = seconds
        self._clock = clock
        self._end = clock() + seconds

    def start(self) -> None:
        """Begin a request and its time limit."""
        self._end = self._clock() + self._seconds

    def readable(self) -> bool:
        return True

    def readinto(self, target: WriteableBuffer) -> int:
        self._connection.settimeout(self._get_rest())
        count = self._connection.recv_into(target)
        self._get_rest()
        return count

    def _get_rest(self) -> float:
        rest = self._end - self._clock()
        if rest <= 0:
            raise TimeoutError(f"the request was not complete after {self._seconds:g} s")
        return rest


def read_fields(file: io.BufferedIOBase) -> bytes:
    """Return the header fields of a request, up to the empty line.

    Raises
    ------
    ValueError
        A line is not a field, so that programs would read it differently; or there are too many.
    """
    lines: list[bytes] = []
    left = _MOST_BYTES
    while True:
        line = file.readline(left + 1)
        lines.append(line)
        left -= len(line)
        if line in (b"\r\n", b"\n", b""):
            return b"".join(lines)
        if left < 0 or len(lines) > _MOST_FIELDS:
            raise ValueError(f"the header has more than {_MOST_FIELDS} fields, or {_MOST_BYTES} bytes")
        if not _FIELD.fullmatch(line):
            raise ValueError(f"{line[:60]!r} is not a header field")
