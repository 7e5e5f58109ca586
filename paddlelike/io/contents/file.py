"""The values of one file, in whatever format the registry recognizes, for a load."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Final

from paddlelike.core import LoDTensor, VarType
from paddlelike.core.memory import Arena
from paddlelike.errors import FormatError, LoadError, MissingFileError
from paddlelike.formats import registry
from paddlelike.formats.base import SNIFF_BYTES, FileFormat
from paddlelike.formats.entry import Entry, check_extent, list_left_out, note_left_out
from paddlelike.formats.paddle.combined import CombinedFile
from paddlelike.io.contents.allocation import allocate, copy_from, count_bytes, to_native
from paddlelike.io.contents.compare import compare_buffer, compare_file, compare_size
from paddlelike.io.contents.interface import Held, Positional, Reading, Unreadable, Value, Want
from paddlelike.io.contents.lazy import Mapper
from paddlelike.io.contents.read import Job, Part, read_jobs
from paddlelike.storage.location import File, LocalDirectory, Location
from paddlelike.storage.manifest import Record
from paddlelike.storage.problems import find_kind

_SMALL: Final = 16 << 20  # bytes of a file that is read at once, because it may hold thousands of values


class FileContents:
    """One file, or bytes, with many values.

    Parameters
    ----------
    source
        The bytes, or the name of the file in ``location``.
    record
        The manifest's record of the file, to compare it with if ``verify``.
    own_checksums
        Without a record, compare the file with the checksums that its format may contain.
    only_headers
        Read only the headers, even of a small file.

    Raises
    ------
    MissingFileError
        There is no such file.
    LoadError
        The file is damaged, or of no format that can be loaded.
    """

    def __init__(
        self,
        source: str | bytes,
        location: Location | None = None,
        *,
        verify: bool = False,
        record: Record | None = None,
        own_checksums: bool = False,
        only_headers: bool = False,
    ) -> None:
        self._verify = verify
        self._own_checksums = own_checksums and not verify
        self._record = record
        self._data: bytes | None = None
        self._location = location
        self._file = ""
        if isinstance(source, bytes):
            self.where, self._data, self.size = "memory", source, len(source)
            self._list_entries(source)
            return
        assert location is not None
        self._file = source
        self.where = os.path.join(location.path, source)
        self._local = isinstance(location, LocalDirectory)
        if self._local and find_kind(self.where, follow=True) is None:
            raise MissingFileError(
                f"nothing can be loaded: no such file: {self.where}",
                hint="leave filename out for a directory with one file per variable",
            )
        with self._open() as file:
            self.size = file.size
            if file.size < _SMALL and not only_headers:
                self._data = file.read()
            self._list_entries(file if self._data is None else self._data)

    def _open(self) -> File:
        assert self._location is not None
        return self._location.open_file(self._file)

    def _list_entries(self, source: File | bytes) -> None:
        self.format = recognize(source)
        try:
            self.headers = self.format.entries(source)  # in the order of the file
            if not isinstance(
                self.format, CombinedFile
            ):  # its headers were not compared with the file's size
                for entry in self.headers:
                    if entry.offset is not None:
                        check_extent(entry, self.size)
        except FormatError as error:
            what = f"{self.where} is" if self._file else f"{self.size} bytes in memory are"
            problem = f"{what} not a combined file of variables"
            if self.format.holds.names:
                problem = f"{self.where} cannot be read as {self.format.title}"
            raise LoadError(f"{problem}: {error.message}", hint=error.hint) from error
        self.left_out = list_left_out(self.headers)
        self._names = [entry.name for entry in self.headers]
        self._indexes = {name: index for index, name in enumerate(self._names)}
        self._is_named = self.format.holds.names
        self._is_encoded = any(entry.offset is None for entry in self.headers)

    @property
    def unnamed(self) -> Positional | None:
        """The contents themselves, if the format stores no names and none were assigned."""
        return None if self._is_named else self

    @property
    def saved_names(self) -> list[str] | None:
        """The names that the manifest records for the values, or None if it records another file."""
        variables = None if self._record is None else self._record.facts.get("variables")
        try:
            facts = [(str(name), VarType[dtype], tuple(shape)) for name, dtype, shape in variables or ()]
        except (KeyError, TypeError, ValueError):
            return None
        same = [(entry.dtype, entry.shape) for entry in self.headers] == [fact[1:] for fact in facts]
        return [name for name, _, _ in facts] if facts and same else None

    def assign_names(self, names: Sequence[str]) -> None:
        """Set the names of the values, in their order."""
        self._names = list(names)
        self._indexes = {name: index for index, name in enumerate(self._names)}
        self._is_named = True

    def names(self) -> list[str]:
        """Return the names of all values, in the order of the file."""
        return self._names

    def look(self, name: str, kind: VarType) -> Held | Unreadable | None:
        """Return the header of a value, or None if there is no such value."""
        index = self._indexes.get(name)
        if index is None:
            found = next((one for one in self.left_out if one.name == name), None)
            return found and Unreadable(name, f"{self.where} holds {found.what}, which no variable can hold")
        if kind == VarType.SELECTED_ROWS:
            return Unreadable(
                name, f"{self.format.title} holds dense tensors, the program wants SelectedRows"
            )
        return Held(name, self.headers[index])

    def read(self, wants: Sequence[Want], *, lazily: bool = False) -> Reading:
        """Read values, several ranges of the file at once.

        Raises
        ------
        FormatError, StorageError
            The file cannot be read, or was replaced after its headers were read.
        """
        reading = self._read(wants, lazily=lazily)
        if self._own_checksums:
            if self._data is not None:
                damage = self.format.find_damage(self._data)
            else:
                with self._open() as file:
                    damage = self.format.find_damage(file)
            if damage is not None:
                reading.bad.append(f"{self.where}: {damage}")
        return reading._replace(notes=(*reading.notes, *note_left_out(self.left_out, self.where)))

    def _read(self, wants: Sequence[Want], *, lazily: bool) -> Reading:
        if self._is_encoded:
            return self._read_encoded(wants)
        if self._data is not None:
            problem = compare_buffer(self.where, self._data, self._record) if self._verify else None
            return Reading(copy_from(self._data, wants), [] if problem is None else [problem])
        arena = Arena(sum(count_bytes(want) for want in wants if want.target is None))
        mapper = Mapper([self.size] if lazily and self._local else [])
        values: list[Value] = []
        parts: list[Part] = []
        for want in wants:
            value: Value | None = mapper.view(self.where, self.size, want.held.header, want.rows)
            if value is None:
                value, more = allocate(want, arena)
                parts += more
            values.append(value)
        parts.sort(key=lambda part: part.offset)
        partial = any(want.rows for want in wants) or (not lazily and len(wants) < len(self.headers))
        problem = compare_size(self.where, self.size, self._record) if self._verify else None
        compared = self._verify and problem is None
        record = self._record if compared else None
        job = Job(self.where, self._open, self.size, parts, record, partial)
        problems = [] if problem is None else [problem]
        if parts or compared:
            problems += [problem for _, problem in read_jobs([job])]
        return Reading(to_native(values, [job]), problems, mapper.mapped, mapper.unaligned)

    def _entry(self, want: Want) -> Entry:
        return self.headers[self._indexes[want.held.name]]

    def _read_encoded(self, wants: Sequence[Want]) -> Reading:
        """Read values that only their format can decode."""
        if self._data is not None:
            problem = compare_buffer(self.where, self._data, self._record) if self._verify else None
            values = [self._decode(self._data, want) for want in wants]
        else:
            problem = compare_file(self.where, self._open, self._record) if self._verify else None
            with self._open() as file:
                values = [self._decode(file, want) for want in wants]
        return Reading(values, [] if problem is None else [problem])

    def _decode(self, source: File | bytes, want: Want) -> Value:
        entry = self._entry(want)
        if want.rows is None:
            return self.format.read(source, entry)
        return LoDTensor(self.format.read_slice(source, entry, *want.rows))


def recognize(source: File | bytes) -> FileFormat:
    """Return the format of a file by its first bytes; a combined file if none is recognized."""
    size = len(source) if isinstance(source, bytes) else source.size
    head = source[:SNIFF_BYTES] if isinstance(source, bytes) else source.read_at(0, SNIFF_BYTES)
    combined = CombinedFile()
    if combined.sniff(head, size):
        return combined
    found = registry.sniff_head(head, size)
    return combined if found is None else found
