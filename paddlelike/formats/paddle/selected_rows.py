"""Paddle's stream of SelectedRows: some rows of a tall matrix, as sparse tables are saved.

===============  =====================================================
uint32           version, always 0
uint64           number of row ids
int64 each       the row ids, in stored order; they may repeat
int64            height of the whole matrix
the tensor part  see :mod:`paddlelike.formats.paddle.tensor_desc`
===============  =====================================================

The file itself cannot be distinguished from a dense variable; the variable's declared type decides. The
tensor may have more rows than there are row ids, since a distributed table has room for more.
"""

from __future__ import annotations

import math
from typing import Final, NamedTuple

import numpy as np

from paddlelike.core import Array, SelectedRows, VarType, convert_dtype, numpy_dtype
from paddlelike.errors import FormatError
from paddlelike.formats import elements
from paddlelike.formats.elements import TensorPart
from paddlelike.formats.explain import HEAD, explain
from paddlelike.formats.paddle import tensor_desc
from paddlelike.formats.sources import Buffer, Cursor, Readable, as_source

IDS_OFFSET: Final = 12  # where the row ids begin in a stream


class Header(NamedTuple):
    """The header of a stream: type of the tensor, number of row ids, and the position of the elements."""

    dtype: VarType
    shape: tuple[int, ...]
    row_count: int
    height: int
    data_offset: int
    data_bytes: int
    surplus: int  # bytes of the source after the tensor


def read_header(source: Readable) -> Header:
    """Parse the header of a stream; row ids and elements are not read, only counted.

    Raises
    ------
    FormatError
        The stream is damaged. The error names the offset and, if the bytes have another known format,
        that format.
    """
    source = as_source(source)
    cursor = Cursor(source)
    try:
        version = cursor.take_int(4, "the version")
        if version != 0:
            raise FormatError(f"offset 0: version {version} where Paddle's SelectedRows has 0")
        count = cursor.take_int(8, "the number of row ids")
        cursor.skip(8 * count, f"the list of {count} row ids")
        height = cursor.take_int(8, "the height", signed=True)
        if height < 0:
            raise FormatError(f"offset {cursor.at - 8}: height {height} is negative")
        part = tensor_desc.read_part(cursor)
    except FormatError as error:
        hint = explain(bytes(source.read_at(0, HEAD)), source.size, asked="rows")
        raise FormatError(error.message, hint=hint) from None
    surplus = source.size - part.data_offset - part.data_bytes
    return Header(*part[:2], count, height, *part[2:], surplus)


def encode(value: SelectedRows, *, dtype: VarType | None = None) -> list[Buffer]:
    """Return the stream as buffers: header and row ids, then the values' own memory, not copied.

    Raises
    ------
    FormatError
        The rows hold no values.
    """
    array = value.held_array
    if array is None:
        raise FormatError("the SelectedRows hold no values: there is nothing to encode")
    kind = convert_dtype(array.dtype) if dtype is None else dtype
    return [encode_header(value.row_array, value.height(), kind, array.shape), elements.view_elements(array)]


def encode_header(rows: Array, height: int, dtype: VarType, shape: tuple[int, ...]) -> bytes:
    """Return the bytes that precede values of that shape."""
    ids = np.asarray(rows, "<i8").tobytes()
    front = bytes(4) + (len(ids) // 8).to_bytes(8, "little") + ids
    return front + height.to_bytes(8, "little", signed=True) + tensor_desc.encode_part(dtype, shape)


def view(data: Buffer) -> SelectedRows:
    """Return the rows of a whole stream; their values are a view of its bytes.

    Raises
    ------
    FormatError
        The stream is damaged.
    """
    header = read_header(data)
    rows = np.frombuffer(data, "<i8", header.row_count, IDS_OFFSET).astype(np.int64, copy=False)
    dtype = numpy_dtype(header.dtype).newbyteorder("<")
    values = np.frombuffer(data, dtype, math.prod(header.shape), header.data_offset)
    return SelectedRows(rows, header.height, values.reshape(header.shape))


def read(source: Readable, *, into: Array | None = None) -> SelectedRows:
    """Read a stream, with its values in the array ``into`` if that is given.

    Raises
    ------
    FormatError
        The stream is damaged, or does not fit ``into``.
    """
    source = as_source(source)
    header = read_header(source)
    rows = np.frombuffer(source.read_at(IDS_OFFSET, 8 * header.row_count), "<i8").astype(np.int64)
    part = TensorPart(header.dtype, header.shape, header.data_offset, header.data_bytes)
    return SelectedRows(rows, header.height, elements.read_elements(source, part, into))
