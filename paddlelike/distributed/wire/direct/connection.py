"""One end of a direct connection: sends and receives the frames of calls, with arrays uncopied."""

from __future__ import annotations

import contextlib
import socket
import struct
from collections.abc import Callable, Iterable, Sequence
from typing import Final

from paddlelike.distributed.wire.frames import CHUNK, MAX_HEADER, Header, decode_header, encode_header
from paddlelike.distributed.wire.parts import Into, Item, Note, Part, Receiver
from paddlelike.errors import FrameError

MORE, LAST, ERROR = 0, 1, 2  # kinds of frames

_PREFIX: Final = struct.Struct("<BIIQ")
_RECORD: Final = struct.Struct("<IQI")
_LARGEST: Final = 8 << 20  # bytes of arrays in a frame
_MOST: Final = 500  # records in a frame; a system call takes 1,024 buffers
_BUFFER: Final = 4096  # bytes that are received ahead: a call without arrays takes one system call
_IDLE_SECONDS, _PROBE_SECONDS, _PROBES = 10, 5, 1  # a peer whose machine is gone is noticed after 15 s

Buffer = bytes | memoryview


class Frame:
    """The header of a frame: its kind, its text, and the records that follow."""

    __slots__ = ("kind", "records", "text")

    def __init__(self, kind: int, text: bytes, records: list[tuple[int, int, int]]) -> None:
        self.kind, self.text, self.records = kind, text, records

    def decode(self) -> Header:
        """Decode the text as a header. Raises FrameError for other text."""
        return decode_header(self.text)


class Connection:
    """A connected socket. Its methods raise OSError and EOFError where the connection is lost."""

    def __init__(self, sock: socket.socket) -> None:
        self.socket = sock
        self._memory = memoryview(bytearray(_BUFFER))
        self._start = self._end = 0  # of the bytes received ahead
        self._timeout = 0.0
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        for name, value in (
            ("TCP_KEEPIDLE", _IDLE_SECONDS),
            ("TCP_KEEPINTVL", _PROBE_SECONDS),
            ("TCP_KEEPCNT", _PROBES),
            ("TCP_USER_TIMEOUT", 1000 * (_IDLE_SECONDS + _PROBE_SECONDS)),  # for bytes under way
        ):
            if hasattr(socket, name):
                sock.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
        sock.settimeout(None)

    def limit_waits(self, seconds: float) -> None:
        """Let every wait for the peer end after ``seconds`` with BlockingIOError.

        The kernel keeps this limit; Python's own would take another system call for each send and receive.
        """
        if seconds != self._timeout:
            self._limit(socket.SO_RCVTIMEO, seconds)
            self.limit_sends(seconds)
            self._timeout = seconds

    def limit_sends(self, seconds: float) -> None:
        """Let a send that the peer does not read end after ``seconds`` with BlockingIOError."""
        self._limit(socket.SO_SNDTIMEO, seconds)

    def _limit(self, option: int, seconds: float) -> None:
        whole = max(int(seconds), 0)
        value = struct.pack("@ll", whole, max(int((seconds - whole) * 1e6), 1))
        self.socket.setsockopt(socket.SOL_SOCKET, option, value)

    def close(self) -> None:
        """Close the connection; a thread that waits in it gets an error."""
        with contextlib.suppress(OSError):
            self.socket.shutdown(socket.SHUT_RDWR)
        self.socket.close()

    # Sending

    def send(self, header: Header, items: Iterable[Item] = (), *, kind: int = LAST) -> None:
        """Send a header and parts; the last frame has the kind ``kind``.

        Parts travel in frames of up to 8 MiB. A Flush sends all data so far at once.
        """
        text = encode_header(header)
        batch: list[Part] = []
        size = 0
        for item in items:
            if isinstance(item, Part):
                for part in _split(item):
                    if batch and (size + len(part.data) > _LARGEST or len(batch) == _MOST):
                        self.send_frame(MORE, text, batch)
                        text, batch, size = b"", [], 0
                    batch.append(part)
                    size += len(part.data)
                continue
            if batch or text or not isinstance(item, Note):
                self.send_frame(MORE, text, batch)
                text, batch, size = b"", [], 0
            if isinstance(item, Note):
                text = encode_header(item.header)
        self.send_frame(kind, text, batch)

    def send_frame(self, kind: int, text: bytes, parts: list[Part]) -> None:
        """Send one frame."""
        size = 0
        records = []
        buffers: list[Buffer] = [b""]
        for index, offset, data in parts:
            length = len(data)
            size += length
            records.append(_RECORD.pack(index, offset, length))
            buffers.append(data)
        buffers[0] = b"".join((_PREFIX.pack(kind, len(text), len(parts), size), text, *records))
        self._send_all(buffers, len(buffers[0]) + size)

    def _send_all(self, buffers: list[Buffer], size: int) -> None:
        """Send buffers of ``size`` bytes in all."""
        sent = self.socket.sendmsg(buffers)
        left = size - sent
        rest: Sequence[Buffer] = buffers
        while left:  # a signal, or a limit of the system
            rest = _drop(rest, sent)
            sent = self.socket.sendmsg(rest)
            left -= sent

    # Receiving

    def receive_frame(self) -> Frame:
        """Return the next frame; :meth:`receive_records` then reads its records.

        Raises FrameError for a frame with an impossible header.
        """
        kind, length, count, size = _PREFIX.unpack(self._take(_PREFIX.size))
        if kind > ERROR or length > MAX_HEADER or count > _MOST or size > _LARGEST:
            raise FrameError(
                f"the frame has kind {kind}, {length} bytes of text, {count} records, {size} bytes"
            )
        text = bytes(self._take(length)) if length else b""
        records = list(_RECORD.iter_unpack(self._take(count * _RECORD.size))) if count else []
        if sum(record[2] for record in records) != size:
            raise FrameError(f"the sizes of {count} records do not add up to the {size} bytes that follow")
        return Frame(kind, text, records)

    def receive_records(self, frame: Frame, receiver: Receiver | None) -> None:
        """Read the bytes of a frame's records into their places.

        Raises FrameError for records that the receiver does not take; nothing more can be read then.
        """
        if not frame.records:
            return
        if receiver is None:
            raise FrameError(f"{len(frame.records)} records came with a call that takes none")
        if isinstance(receiver, Into):  # its places do not depend on earlier records
            self._fill([_find_place(receiver, record) for record in frame.records])
        else:
            for record in frame.records:
                self._fill([_find_place(receiver, record)])

    def skip_records(self, frame: Frame) -> None:
        """Read the bytes of a frame's records and discard them."""
        left = sum(record[2] for record in frame.records)
        memory = memoryview(bytearray(min(left, CHUNK)))
        while left:
            piece = memory[: min(left, CHUNK)]
            self._fill([piece])
            left -= len(piece)

    def receive(self, begin: Callable[[Frame], Receiver | None]) -> int:
        """Read an answer and return its last kind. ``begin`` turns the first frame into the receiver."""
        frame = self.receive_frame()
        receiver = begin(frame)
        while True:
            self.receive_records(frame, receiver)
            if frame.kind != MORE:
                return frame.kind
            frame = self.receive_frame()

    def _take(self, count: int) -> memoryview:
        """Return the next ``count`` bytes, which are valid until the next call."""
        if count > _BUFFER:
            memory = memoryview(bytearray(count))
            self._fill([memory])
            return memory
        if self._end - self._start < count:
            if self._start:
                ahead = bytes(self._memory[self._start : self._end])
                self._memory[: len(ahead)] = ahead
                self._start, self._end = 0, len(ahead)
            while self._end < count:
                got = self._receive_into(self._memory[self._end :])
                if not got:
                    raise EOFError("the connection was closed")
                self._end += got
        found = self._memory[self._start : self._start + count]
        self._start += count
        return found

    def _fill(self, places: list[memoryview]) -> None:
        """Fill memory with bytes, first with those already received."""
        at = 0
        while self._start < self._end and at < len(places):
            place = places[at]
            count = min(len(place), self._end - self._start)
            place[:count] = self._memory[self._start : self._start + count]
            self._start += count
            if count < len(place):
                places[at] = place[count:]
            else:
                at += 1
        self._receive_all([place for place in places[at:] if len(place)])

    def _receive_into(self, place: memoryview) -> int:
        """Receive some bytes into memory; return their number, 0 at the end of the connection."""
        return self.socket.recv_into(place)

    def _receive_all(self, places: list[memoryview]) -> None:
        """Receive bytes until the places are full."""
        rest = places
        while rest:
            if len(rest) == 1:
                got = self.socket.recv_into(rest[0], 0, socket.MSG_WAITALL)
            else:
                got = self.socket.recvmsg_into(rest, 0, socket.MSG_WAITALL)[0]
            if not got:
                raise EOFError("the connection was closed")
            rest = _drop(rest, got)


def _split(part: Part) -> Iterable[Part]:
    if len(part.data) <= _LARGEST:
        return (part,)
    index, offset, data = part
    return (Part(index, offset + at, data[at : at + _LARGEST]) for at in range(0, len(data), _LARGEST))


def _drop(buffers: Sequence[Buffer], count: int) -> list[memoryview]:
    """Return the buffers without their first ``count`` bytes."""
    for at, buffer in enumerate(buffers):
        if count < len(buffer):
            return [memoryview(one) for one in (memoryview(buffer)[count:], *buffers[at + 1 :])]
        count -= len(buffer)
    return []


def _find_place(receiver: Receiver, record: tuple[int, int, int]) -> memoryview:
    index, offset, length = record
    place = receiver.place(index, offset, length)
    if len(place) != length:
        raise FrameError(f"a record has {length} bytes, but its memory has {len(place)}")
    return place
