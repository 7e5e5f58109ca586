"""Paddle's stream of one dense variable: the bytes of a per-variable file.

===============  =======================================================================
uint32           version of the LoD part, always 0
uint64           number of LoD levels
per level        uint64 length of the level in bytes, then that many bytes of uint64 offsets
the tensor part  see :mod:`paddlelike.formats.paddle.tensor_desc`
===============  =======================================================================

Little-endian, without padding, magic number or checksum. For example, ``float32 [2, 3]``::

    00000000 00000000 00000000          LoD version 0, 0 levels
    00000000 06000000                   tensor version 0, TensorDesc of 6 bytes
    08 05  10 02  10 03                 element type 5 (FP32), dim 2, dim 3
    ...                                 24 bytes of data

Bytes after the tensor are allowed, because the files of a parameter server have some; they are counted
in ``Header.surplus``. Other damage that Paddle accepts (cut data, offsets that do not fit the rows) is an
error here.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence
from functools import lru_cache
from typing import Final, NamedTuple

import numpy as np

from paddlelike.core import Array, LoDTensor, VarType, convert_dtype, dtype_row, numpy_dtype
from paddlelike.errors import FormatError
from paddlelike.formats import elements
from paddlelike.formats.elements import TensorPart
from paddlelike.formats.paddle import tensor_desc
from paddlelike.formats.sources import Buffer, Cursor, Readable, Source, as_source

_PLAIN: Final = struct.Struct("<IQIi")  # version, no LoD levels, tensor version, TensorDesc length
_MAX_FRONT: Final = 512  # bytes of a header that is remembered


class Header(NamedTuple):
    """The header of a stream: type and LoD of the tensor, and the position of its elements in the source."""

    dtype: VarType
    shape: tuple[int, ...]
    lod: tuple[tuple[int, ...], ...]
    data_offset: int
    data_bytes: int
    surplus: int  # bytes of the source after the tensor

    @property
    def end(self) -> int:
        """The offset of the first byte after the tensor."""
        return self.data_offset + self.data_bytes

    def locate_elements(self, start: int, count: int) -> tuple[int, int]:
        """Return offset and size in bytes of ``count`` elements from element ``start``.

        Raises
        ------
        FormatError
            The tensor has fewer elements.
        """
        size = numpy_dtype(self.dtype).itemsize
        offset = self.data_offset + start * size
        if start < 0 or count < 0 or offset + count * size > self.end:
            raise FormatError(
                f"elements {start} to {start + count} were requested, but the tensor has "
                f"{math.prod(self.shape)} ({self.dtype.name} {list(self.shape)})"
            )
        return offset, count * size

    def locate_rows(self, start: int, stop: int) -> tuple[int, int]:
        """Return offset and size in bytes of the rows from ``start`` up to ``stop``, exclusive.

        Raises
        ------
        FormatError
            The tensor has fewer rows.
        """
        row = math.prod(self.shape[1:])
        return self.locate_elements(start * row, (stop - start) * row)


def read_header(source: Readable, *, offset: int = 0) -> Header:
    """Parse the header of the stream that begins at ``offset``; the elements are not read, only counted.

    Raises
    ------
    FormatError
        The stream is damaged. The error names the offset and, if the bytes have another known format,
        that format.

    >>> read_header(b"".join(encode(np.zeros((2, 3), "float32")))).shape
    (2, 3)
    """
    if type(source) is bytes:
        found = find_plain(source, offset)
        if found is not None:
            return Header(*found)
    return _parse(Cursor(as_source(source), offset))


Plain = tuple[VarType, tuple[int, ...], tuple[()], int, int, int]


def find_plain(data: bytes, offset: int = 0) -> Plain | None:
    """Return the fields of the :class:`Header` of a stream without LoD; None if it has a LoD or is damaged.

    >>> find_plain(b"".join(encode(np.zeros((2, 3), "float32"))))[1:]
    ((2, 3), (), 26, 24, 0)
    """
    start = offset + _PLAIN.size
    start += int.from_bytes(data[start - 4 : start], "little")
    facts = _decode_plain(data[offset:start]) if start - offset <= _MAX_FRONT else None
    if facts is None:
        return None
    dtype, shape, nbytes = facts
    surplus = len(data) - start - nbytes
    return (dtype, shape, (), start, nbytes, surplus) if surplus >= 0 else None


def encode_header(dtype: object, shape: Sequence[int], lod: Sequence[Sequence[int]] = ()) -> bytes:
    """Return the bytes that precede the elements.

    >>> encode_header("float32", (2, 3)).hex(" ", -4)
    '00000000 00000000 00000000 00000000 06000000 08051002 1003'
    """
    levels = [np.asarray(level, "<u8").tobytes() for level in lod]
    front = bytes(4) + len(levels).to_bytes(8, "little")
    front += b"".join(len(level).to_bytes(8, "little") + level for level in levels)
    return front + tensor_desc.encode_part(dtype_row(dtype).var_type, tuple(shape))


def encode(value: LoDTensor | Array, *, dtype: VarType | None = None) -> list[Buffer]:
    """Return the stream as buffers: the header, then the array's own memory, not copied.

    ``dtype`` is the element type if the array does not determine it; uint16 is saved as BF16.

    Raises
    ------
    FormatError
        The tensor holds no array.
    """
    array, lod = (value.held_array, value.lod()) if isinstance(value, LoDTensor) else (value, [])
    if array is None:
        raise FormatError("the tensor holds no array: there is nothing to encode")
    header = encode_header(convert_dtype(array.dtype) if dtype is None else dtype, array.shape, lod)
    return [header, elements.view_elements(array)]


def read(source: Readable, *, into: Array | None = None, offset: int = 0) -> LoDTensor:
    """Read the stream that begins at ``offset``, into the array ``into`` if that is given.

    Raises
    ------
    FormatError
        The stream is damaged, or does not fit ``into``.
    """
    cursor = Cursor(as_source(source), offset)
    header = _parse(cursor)
    return _tensor(header, elements.read_elements(cursor, _part(header), into))


def read_data(source: Source, header: Header) -> LoDTensor:
    """Read the elements that ``header`` describes.

    Raises
    ------
    FormatError
        The source became shorter.
    """
    return _tensor(header, elements.read_elements(source, _part(header), None))


def read_slice(
    source: Source, header: Header, *, start: int, shape: Sequence[int], into: Array | None = None
) -> Array:
    """Read the elements from number ``start`` on that fill ``shape``; no other bytes are read.

    In Paddle's ``load`` operator these two arguments are ``seek`` and ``shape``.

    Raises
    ------
    FormatError
        The tensor has a LoD, or fewer elements.
    """
    if header.lod:
        raise FormatError(f"a tensor of {len(header.lod)} LoD levels cannot be read in slices")
    offset, size = header.locate_elements(start, math.prod(shape))
    return elements.read_elements(source, TensorPart(header.dtype, tuple(shape), offset, size), into)


def to_native(array: Array) -> Array:
    """Return an array that was filled with little-endian bytes, converted to this machine's byte order."""
    return array if np.little_endian else array.byteswap(inplace=True)


def to_fp16(value: LoDTensor | Array) -> LoDTensor:
    """Convert the elements, integers included, to float16 (Paddle: ``save_as_fp16``).

    As in Paddle, elements are converted to float32, then rounded towards zero; values beyond 65504 become
    infinity.

    Raises
    ------
    FormatError
        The tensor holds no array.
    """
    array, lod = (value.held_array, value.lod()) if isinstance(value, LoDTensor) else (value, [])
    if array is None:
        raise FormatError("the tensor holds no array: there is nothing to encode")
    with np.errstate(over="ignore"):
        single = array.astype(np.float32)
        half = single.astype(np.float16)
    size = np.abs(single)
    half = np.where(np.abs(half) > size, np.nextafter(half, np.float16(0)), half)
    half = np.where(size > np.finfo(np.float16).max, np.copysign(np.float16(np.inf), half), half)
    return LoDTensor(half, lod)


@lru_cache(maxsize=4096)  # of thousands of variables, most have the type and shape of another one
def _decode_plain(front: bytes) -> tuple[VarType, tuple[int, ...], int] | None:
    """Return element type, shape and size in bytes that a header without LoD states.

    Return None where the header has a LoD or is damaged.
    """
    if len(front) < _PLAIN.size:
        return None
    version, levels, tensor_version, size = _PLAIN.unpack_from(front)
    if version or levels or tensor_version or size < 2 or len(front) < _PLAIN.size + size:
        return None
    try:
        return tensor_desc.check_desc(front[_PLAIN.size : _PLAIN.size + size])
    except FormatError:
        return None


def _parse(cursor: Cursor) -> Header:
    header = _parse_plain(cursor)
    if header is not None:
        return header
    offset = cursor.at
    try:
        lod = _read_lod(cursor)
        part = tensor_desc.read_part(cursor)
        _check_lod(lod, part)
    except FormatError as error:
        from paddlelike.formats.explain import HEAD, explain  # late: for an error

        head = bytes(cursor.source.read_at(0, HEAD))
        hint = explain(head, cursor.end, asked="dense") if offset == 0 else None
        raise FormatError(error.message, hint=hint) from None
    surplus = cursor.end - part.data_offset - part.data_bytes
    return Header(part.dtype, part.shape, lod, part.data_offset, part.data_bytes, surplus)


def _parse_plain(cursor: Cursor) -> Header | None:
    """Return the header of a tensor without LoD, or None if it must be parsed step by step."""
    chunk = cursor.chunk
    size = int.from_bytes(chunk[_PLAIN.size - 4 : _PLAIN.size], "little")
    facts = _decode_plain(bytes(chunk[: _PLAIN.size + size])) if size <= _MAX_FRONT else None
    if facts is None:
        return None
    dtype, shape, data_bytes = facts
    data_offset = cursor.at + _PLAIN.size + size
    surplus = cursor.end - data_offset - data_bytes
    return Header(dtype, shape, (), data_offset, data_bytes, surplus) if surplus >= 0 else None


def _read_lod(cursor: Cursor) -> tuple[tuple[int, ...], ...]:
    version = cursor.take_int(4, "the version")
    if version != 0:
        raise FormatError(
            f"offset {cursor.at - 4}: version {version} "
            f"({version.to_bytes(4, 'little').hex(' ')}) where a Paddle tensor has 0"
        )
    levels = cursor.take_int(8, "the number of LoD levels")
    cursor.need(8 * levels, f"a LoD of {levels} levels")
    return tuple(_read_level(cursor, level) for level in range(levels))


def _read_level(cursor: Cursor, level: int) -> tuple[int, ...]:
    size = cursor.take_int(8, f"the length of LoD level {level}")
    if size % 8:
        raise FormatError(f"offset {cursor.at - 8}: LoD level {level} has {size} bytes, not a multiple of 8")
    offsets = np.frombuffer(cursor.take(size, f"LoD level {level}"), "<u8")
    if not size or offsets[0] != 0 or np.any(offsets[1:] < offsets[:-1]):
        raise FormatError(f"offset {cursor.at - size}: LoD level {level} does not rise from 0")
    return tuple(offsets.tolist())


def _check_lod(lod: tuple[tuple[int, ...], ...], part: TensorPart) -> None:
    for level, offsets in enumerate(lod):
        last = level + 1 == len(lod)
        below = (part.shape[0] if part.shape else 1) if last else len(lod[level + 1]) - 1
        if offsets[-1] != below:
            what = "rows" if last else f"sequences in level {level + 1}"
            raise FormatError(
                f"LoD level {level} ends at {offsets[-1]}, but there are {below} {what}; "
                f"the tensor is {part.dtype.name} {list(part.shape)}"
            )


def _tensor(header: Header, array: Array) -> LoDTensor:
    return LoDTensor(array, [list(level) for level in header.lod])


def _part(header: Header) -> TensorPart:
    return TensorPart(header.dtype, header.shape, header.data_offset, header.data_bytes)
