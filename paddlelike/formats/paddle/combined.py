"""Paddle's combined file: many dense streams, one after the other.

The file has no names, count or index. The variables are in the order of their names, sorted as Python
strings, so a reader must know the names. This is the form of ``filename=...``, ``params_filename=...``,
``.pdiparams``, and of values saved to memory.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from paddlelike.core import Array, LoDTensor
from paddlelike.errors import FormatError
from paddlelike.formats.base import Capabilities, FileFormat, Values
from paddlelike.formats.entry import Entry
from paddlelike.formats.paddle import lod_tensor
from paddlelike.formats.paddle.lod_tensor import Header
from paddlelike.formats.paddle.recognize import find_dense_part
from paddlelike.formats.sources import Buffer, Readable, as_source
from paddlelike.lazy import dataclass

_SMALL: Final = 16 << 20  # bytes of a file that is read at once, because it may hold thousands of tensors


@dataclass(frozen=True)
class CombinedFile(FileFormat):
    """Dense variables one after another, without their names; entries are named ``"0"``, ``"1"``, ...

    ``write`` keeps the order of the values: sort them by name, as Paddle does.
    """

    name = "combined"
    title = "a combined file of Paddle variables"
    suffixes = (".pdiparams",)
    holds = Capabilities(lod=True, names=False)

    def sniff(self, head: bytes, size: int) -> bool:
        return find_dense_part(head) is not None

    def entries(self, source: Readable) -> list[Entry]:
        return [
            Entry(str(index), header.dtype, header.shape, header.lod, header.data_offset, header.data_bytes)
            for index, header in enumerate(read_headers(source))
        ]

    def write(self, values: Values) -> Iterator[Buffer]:
        self.check(values)
        return encode(values.values())  # type: ignore[arg-type]  # check() has refused SelectedRows


def read_headers(source: Readable) -> Iterator[Header]:
    """Return the header of every tensor in turn, to the exact end of the source.

    Raises
    ------
    FormatError
        While iterating: names the index and the offset of the tensor that cannot be read.

    >>> import numpy as np
    >>> file = b"".join(encode([np.zeros(2, "float32"), np.ones((1, 3), "int64")]))
    >>> [header.shape for header in read_headers(file)]
    [(2,), (1, 3)]
    """
    source = source if type(source) is bytes else as_source(source)
    size = len(source) if type(source) is bytes else as_source(source).size
    index = offset = 0
    while offset < size or index == 0:
        try:
            header = lod_tensor.read_header(source, offset=offset)
        except FormatError as error:
            if index == 0:
                raise
            raise _locate(error, index, offset) from None
        yield header
        index, offset = index + 1, header.end


def encode(values: Iterable[LoDTensor | Array]) -> Iterator[Buffer]:
    """Return the streams of ``values`` in the given order (sort by name), as buffers without copies."""
    for value in values:
        yield from lod_tensor.encode(value)


def read(source: Readable) -> list[LoDTensor]:
    """Read all tensors. Every header is checked before memory is taken for the first one.

    Raises
    ------
    FormatError
        The file is damaged, or something follows its last tensor.
    """
    source = as_source(source)
    if source.size < _SMALL:
        source = as_source(source.read_at(0, source.size))
    headers = list(read_headers(source))
    return [lod_tensor.read_data(source, header) for header in headers]


def _locate(error: FormatError, index: int, offset: int) -> FormatError:
    """Return ``error`` with the index and the offset of its tensor."""
    return FormatError(
        f"tensor {index} (counted from 0) of a combined file, which begins at offset {offset}: "
        f"{error.message}",
        hint=f"the {index} before it are well formed: the file is damaged here, "
        "or something follows its last tensor",
    )
