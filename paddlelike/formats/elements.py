"""Read and view elements that a file stores in C order, little-endian."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np

from paddlelike.core import TENSOR_DTYPES, Array, VarType, memory
from paddlelike.errors import FormatError
from paddlelike.formats.sources import Cursor, Source

_MAX_DIMS: Final = 32  # numpy 1.x has no more
_MOST_UNPACKED: Final = 1 << 30, 64  # bytes, and times the size of the file, whichever is more


class TensorPart(NamedTuple):
    """The type of a tensor, and the position of its elements."""

    dtype: VarType
    shape: tuple[int, ...]
    data_offset: int
    data_bytes: int


def view_elements(array: Array) -> memoryview:
    """Return the elements in C order, little-endian, as bytes; without a copy if they are stored that way."""
    plain = array
    if not (np.little_endian and array.flags.c_contiguous and array.dtype.isnative):
        plain = np.asarray(array, array.dtype.newbyteorder("<"), order="C")
    return plain.reshape(-1).view(np.uint8).data


def check_shape(what: str, shape: Sequence[int], itemsize: int = 1) -> None:
    """Raise FormatError, with a text that begins with ``what``, for an impossible shape.

    >>> check_shape("w", (0, 2**40, 2**40))
    Traceback (most recent call last):
    ...
    paddlelike.errors.FormatError: w: an array cannot have the dims [0, 1099511627776, 1099511627776]
    """
    # a zero dim must not hide others that no array can have
    nbytes = math.prod(dim for dim in shape[:_MAX_DIMS] if dim) * itemsize
    if len(shape) > _MAX_DIMS or min(shape, default=0) < 0 or nbytes > 2**62:
        raise FormatError(f"{what}: an array cannot have the dims {list(shape)!s:.200}")


def check_total(unpacked: int, size: int) -> None:
    """Raise FormatError if the values of a file of ``size`` bytes would need far more memory than that.

    Otherwise a small compressed file of zeros, or many names for the same elements, could fill the memory.
    """
    least, factor = _MOST_UNPACKED
    if unpacked > max(least, factor * size):
        raise FormatError(
            f"a file of {size} bytes claims to unpack to {unpacked}, more than {factor} times as many",
            hint="if you know who wrote it, write it again without compression and without doubled arrays "
            "(a ZIP file: zip -0)",
        )


def copy_into(array: Array, into: Array) -> Array:
    """Copy an array that was read into ``into``, and return ``into``.

    Raises
    ------
    FormatError
        ``into`` has another element type or shape.
    """
    if into.dtype != array.dtype or into.shape != array.shape:
        raise FormatError(
            f"the file holds {array.dtype} {list(array.shape)}, "
            f"the array to fill is {into.dtype} {list(into.shape)}"
        )
    into[...] = array
    return into


def read_elements(source: Source | Cursor, part: TensorPart, into: Array | None = None) -> Array:
    """Read the elements into the array ``into``, or into a new one placed by ``memory``.

    Raises
    ------
    FormatError
        ``into`` has another type, shape or layout, or the source became shorter.
    """
    dtype = TENSOR_DTYPES[part.dtype].numpy
    if into is None:
        into = memory.empty(part.shape, dtype)
    elif into.dtype != dtype or into.shape != part.shape or not into.flags.c_contiguous:
        raise FormatError(
            f"the file holds {dtype} {list(part.shape)}, the array to fill is "
            f"{'a C-order' if into.flags.c_contiguous else 'a strided'} "
            f"{into.dtype} {list(into.shape)}"
        )
    target = into.reshape(-1).view(np.uint8).data
    count = source.readinto_at(part.data_offset, target)
    if count != len(target):  # they were there when the header was read
        raise FormatError(f"offset {part.data_offset}: only {count} of {len(target)} bytes could be read")
    if not np.little_endian:
        into.byteswap(inplace=True)
    return into
