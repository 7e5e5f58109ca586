"""Direct connections over TLS with the certificates of gRPC; both sides show a certificate."""

from __future__ import annotations

import contextlib
import socket
import ssl
import tempfile
from collections.abc import Iterator
from typing import Final

from paddlelike.distributed.wire.direct.connection import Buffer, Connection
from paddlelike.distributed.wire.security import Tls

_PIECE: Final = 1 << 18  # bytes that are encrypted and sent at a time, or received
_ENCRYPTED: Final = (1 << 14) + 512  # bytes of an encrypted record at most
_RECORD: Final = 1 << 14  # bytes of a record of TLS at most; smaller buffers are joined


def make_client_context(tls: Tls) -> ssl.SSLContext:
    """Return the settings of a client: the server's certificate must name the host of the endpoint.

    Raises ssl.SSLError for texts that are not certificates.
    """
    return _load(ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT), tls)


def make_server_context(tls: Tls) -> ssl.SSLContext:
    """Return the settings of a server: clients must have a certificate of the job's authority.

    Raises ssl.SSLError for texts that are not certificates.
    """
    context = _load(ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), tls)
    context.verify_mode = ssl.CERT_REQUIRED
    return context


def _load(context: ssl.SSLContext, tls: Tls) -> ssl.SSLContext:
    context.load_verify_locations(cadata=tls.authority.decode("ascii", "replace"))
    with tempfile.NamedTemporaryFile() as file:  # of mode 600; Python reads keys only from files
        file.write(tls.certificate + b"\n" + tls.key)
        file.flush()
        context.load_cert_chain(file.name)
    return context


class TlsConnection(Connection):
    """A connection over TLS. :meth:`shake_hands` comes first.

    OpenSSL works on memory, not on the socket. So time limits and closing by another thread work as for other
    connections, and one system call brings many records of TLS.
    """

    def __init__(self, sock: socket.socket, context: ssl.SSLContext, *, server_name: str | None) -> None:
        super().__init__(sock)
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._encrypted = memoryview(bytearray(_PIECE))
        self._tls = context.wrap_bio(
            self._incoming, self._outgoing, server_side=server_name is None, server_hostname=server_name
        )

    def shake_hands(self) -> None:
        """Agree on keys with the peer. Raises OSError if one side refuses the other's certificate."""
        while True:
            try:
                self._tls.do_handshake()
                break
            except ssl.SSLWantReadError:
                self._send_encrypted()
                self._feed(0)
            except ssl.SSLError:
                with contextlib.suppress(OSError):
                    self._send_encrypted()  # it says why
                raise
        self._send_encrypted()

    def _send_all(self, buffers: list[Buffer], size: int) -> None:
        for piece in _gather(buffers):
            self._tls.write(piece)
            self._send_encrypted()

    def _send_encrypted(self) -> None:
        if self._outgoing.pending:
            self.socket.sendall(self._outgoing.read())

    def _receive_into(self, place: memoryview) -> int:
        return self._read(place, 0)

    def _receive_all(self, places: list[memoryview]) -> None:
        left = sum(map(len, places))
        for place in places:
            while len(place):
                got = self._read(place, left)
                place, left = place[got:], left - got

    def _read(self, place: memoryview, left: int) -> int:
        """Decrypt some bytes into memory. At least ``left`` bytes are still to come."""
        while True:
            try:
                got = self._tls.read(len(place), place)
            except ssl.SSLWantReadError:
                self._feed(left)
                continue
            if not got:
                raise EOFError("the connection was closed")
            return int(got)

    def _feed(self, left: int) -> None:
        """Receive encrypted bytes, at least as many as ``left`` decrypted bytes need.

        Up to one record of them may already be inside OpenSSL.
        """
        sure = min(left - self._incoming.pending - _ENCRYPTED, _PIECE)
        if sure > 0:
            got = self.socket.recv_into(self._encrypted, sure, socket.MSG_WAITALL)
        else:
            got = self.socket.recv_into(self._encrypted)
        if not got:
            raise EOFError("the connection was closed")
        self._incoming.write(self._encrypted[:got])


def _gather(buffers: list[Buffer]) -> Iterator[Buffer]:
    """Yield the bytes of buffers: small ones together, large ones in pieces, which are not copied."""
    small: list[Buffer] = []
    length = 0
    for buffer in buffers:
        if len(buffer) < _RECORD:
            small.append(buffer)
            length += len(buffer)
        if small and (length >= _RECORD or len(buffer) >= _RECORD):
            yield b"".join(small)
            small, length = [], 0
        if len(buffer) >= _RECORD:
            yield from (buffer[start : start + _PIECE] for start in range(0, len(buffer), _PIECE))
    if small:
        yield b"".join(small)
