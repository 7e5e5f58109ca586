"""HTTP/2 as raw frames (RFC 9113), for calls that no gRPC library would make."""

from __future__ import annotations

import socket
import struct
from types import TracebackType

__all__ = ["PREFACE", "Connection", "frame", "grpc_message", "literal"]

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, RST_STREAM, SETTINGS, GOAWAY = 0, 1, 3, 4, 7
END_STREAM, END_HEADERS = 1, 4


def frame(kind: int, flags: int, stream: int, payload: bytes = b"", *, length: int | None = None) -> bytes:
    size = len(payload) if length is None else length
    return struct.pack(">I", size)[1:] + struct.pack(">BBI", kind, flags, stream) + payload


def literal(name: str, value: str) -> bytes:
    """A header field that uses no table and no Huffman code (RFC 7541, 6.2.2)."""
    return b"\0" + bytes([len(name)]) + name.encode() + bytes([len(value)]) + value.encode()


def grpc_message(payload: bytes, *, length: int | None = None, compressed: int = 0) -> bytes:
    return struct.pack(">BI", compressed, len(payload) if length is None else length) + payload


class Connection:
    """One connection that has said hello."""

    def __init__(self, port: int, *, window: int = 65535) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=30)
        settings = struct.pack(">HI", 4, window)  # SETTINGS_INITIAL_WINDOW_SIZE
        self.send(PREFACE + frame(SETTINGS, 0, 0, settings))

    def send(self, data: bytes) -> None:
        self.socket.sendall(data)

    def call(
        self,
        verb: str,
        stream: int = 1,
        *fields: tuple[str, str],
        end: bool = False,
        service: str = "paddlelike.PS.v1",
    ) -> None:
        """Send the headers of a call."""
        block = b"".join(
            literal(name, value)
            for name, value in (
                (":method", "POST"),
                (":scheme", "http"),
                (":path", f"/{service}/{verb}"),
                (":authority", "victim"),
                ("content-type", "application/grpc"),
                ("te", "trailers"),
                *fields,
            )
        )
        self.send(frame(HEADERS, END_HEADERS | (END_STREAM if end else 0), stream, block))

    def data(self, stream: int, payload: bytes, *, end: bool = False) -> None:
        self.send(frame(DATA, END_STREAM if end else 0, stream, payload))

    def until_end(self, stream: int) -> int:
        """Read until the server ends stream or connection; the kind of the frame that did (-1: closed)."""
        while True:
            head = self._read(9)
            if head is None:
                return -1
            kind, flags, number = struct.unpack(">BBI", head[3:])
            self._read(int.from_bytes(head[:3], "big"))
            if kind == GOAWAY or (number == stream and (kind == RST_STREAM or flags & END_STREAM)):
                return int(kind)

    def _read(self, size: int) -> bytes | None:
        data = b""
        while len(data) < size:
            more = self.socket.recv(size - len(data))
            if not more:
                return None
            data += more
        return data

    def __enter__(self) -> Connection:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.socket.close()
