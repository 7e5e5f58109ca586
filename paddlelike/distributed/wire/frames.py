"""The encoding of messages: a header in JSON and records of array bytes. No sockets, no threads.

A request, and likewise an answer, is either one whole message or a stream of messages::

    whole    u32 header length | header | body
    stream   u32 header length | header,  then one body per message; the last message is an end
    body     u32 n | n x (u32 array index, u64 byte offset, u32 byte length) | the bytes of the n records
    end      u32 0 | u64 the bytes of all records of this stream

Integers are little-endian. The header is a JSON object of at most 64 KiB in UTF-8. A whole message without
records has an end as its body.
"""

from __future__ import annotations

import itertools
import json
import math
import re
import struct
from collections.abc import Iterable, Iterator
from typing import Any, Final, NoReturn

from paddlelike.distributed.wire.parts import Part, Receiver
from paddlelike.errors import FrameError

WHOLE: Final = 1 << 20  # bytes of arrays in one message; a call with more is streamed
CHUNK: Final = 1 << 19  # bytes of arrays in a message of a stream: as fast as 1 << 20, with half the memory
MAX_HEADER: Final = 1 << 16
MAX_MESSAGE: Final = 8 << 20  # what a receiver accepts from the network
_MAX_RECORDS: Final = 1 << 14  # in one message
_MAX_DEPTH: Final = 16

#: Matches every JSON number that can be too large. Checking each number takes longer than all other checks.
_LARGE_NUMBER: Final = re.compile(rb"[:,\[]\s*(-[0-9]{19}|[0-9]{20}|-?[0-9.]+[eE]\+?[0-9]{3})")
_LENGTH: Final = struct.Struct("<I")
_RECORD: Final = struct.Struct("<IQI")
_END: Final = struct.Struct("<IQ")

Header = dict[str, Any]


def messages(header: Header, parts: Iterable[Part]) -> Iterator[bytes]:
    """Yield header and parts as one whole message, or as a stream if they are more than ``WHOLE`` bytes.

    Large parts are split, small ones share a body. The bytes of a part are read when its message is yielded.
    Raises FrameError for a header that is not plain JSON or too large.

    >>> few = [Part(0, 0, memoryview(b"abc")), Part(1, 0, memoryview(b"d"))]
    >>> [len(message) for message in messages({}, few)]
    [46]
    >>> [len(message) for message in messages({}, [Part(0, 0, memoryview(bytes(WHOLE + 1)))])]
    [6, 524308, 524308, 21, 12]
    """
    ahead: list[Part] = []
    size = 0
    rest = iter(parts)
    for part in rest:
        ahead.append(part)
        size += len(part.data)
        if size > WHOLE or len(ahead) > _MAX_RECORDS:
            break
    else:
        _, pieces = next(_bodies(ahead, WHOLE), (0, [_END.pack(0, 0)]))
        yield b"".join((_first(header), *pieces))
        return
    yield _first(header)
    total = 0
    for size, pieces in _bodies(itertools.chain(ahead, rest), CHUNK):
        total += size
        yield b"".join(pieces)
    yield _END.pack(0, total)


def encode_header(header: Header) -> bytes:
    """Return a header as JSON. Raises FrameError for one that is not plain JSON or too large.

    >>> encode_header({"round": 3})
    b'{"round":3}'
    """
    try:
        text = _ENCODER.encode(header).encode("ascii")
    except (TypeError, ValueError, RecursionError) as error:
        raise FrameError(f"the header is not plain JSON: {error}") from error
    if len(text) > MAX_HEADER:
        raise FrameError(f"the header has {len(text)} bytes; at most {MAX_HEADER} are allowed")
    return text


def _first(header: Header) -> bytes:
    text = encode_header(header)
    return _LENGTH.pack(len(text)) + text


def _bodies(parts: Iterable[Part], limit: int) -> Iterator[tuple[int, list[bytes | memoryview]]]:
    """Yield bodies of at most ``limit`` bytes, each as its record bytes and the pieces to join."""
    records: list[bytes] = []
    pieces: list[memoryview] = []
    size = 0
    for index, offset, data in parts:
        at, length = 0, len(data)
        while at < length:
            taken = min(length - at, limit - size)
            records.append(_RECORD.pack(index, offset + at, taken))
            pieces.append(data[at : at + taken])
            at += taken
            size += taken
            if size == limit or len(records) == _MAX_RECORDS:
                yield size, [_LENGTH.pack(len(records)), *records, *pieces]
                records, pieces, size = [], [], 0
    if records:
        yield size, [_LENGTH.pack(len(records)), *records, *pieces]


def split(message: bytes) -> tuple[Header, memoryview]:
    """Return the header of a first message, and the body after it, which is empty if a stream follows.

    Raises FrameError for a message that is too short, and for a header that is not a JSON object.
    """
    if len(message) < _LENGTH.size:
        raise FrameError(f"a message of {len(message)} bytes is too short for the length of its header")
    (length,) = _LENGTH.unpack_from(message)
    if length > MAX_HEADER:
        raise FrameError(f"the header has {length} bytes; at most {MAX_HEADER} are allowed")
    end = _LENGTH.size + length
    if end > len(message):
        raise FrameError(f"the header of {length} bytes reaches beyond its message of {len(message)}")
    return decode_header(message[_LENGTH.size : end]), memoryview(message)[end:]


class Intake:
    """Copies the records of one call to the places that its receiver gives.

    Parameters
    ----------
    receiver
        Gives the place of each record; None where the call carries no records.
    """

    def __init__(self, receiver: Receiver | None) -> None:
        self._receiver = receiver
        self.received = 0  # bytes of records
        self.ended = False

    def take(self, body: bytes | memoryview) -> None:
        """Copy the records of one body, or record the end of the stream.

        Raises FrameError for a malformed body; nothing of a bad record is copied.
        """
        if self.ended:
            raise FrameError("a message comes after the end of its stream")
        view = memoryview(body)
        if len(view) < _LENGTH.size:
            raise FrameError(f"a body of {len(view)} bytes is too short for its number of records")
        (count,) = _LENGTH.unpack_from(view)
        if count == 0:
            self._end(view)
            return
        at = _LENGTH.size + count * _RECORD.size
        if count > _MAX_RECORDS or at > len(view):
            raise FrameError(
                f"the body of {len(view)} bytes announces {count} records; at most {_MAX_RECORDS} are allowed"
            )
        records = list(_RECORD.iter_unpack(view[_LENGTH.size : at]))
        announced = sum(record[2] for record in records)
        if announced != len(view) - at:
            raise FrameError(f"the records have {announced} bytes in all, but {len(view) - at} bytes follow")
        if self._receiver is None:
            raise FrameError(f"{count} records came with a call that takes none")
        for index, offset, length in records:
            place = self._receiver.place(index, offset, length)
            if len(place) != length:
                raise FrameError(f"a record has {length} bytes, but its memory has {len(place)}")
            place[:] = view[at : at + length]
            at += length
        self.received += announced

    def finish(self) -> None:
        """Raise FrameError unless the stream has ended."""
        if not self.ended:
            raise FrameError(f"the stream broke off after {self.received} bytes")

    def _end(self, view: memoryview) -> None:
        if len(view) != _END.size:
            raise FrameError(f"the end frame has {len(view)} bytes, expected {_END.size}")
        _, total = _END.unpack(view)
        if total != self.received:
            raise FrameError(f"{total} bytes were sent, {self.received} arrived")
        self.ended = True


def decode_header(text: bytes) -> Header:
    """Return the header in a text of at most ``MAX_HEADER`` bytes. Raises FrameError unless it is valid.

    >>> decode_header(b'{"round":3}')
    {'round': 3}
    """
    decoder = _CAREFUL if _LARGE_NUMBER.search(text) else _DECODER
    try:
        decoded = text.decode("utf-8")
        header = decoder.decode(decoded)
        if text.count(b"{") + text.count(b"[") > _MAX_DEPTH:
            _check_depth(header)
        if b"\\u" in text:
            json.dumps(header, ensure_ascii=False).encode("utf-8")  # half a surrogate pair is not text
    except FrameError:
        raise
    except (ValueError, RecursionError) as error:
        raise FrameError(f"the header is not JSON: {error}") from error
    if not isinstance(header, dict):
        raise FrameError(f"the header is a {type(header).__name__} instead of an object")
    return header


def _check_depth(header: object) -> None:
    level = [header]
    for _ in range(_MAX_DEPTH):
        inner: list[Any] = []
        for value in level:
            if isinstance(value, dict):
                inner.extend(value.values())
            elif isinstance(value, list):
                inner.extend(value)
        if not inner:
            return
        level = inner
    raise FrameError(f"the header is nested deeper than {_MAX_DEPTH} levels")


def _unique(pairs: list[tuple[str, Any]]) -> Header:
    header = dict(pairs)
    if len(header) != len(pairs):
        raise FrameError("the header has the same key twice")
    return header


def _integer(text: str) -> int:
    if len(text) > 20 or not -(1 << 63) <= int(text) < 1 << 64:
        raise FrameError(f"the header has the integer {text[:24]}..., which does not fit 64 bits")
    return int(text)


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise FrameError(f"the header has the number {text[:24]}, which is not finite")
    return number


def _constant(text: str) -> NoReturn:
    raise FrameError(f"the header has {text}, which JSON does not have")


_ENCODER: Final = json.JSONEncoder(allow_nan=False, separators=(",", ":"))
_DECODER: Final = json.JSONDecoder(object_pairs_hook=_unique, parse_constant=_constant)
_CAREFUL: Final = json.JSONDecoder(
    object_pairs_hook=_unique, parse_constant=_constant, parse_int=_integer, parse_float=_finite
)
