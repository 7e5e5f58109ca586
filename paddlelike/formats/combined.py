"""Paddle's combined file: many dense streams, one after the other.

The file holds no names, no count and no index. The order is that of the variables' names, sorted as
Python strings, so whoever reads it must know the names. It is the form of ``filename=...``,
``params_filename=...``, ``.pdiparams``, and of values saved to memory.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from paddlelike.core.tensor import LoDTensor
from paddlelike.errors import FormatError
from paddlelike.formats import lod_tensor
from paddlelike.formats.lod_tensor import Header
from paddlelike.formats.sources import Buffer, Readable, as_source
from paddlelike.formats.tensor_desc import Array

__all__ = ["encode", "read", "read_headers"]

_SMALL: Final = 16 << 20  # a file that is read at once, since it may hold thousands of tensors


def read_headers(source: Readable) -> Iterator[Header]:
    """The header of every tensor in turn, to the exact end of the source.

    Raises
    ------
    FormatError
        With the position in the file (from 0) and the offset of the tensor that cannot be read.

    >>> import numpy as np
    >>> file = b"".join(encode([np.zeros(2, "float32"), np.ones((1, 3), "int64")]))
    >>> [header.shape for header in read_headers(file)]
    [(2,), (1, 3)]
    """
    fronts = lod_tensor.Fronts()
    data = source if isinstance(source, bytes) else None
    source = as_source(source)
    position = offset = 0
    while offset < source.size or position == 0:
        try:
            if data is not None:
                header = fronts.read_header(data, offset)
            else:
                header = lod_tensor.read_header(source, offset=offset)
        except FormatError as error:
            if position == 0:
                raise
            raise _placed(error, position, offset) from None
        yield header
        position, offset = position + 1, header.end


def encode(values: Iterable[LoDTensor | Array]) -> Iterator[Buffer]:
    """The streams of ``values`` in their order (sort them by name), as buffers without copies."""
    for value in values:
        yield from lod_tensor.encode(value)


def read(source: Readable) -> list[LoDTensor]:
    """Read all tensors. Every header is checked before memory is taken for the first one."""
    source = as_source(source)
    if source.size < _SMALL:
        source = as_source(source.read_at(0, source.size))
    headers = list(read_headers(source))
    return [lod_tensor.read_data(source, header) for header in headers]


def _placed(error: FormatError, position: int, offset: int) -> FormatError:
    return FormatError(
        f"tensor {position} (counted from 0) of a combined file, which begins at offset {offset}: "
        f"{error.message}",
        hint=f"the {position} before it are well formed: the file is damaged here, "
        "or something follows its last tensor",
    )
