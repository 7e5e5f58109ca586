"""The tensor part that ends both streams: version, TensorDesc, then the elements.

uint32 version (0), int32 length of the TensorDesc, the TensorDesc, the elements in C order. The
TensorDesc is a protobuf message: field 1 the element type, field 2 the dims, one varint each. Other
writers may pack the dims or put them first, which protobuf allows; Paddle itself writes neither.
All numbers are little-endian.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import lru_cache
from typing import Final

from paddlelike.core import TENSOR_DTYPES, VarType, numpy_dtype
from paddlelike.errors import FormatError
from paddlelike.formats.elements import TensorPart, check_shape
from paddlelike.formats.sources import Cursor

_MAX_DESC: Final = 12 * 32 + 64  # of 32 dims
_U64: Final = 2**64


def read_part(cursor: Cursor) -> TensorPart:
    """Parse version and TensorDesc.

    Raises
    ------
    FormatError
        They are damaged, or not all elements are there.
    """
    start = cursor.at
    version = cursor.take_int(4, "the tensor version")
    if version != 0:
        raise FormatError(
            f"offset {start}: tensor version {version} ({_format_hex(version)}) where Paddle writes 0"
        )
    size = cursor.take_int(4, "the length of the TensorDesc", signed=True)
    if not 2 <= size <= _MAX_DESC:
        raise FormatError(
            f"offset {cursor.at - 4}: a TensorDesc of {size} bytes; 2 to {_MAX_DESC} are possible"
        )
    at = cursor.at
    try:
        dtype, shape, data_bytes = check_desc(bytes(cursor.take(size, "the TensorDesc")))
    except FormatError as error:
        raise FormatError(f"offset {at}: {error}") from None
    cursor.need(data_bytes, f"the data of {dtype.name} {list(shape)}")
    return TensorPart(dtype, shape, cursor.at, data_bytes)


@lru_cache(maxsize=1024)
def encode_part(dtype: VarType, shape: tuple[int, ...]) -> bytes:
    """Return the bytes of the tensor part that precede the elements."""
    dims = b"".join(b"\x10" + _encode_varint(dim) for dim in shape)
    desc = b"\x08" + _encode_varint(dtype) + dims
    return bytes(4) + len(desc).to_bytes(4, "little") + desc


def decode_desc(desc: bytes) -> tuple[int, tuple[int, ...]]:
    """Return the element type, as Paddle's number, and the dims of a TensorDesc.

    Raises
    ------
    FormatError
        The message is damaged, or names no element type.

    >>> decode_desc(bytes.fromhex("0805 1002 1003"))
    (5, (2, 3))
    """
    dtype: int | None = None
    dims: list[int] = []
    at = 0
    while at < len(desc):
        tag, at = _take_varint(desc, at)
        field, wire = tag >> 3, tag & 7
        if wire == 0:
            value, at = _take_varint(desc, at)
            if field == 1:
                dtype = value
            elif field == 2:
                dims.append(_to_signed(value))
            continue
        part, at = _take_field(desc, at, wire)
        if field == 2 and wire == 2:
            dims.extend(_unpack(part))
        elif field in (1, 2):
            raise FormatError(f"field {field} of the TensorDesc has wire type {wire}")
    if dtype is None:
        raise FormatError("the TensorDesc names no element type")
    return dtype, tuple(dims)


@lru_cache(maxsize=1024)
def check_desc(desc: bytes) -> tuple[VarType, tuple[int, ...], int]:
    """Return the element type, shape and size in bytes that a TensorDesc describes.

    Raises
    ------
    FormatError
        The TensorDesc is damaged, or no file can have such a tensor.
    """
    number, shape = decode_desc(desc)
    dtype = _element_type(number)
    itemsize = numpy_dtype(dtype).itemsize
    check_shape(dtype.name, shape, itemsize)
    return dtype, shape, math.prod(shape) * itemsize


def _element_type(number: int) -> VarType:
    try:
        dtype = VarType(number)
    except ValueError:
        raise FormatError(f"element type {number} is unknown to every Paddle up to 3.3") from None
    if dtype not in TENSOR_DTYPES:
        known = ", ".join(row.name for row in TENSOR_DTYPES)
        raise FormatError(f"element type {number} ({dtype.name}) is not one of {known}")
    return dtype


def _format_hex(version: int) -> str:
    return version.to_bytes(4, "little").hex(" ")


def _encode_varint(value: int) -> bytes:
    value %= _U64  # a negative number takes ten bytes
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def _take_varint(data: bytes, at: int) -> tuple[int, int]:
    value = 0
    for shift in range(0, 70, 7):
        if at >= len(data):
            raise FormatError("the TensorDesc ends inside a number")
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value % _U64, at
    raise FormatError("the TensorDesc holds a number of more than ten bytes")


def _take_field(data: bytes, at: int, wire: int) -> tuple[bytes, int]:
    """Return the bytes of a field that is not a varint, and the offset of the next field."""
    if wire == 2:
        size, at = _take_varint(data, at)
    elif wire in (1, 5):
        size = 8 if wire == 1 else 4
    else:
        raise FormatError(f"the TensorDesc holds wire type {wire}")
    if at + size > len(data):
        raise FormatError("the TensorDesc ends inside a field")
    return data[at : at + size], at + size


def _unpack(part: bytes) -> Iterator[int]:
    at = 0
    while at < len(part):
        value, at = _take_varint(part, at)
        yield _to_signed(value)


def _to_signed(value: int) -> int:
    return value - _U64 if value >= _U64 // 2 else value
