"""DyNet's text files: blocks of one header line and one or two lines of numbers.

A block is written by ``dynet/io.cc``::

    #Parameter# /enc/w {3,5} 241 ZERO_GRAD
    -3.19631362e+00 +8.60823727e+00 ...

The header has the kind (``#Parameter#`` or ``#LookupParameter#``), the name, the dims, the size of the body
in bytes and whether a line of gradients follows (``FULL_GRAD``). Files of old versions have no fifth field
and always a line of gradients. A number takes 16 bytes (``%+.8e`` and a blank), which restores every float32
exactly. Values are column-major; a lookup table of shape ``(N, d...)`` has the dims ``{d...,N}``.

DyNet reads a damaged body as zeros. This reader compares the size, the number of numbers and the end of the
file with the header, and raises FormatError if they differ.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator
from typing import Final, cast

import numpy as np

from paddlelike.core import Array, LoDTensor, VarType
from paddlelike.errors import FormatError
from paddlelike.formats.base import Capabilities, FileFormat, Value, Values
from paddlelike.formats.elements import check_shape, copy_into
from paddlelike.formats.entry import Entry, LeftOut, Listing
from paddlelike.formats.sources import Buffer, Readable, as_source
from paddlelike.lazy import dataclass

PARAMETER: Final = "#Parameter#"
LOOKUP_PARAMETER: Final = "#LookupParameter#"

_NUMBER_BYTES: Final = 16
_LONGEST_NUMBER: Final = 64
_HEADER_BYTES: Final = 1 << 16  # far beyond any header; bounds the search for its end in a foreign file
_DIMS: Final = re.compile(r"\{(\d{1,10}(?:,\d{1,10})*)(?:X1)?\}")


@dataclass(frozen=True, eq=False)
class Block:
    """One parameter or lookup table of a file.

    ``values`` and ``gradients`` have the shape that Python sees: ``(N, d...)`` for a lookup table.
    """

    kind: str  # PARAMETER or LOOKUP_PARAMETER
    name: str
    values: Array  # float32
    gradients: Array | None = None

    @property
    def is_lookup(self) -> bool:
        """Whether this is a lookup table."""
        return self.kind == LOOKUP_PARAMETER

    @property
    def dims(self) -> str:
        """The dims in the form of the header: ``{3,5}``."""
        shape = self.values.shape or (1,)
        return "{" + ",".join(map(str, (*shape[1:], shape[0]) if self.is_lookup else shape)) + "}"


@dataclass(frozen=True)
class DynetFile(FileFormat):
    """A text file of DyNet; names are as in its collections (``/enc/w``), gradients are ignored.

    ``write`` writes parameters, not lookup tables; :func:`encode` writes both. Entries hold their values,
    because checking a file means reading its text.

    >>> file = b"".join(DynetFile().write({"/w": np.float32([1, -2.5])}))
    >>> print(DynetFile().describe(file))
    a text file of DyNet: 1 entries, 8 bytes of elements
      /w: FP32 [2]
    """

    name = "dynet"
    title = "a text file of DyNet"
    holds = Capabilities(dtypes=frozenset({VarType.FP32}))

    def sniff(self, head: bytes, size: int) -> bool:
        return head.startswith((PARAMETER.encode() + b" ", LOOKUP_PARAMETER.encode() + b" "))

    def entries(self, source: Readable) -> list[Entry]:
        file = as_source(source)
        found: dict[str, Entry] = {}
        left_out = []
        for block in read_blocks(file.read_at(0, file.size)):
            if block.name in found:
                raise FormatError(f"two blocks have the name {block.name!r:.80}")
            array = block.values
            found[block.name] = Entry(
                block.name, VarType.FP32, array.shape, nbytes=array.nbytes, payload=array
            )
            if block.gradients is not None:
                left_out.append(LeftOut(block.name, "its gradient", is_value=False))
        return Listing(found.values(), left_out)

    def read(self, source: Readable, entry: Entry, *, into: Array | None = None) -> Value:
        array = cast("Array", entry.payload)
        return LoDTensor(array.copy() if into is None else copy_into(array, into))

    def write(self, values: Values) -> Iterator[bytes]:
        return encode([Block(PARAMETER, name, array) for name, array in self.take_arrays(values).items()])

    def refuse_name(self, name: str) -> str | None:
        if "#" in name or name.split() != [name]:
            return "a name that is empty or has blanks or '#'"
        return super().refuse_name(name)

    def _refusal(self, value: Value | Array) -> str | None:
        array = value if isinstance(value, np.ndarray) else value.held_array
        problem = super()._refusal(value)
        if problem is None and array is not None and not array.ndim:
            problem = "an array without dims"
        if problem is None and array is not None and not np.isfinite(array).all():
            problem = "inf or nan"
        return problem


def encode(blocks: Iterable[Block]) -> Iterator[bytes]:
    """Return the bytes of a file, one piece per block.

    Raises FormatError for inf and nan, whose text does not have the size that DyNet's own reader expects.
    """
    for block in blocks:
        lines = [block.values] if block.gradients is None else [block.values, block.gradients]
        size = (_NUMBER_BYTES * block.values.size + 1) * len(lines)
        mark = "ZERO_GRAD" if block.gradients is None else "FULL_GRAD"
        header = f"{block.kind} {block.name} {block.dims} {size} {mark}\n"
        yield header.encode() + b"".join(_encode_line(block, line) for line in lines)


def read_blocks(buffer: Buffer) -> Iterator[Block]:
    r"""Yield the blocks of a file in order.

    Raises
    ------
    FormatError
        A header is malformed, a body is cut, or a line has more or fewer numbers than the dims say. The
        error names the block and the offset.

    >>> text = b"#Parameter# /w {2} 33 ZERO_GRAD\n+1.00000000e+00 -2.50000000e+00 \n"
    >>> [(block.name, block.values.tolist()) for block in read_blocks(text)]
    [('/w', [1.0, -2.5])]
    """
    data = bytes(buffer)
    at = 0
    while at < len(data):
        end = data.find(b"\n", at, at + _HEADER_BYTES)
        header = data[at : end if end >= 0 else min(len(data), at + 80)]
        kind, name, dims, size, lines = _parse_header(header, at)
        if end < 0 or end + 1 + size > len(data):
            raise FormatError(
                f"the file is cut: block {name} at offset {at} has a body of {size} bytes, "
                f"{max(0, len(data) - end - 1) if end >= 0 else 0} are left"
            )
        body = data[end + 1 : end + 1 + size]
        arrays = _parse_body(body, dims, lines, kind, name)
        yield Block(kind, name, arrays[0], arrays[1] if len(arrays) == 2 else None)
        at = end + 1 + size


def _encode_line(block: Block, array: Array) -> bytes:
    if not np.isfinite(array).all():
        raise FormatError(
            f"{block.name} holds inf or nan, which DyNet's text format cannot hold",
            hint="DyNet itself writes a file that it cannot read again; save this value in another format",
        )
    moved = np.moveaxis(array, 0, -1) if block.is_lookup else array
    numbers = moved.astype(np.float32, copy=False).ravel(order="F").tolist()
    return ("".join([f"{number:+.8e} " for number in numbers]) + "\n").encode()


def _parse_header(line: bytes, at: int) -> tuple[str, str, tuple[int, ...], int, int]:
    """Return kind, name, dims, the size of the body and the number of its lines."""
    fields = line.decode("utf-8", "replace").split()
    found = _DIMS.fullmatch(fields[2]) if len(fields) in (4, 5) else None
    marks = {"ZERO_GRAD": 1, "FULL_GRAD": 2}
    good = (
        found is not None
        and fields[0] in (PARAMETER, LOOKUP_PARAMETER)
        and re.fullmatch(r"\d{1,18}", fields[3])
    )
    if not good or (len(fields) == 5 and fields[4] not in marks):
        raise FormatError(
            f"offset {at}: {line[:60]!r} is not a header of a DyNet text file",
            hint='a header has the form "#Parameter# /name {dims} bytes ZERO_GRAD"',
        )
    assert found is not None
    dims = tuple(int(dim) for dim in found[1].split(","))
    return fields[0], fields[1], dims, int(fields[3]), marks[fields[4]] if len(fields) == 5 else 2


def _parse_body(body: bytes, dims: tuple[int, ...], lines: int, kind: str, name: str) -> list[Array]:
    check_shape(f"block {name}", dims, 4)
    count = math.prod(dims)
    if count > len(body):  # a number takes more than a byte: refuse before memory is taken
        raise FormatError(f"block {name}: its dims need {count} numbers, its body has {len(body)} bytes")
    texts = body.replace(b"\r\n", b"\n").split(b"\n")
    if len(texts) != lines + 1 or texts[-1] != b"":
        raise FormatError(f"block {name}: its {len(body)} bytes are not {lines} complete lines")
    return [_parse_line(text, dims, count, kind, name) for text in texts[:lines]]


def _parse_line(text: bytes, dims: tuple[int, ...], count: int, kind: str, name: str) -> Array:
    words = text.split()
    if len(words) != count:
        raise FormatError(f"block {name}: its dims need {count} numbers, the line has {len(words)}")
    longest = max(map(len, words), default=0)
    if longest > _LONGEST_NUMBER or b"_" in text:  # numpy takes memory for the longest, and 1_0 for 10
        raise FormatError(f"block {name}: the line holds words that are not numbers")
    try:
        with np.errstate(over="ignore"):
            flat = np.array(words, dtype="S").astype(np.float64).astype(np.float32)
    except ValueError:
        raise FormatError(f"block {name}: the line holds words that are not numbers") from None
    array = flat.reshape(dims, order="F")
    return np.ascontiguousarray(np.moveaxis(array, -1, 0) if kind == LOOKUP_PARAMETER else array)
