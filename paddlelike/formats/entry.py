"""One tensor of a file: its name, dtype and shape, the position of its elements, and how to read them."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from paddlelike.core import Array, LoDTensor, VarType, numpy_dtype
from paddlelike.errors import FormatError
from paddlelike.formats.elements import TensorPart, check_total, copy_into, read_elements
from paddlelike.formats.sources import Source

_NOTED: Final = 8


class Entry(NamedTuple):
    """One tensor in a source: its name, its type, and the position of its elements.

    Attributes
    ----------
    name
        The name of the tensor; its index as text if the format stores no names.
    offset
        The place in ``file`` where the elements begin, in C order and little-endian. None means that they are
        encoded, and only ``read`` of the format can decode them.
    nbytes
        The size of the elements in memory, and in the file unless they are encoded.
    file
        The name of the file in the folder; "" for a format of one file.
    height, row_count
        The height of the whole matrix and the number of row ids, for SelectedRows. ``height`` is None for a
        dense tensor.
    surplus
        The number of bytes that follow the tensor in a file of its own.
    payload
        The data that the format itself needs to read an encoded entry.
    """

    name: str
    dtype: VarType
    shape: tuple[int, ...]
    lod: tuple[tuple[int, ...], ...] = ()
    offset: int | None = None
    nbytes: int = 0
    file: str = ""
    height: int | None = None
    row_count: int = 0
    surplus: int = 0
    payload: object = None

    @property
    def kind(self) -> VarType:
        """LOD_TENSOR or SELECTED_ROWS."""
        return VarType.LOD_TENSOR if self.height is None else VarType.SELECTED_ROWS

    def locate_rows(self, start: int, stop: int) -> tuple[int, int]:
        """Return offset and size in bytes of the rows from ``start`` up to ``stop``, exclusive.

        Raises
        ------
        FormatError
            There are no such rows, the tensor has a LoD, or its elements are encoded.

        >>> Entry("w", VarType.FP32, (5, 2), offset=28, nbytes=40).locate_rows(1, 3)
        (36, 16)
        """
        self.check_rows(start, stop)
        if self.offset is None:
            raise FormatError(f"the elements of {self.name!r} are encoded: they have no offset in the file")
        row = math.prod(self.shape[1:]) * numpy_dtype(self.dtype).itemsize
        return self.offset + start * row, (stop - start) * row

    def check_rows(self, start: int, stop: int) -> None:
        """Raise FormatError unless the rows ``start`` to ``stop`` can be read by themselves."""
        height = self.shape[0] if self.shape else 0
        if self.lod or self.height is not None:
            what = f"has {len(self.lod)} LoD levels" if self.lod else "is SelectedRows"
            raise FormatError(f"{self.name!r} {what}: it cannot be read in slices")
        if not 0 <= start <= stop <= height:
            raise FormatError(
                f"rows {start} to {stop} of {self.name!r}: it has {height} rows, "
                f"{self.dtype.name} {list(self.shape)}",
                hint=f"choose 0 <= start <= stop <= {height}",
            )


class LeftOut(NamedTuple):
    """A value in a source that no variable can hold.

    Attributes
    ----------
    name
        The path of the value in the source, such as ``LR_Scheduler/last_epoch``.
    what
        A description: ``"an array of uint16"``, or a value, such as ``"7"``.
    is_value
        Whether it is a value; False for mere descriptions of values, such as other names of the
        variables.
    is_plain
        Whether ``what`` is the value itself: a number or a text.
    """

    name: str
    what: str
    is_value: bool = True
    is_plain: bool = False

    def __str__(self) -> str:
        return f"{self.name!r:.80} ({self.what})"


class Listing(list[Entry]):
    """The entries of a source, and its other contents.

    Attributes
    ----------
    left_out
        Everything in the source that no entry stands for.
    plain
        The numbers, texts, lists and dicts in ``left_out``, by name; a pickle can keep them.
    """

    def __init__(
        self,
        entries: Iterable[Entry],
        left_out: Iterable[LeftOut] = (),
        plain: Mapping[str, Any] = MappingProxyType({}),
    ) -> None:
        super().__init__(entries)
        self.left_out = tuple(left_out)
        self.plain = plain


def list_left_out(entries: Iterable[Entry]) -> tuple[LeftOut, ...]:
    """Return the contents of a source that are not among the entries that a format listed."""
    return entries.left_out if isinstance(entries, Listing) else ()


def note_left_out(left_out: Iterable[LeftOut], where: str) -> tuple[str, ...]:
    """Return a remark for a report on the values that a load left out; [] if it left none out."""
    names = [str(one) for one in sorted(left_out, key=lambda one: one.is_plain) if one.is_value]
    more = f" and {len(names) - _NOTED} more" if len(names) > _NOTED else ""
    return (
        (f"{where} holds values that no variable can hold: {', '.join(names[:_NOTED])}{more}",)
        if names
        else ()
    )


def free_name(name: str, taken: Iterable[str]) -> str:
    """Return the name or, if it is taken, the name with the first unused number.

    >>> free_name("w", {"w"})
    'w (2)'
    """
    found, count = name, 1
    while found in taken:
        count += 1
        found = f"{name} ({count})"
    return found


def check_entries(
    entries: Iterable[Entry],
    size: int,
    left_out: Iterable[LeftOut] = (),
    plain: Mapping[str, Any] = MappingProxyType({}),
) -> Listing:
    """Return the entries of a file of ``size`` bytes.

    Raises FormatError for two entries of one name, and for far more elements than a file of this size can
    hold.
    """
    listing = Listing(entries, left_out, plain)
    counts = Counter(entry.name for entry in listing)
    if doubled := sorted(name for name, count in counts.items() if count > 1):
        raise FormatError(f"several arrays have the same name: {doubled[:5]}")
    check_total(sum(entry.nbytes for entry in listing), size)
    return listing


def read_dense(source: Source, entry: Entry, *, into: Array | None = None) -> LoDTensor:
    """Read a dense tensor with elements stored in ``source`` as in memory.

    Raises
    ------
    FormatError
        They are not all there, or do not fit ``into``; no memory was taken for them.
    """
    assert entry.offset is not None, f"{entry.name} is encoded: its format must implement read()"
    check_extent(entry, source.size)
    part = TensorPart(entry.dtype, entry.shape, entry.offset, entry.nbytes)
    return LoDTensor(read_elements(source, part, into), [list(level) for level in entry.lod])


def read_dense_rows(source: Source, entry: Entry, start: int, stop: int) -> Array:
    """Read some rows of a dense tensor whose elements have the same bytes in ``source`` as in memory.

    Raises
    ------
    FormatError
        There are no such rows, or the tensor's elements are not all there.
    """
    offset, nbytes = entry.locate_rows(start, stop)
    check_extent(entry, source.size)
    shape = (stop - start, *entry.shape[1:])
    return read_elements(source, TensorPart(entry.dtype, shape, offset, nbytes))


def check_extent(entry: Entry, size: int) -> None:
    """Raise FormatError unless a file of ``size`` bytes contains the elements of an entry with an offset."""
    offset = entry.offset
    assert offset is not None
    expected = math.prod(entry.shape) * numpy_dtype(entry.dtype).itemsize
    if entry.nbytes != expected:
        raise FormatError(
            f"{entry.name!r} is {entry.dtype.name} {list(entry.shape)}, which takes {expected} bytes; "
            f"the file says {entry.nbytes}"
        )
    if offset < 0 or offset + entry.nbytes > size:
        raise FormatError(
            f"offset {offset}: {entry.name!r}, {entry.dtype.name} {list(entry.shape)}, takes {entry.nbytes} "
            f"bytes, but the file has {size}"
        )


def deliver(array: Array, into: Array | None) -> LoDTensor:
    """Return the array as a tensor, copied into ``into`` if that is given.

    Raises FormatError when ``into`` has another element type or shape.
    """
    if into is None:
        return LoDTensor(array.copy() if not array.flags.writeable else array)
    return LoDTensor(copy_into(array, into))
