"""The contract of a file format: recognize, describe, list, read and write named tensors.

A format never sees a program or a path. A :class:`FileFormat` works on one file, given as a
:class:`~paddlelike.formats.sources.Source`; a :class:`FolderFormat` on several files under names, given as a
:class:`~paddlelike.formats.sources.Folder`. Formats are small frozen objects; the fields of their classes are
options with defaults.

A new format subclasses one of the two and defines the class attributes and ``sniff``, ``entries`` and
``write``. If the elements have the same bytes in the file as in memory (C order, little-endian), an
:class:`Entry` gives their offset, and reading, slicing, mapping and parallel reading need no more code.
Otherwise the entry's ``offset`` is None and the format implements ``read``.

>>> from paddlelike.formats import registry
>>> import numpy as np
>>> combined = registry.find("combined")
>>> file = b"".join(combined.write({"b": np.zeros(2, "float32"), "w": np.ones((1, 3), "int64")}))
>>> print(combined.describe(file))
a combined file of Paddle variables: 2 entries, 32 bytes of elements
  0: FP32 [2]
  1: INT64 [1, 3]
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Mapping
from typing import ClassVar, Final, Generic, TypeVar

import numpy as np

from paddlelike.core import TENSOR_DTYPES, Array, LoDTensor, SelectedRows, VarType, convert_dtype, memory
from paddlelike.errors import FormatError, SaveError
from paddlelike.formats.entry import Entry, read_dense, read_dense_rows
from paddlelike.formats.sources import Buffer, Folder, Readable, as_source
from paddlelike.lazy import dataclass

Value = LoDTensor | SelectedRows
Values = Mapping[str, LoDTensor | SelectedRows | Array]
S = TypeVar("S")
W = TypeVar("W", covariant=True)

SNIFF_BYTES: Final = 1024  # the part of a file that FileFormat.sniff() is given
ALL_DTYPES: Final = frozenset(TENSOR_DTYPES)
_LONGEST_NAME: Final = 1 << 14  # characters, of at most four bytes: a ZIP file holds 64 KiB
_FLOATS: Final = frozenset({"an array of BF16", "an array of FP16", "an array of FP64"})  # refusals
_LISTED: Final = 20  # entries or problems that a text lists before it says "and N more"


def get_array(value: Value) -> Array:
    """Return the array of a value that holds one."""
    assert value.held_array is not None
    return value.held_array


def copy_value(value: Value) -> Value:
    """Return a copy of a value in memory of its own."""
    array = memory.place(get_array(value))
    if isinstance(value, SelectedRows):
        return SelectedRows(value.row_array.copy(), value.height(), array)
    return LoDTensor(array, value.lod())


@dataclass(frozen=True)
class Capabilities:
    """The kinds of values that a format can hold.

    Attributes
    ----------
    dtypes
        Element types that come back as they were written.
    lod, selected_rows
        Whether it holds tensors with a LoD, and SelectedRows.
    names
        Whether it holds the names of the tensors; if False, only their order.
    order
        Whether entries come back in the order in which they were written; else sorted by name.
    """

    dtypes: frozenset[VarType] = ALL_DTYPES
    lod: bool = False
    selected_rows: bool = False
    names: bool = True
    order: bool = True


@dataclass(frozen=True)
class Description:
    """The contents of a source; prints as a short table."""

    title: str
    entries: tuple[Entry, ...]

    def __str__(self) -> str:
        total = sum(entry.nbytes for entry in self.entries)
        lines = [f"{self.title}: {len(self.entries)} entries, {total} bytes of elements"]
        for entry in self.entries[:_LISTED]:
            lod = f", {len(entry.lod)} LoD levels" if entry.lod else ""
            rows = "" if entry.height is None else f", {entry.row_count} rows of {entry.height}"
            lines.append(f"  {entry.name}: {entry.dtype.name} {list(entry.shape)}{lod}{rows}")
        if len(self.entries) > _LISTED:
            lines.append(f"  and {len(self.entries) - _LISTED} more")
        return "\n".join(lines)


class Format(ABC, Generic[S, W]):
    """Base class of :class:`FileFormat` and :class:`FolderFormat`; subclass one of these.

    Attributes
    ----------
    name
        The key in the registry, an identifier in lower case.
    title
        The name of such a file with its article: ``"a safetensors file"``.
    suffixes
        The usual ends of file names, with the dot.
    advice
        The hint of the error when such a file stands in place of a file of one Paddle variable; "" if
        ``filename=`` of a load opens it.
    holds
        The kinds of values that the format can hold.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    suffixes: ClassVar[tuple[str, ...]] = ()
    advice: ClassVar[str] = ""
    holds: ClassVar[Capabilities]

    @abstractmethod
    def entries(self, source: S) -> list[Entry]:
        """List the tensors in ``source``, in its order. Elements are not read.

        Raises
        ------
        FormatError
            The source is damaged or of another format; or it claims more than it can contain.
        """

    @abstractmethod
    def read(self, source: S, entry: Entry, *, into: Array | None = None) -> Value:
        """Read one tensor, into the C-order array ``into`` if that is given.

        Raises
        ------
        FormatError
            The elements are damaged or missing, or do not fit ``into``.
        """

    @abstractmethod
    def write(self, values: Values) -> W:
        """Encode ``values`` as buffers, which are the tensors' own memory if the format allows it.

        Raises
        ------
        FormatError
            The format cannot hold some of them; nothing is written.
        """

    def describe(self, source: S) -> Description:
        """Describe a source by its headers alone.

        Raises
        ------
        FormatError
            Where :meth:`entries` raises it.
        """
        return Description(self.title, tuple(self.entries(source)))

    def read_all(self, source: S) -> dict[str, Value]:
        """Read every tensor. All headers are checked before memory is taken for the first one.

        Raises
        ------
        FormatError
            Where :meth:`entries` or :meth:`read` raises it.
        """
        return {entry.name: self.read(source, entry) for entry in self.entries(source)}

    def read_slice(self, source: S, entry: Entry, start: int, stop: int) -> Array:
        """Read the rows ``start`` to ``stop`` (not included) of a dense tensor without LoD.

        Raises
        ------
        FormatError
            There are no such rows, or they are damaged or missing.
        """
        entry.check_rows(start, stop)
        array = self.read(source, entry).held_array
        assert array is not None
        return array[start:stop]

    def take_arrays(self, values: Values) -> dict[str, Array]:
        """Return the arrays of values. Raises the FormatError of :meth:`check`."""
        self.check(values)
        return {k: np.asarray(v.held_array if isinstance(v, Value) else v) for k, v in values.items()}

    def check(self, values: Values) -> None:
        """Raise FormatError that names all of ``values`` that the format cannot hold."""
        problems = [
            f"{name!r:.80}: {why}"
            for name, value in values.items()
            if (why := self.refuse_name(name) or self._refusal(value))
        ]
        if problems:
            more = f"; and {len(problems) - _LISTED} more" if len(problems) > _LISTED else ""
            lod = any(isinstance(value, LoDTensor) and value.lod() for value in values.values())
            raise FormatError(
                f"{self.title} cannot hold {'; '.join(problems[:_LISTED])}{more}",
                hint="rename them while converting: rename={...}"
                if any(map(self.refuse_name, values))
                else "convert(drop_lod=True) leaves levels of detail out"
                if lod and not self.holds.lod
                else "convert floating-point elements: dtype='float32'"
                if not _FLOATS.isdisjoint(map(self._refusal, values.values()))
                else None,
            )

    def refuse_name(self, name: str) -> str | None:
        """Return why the format cannot hold a name, or None if it can."""
        good = len(name) <= _LONGEST_NAME and name.encode("utf-8", "ignore").decode() == name
        return None if good or not self.holds.names else "a name that is not text, or too long"

    def _refusal(self, value: Value | Array) -> str | None:
        """Return why the format cannot hold ``value``, or None if it can."""
        if isinstance(value, SelectedRows) and not self.holds.selected_rows:
            return "SelectedRows"
        if isinstance(value, LoDTensor) and value.lod() and not self.holds.lod:
            return f"a tensor with {len(value.lod())} LoD levels"
        array = value.held_array if isinstance(value, Value) else value
        if array is None:
            return "a tensor without elements"
        try:
            dtype = convert_dtype(array.dtype)
        except TypeError:
            return f"an array of {array.dtype}"
        return None if dtype in self.holds.dtypes else f"an array of {dtype.name}"


class FileFormat(Format[Readable, Iterable[Buffer]]):
    """A format of one file.

    A file object is read from its current position, and every call moves that position. Convert it by
    ``as_source`` before several calls.
    """

    @abstractmethod
    def sniff(self, head: bytes, size: int) -> bool:
        """Return whether a file of ``size`` bytes that begins with ``head`` can be of this format.

        ``head`` has ``SNIFF_BYTES`` bytes, or the whole file. This method must not raise.
        """

    def find_damage(self, source: Readable) -> str | None:  # noqa: ARG002
        """Return how the contents differ from the format's own checksums; None if they match or there are
        none.

        Checksums that ``read`` compares need not be compared here.
        """
        return None

    def read_all(self, source: Readable) -> dict[str, Value]:
        return super().read_all(as_source(source))

    def read(self, source: Readable, entry: Entry, *, into: Array | None = None) -> Value:
        return read_dense(as_source(source), entry, into=into)

    def read_slice(self, source: Readable, entry: Entry, start: int, stop: int) -> Array:
        if entry.offset is None:
            return super().read_slice(source, entry, start, stop)
        return read_dense_rows(as_source(source), entry, start, stop)


class FolderFormat(Format[Folder, Mapping[str, Iterable[Buffer]]]):
    """A format of several named files; ``write`` returns the buffers of each file by its name."""

    @abstractmethod
    def sniff(self, folder: Folder) -> bool:
        """Return whether ``folder`` can be of this format. Never raises."""

    def is_part(self, name: str) -> bool:  # noqa: ARG002
        """Return whether reading the folder would also read this file, which ``write`` does not make.

        Parameters
        ----------
        name
            The name of a file in the folder.
        """
        return False

    def check_room(self, folder: Folder, names: Collection[str]) -> None:
        """Check that a folder has no other file that would be read together with the files of ``write``.

        Parameters
        ----------
        folder
            The folder, which exists and may be empty.
        names
            The names of the files to be written there.

        Raises
        ------
        SaveError
            The folder has such a file of another save.
        """
        others = [name for name in folder.list_names() if name not in names and self.is_part(name)]
        if others:
            raise SaveError(
                f"the target has {', '.join(others[:8])} of another save, which loads would read as well",
                hint="remove them, or choose another path",
            )

    def read(self, source: Folder, entry: Entry, *, into: Array | None = None) -> Value:
        with source.open_file(entry.file) as file:
            return read_dense(file, entry, into=into)

    def read_slice(self, source: Folder, entry: Entry, start: int, stop: int) -> Array:
        if entry.offset is None:
            return super().read_slice(source, entry, start, stop)
        with source.open_file(entry.file) as file:
            return read_dense_rows(file, entry, start, stop)
