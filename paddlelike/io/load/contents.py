"""What a source of values holds: a directory with a file each, a combined file, or a dict of arrays.

A source is looked at by headers first; the values are read afterwards, all that are wanted in one go.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple, Protocol

import numpy as np

from paddlelike.core.dtypes import TENSOR_DTYPES, VarType, convert_dtype
from paddlelike.core.memory import Arena
from paddlelike.core.tensor import LoDTensor, SelectedRows
from paddlelike.errors import FormatError, LoadError, MissingFileError, StorageError
from paddlelike.formats import combined, lod_tensor, selected_rows
from paddlelike.io.load.lazy import Mapper
from paddlelike.io.load.read import Job, Part, bytes_of, hash_file, misfit, of_buffer, read_jobs
from paddlelike.storage.local.files import read_front
from paddlelike.storage.location import File, LocalDirectory, Location
from paddlelike.storage.manifest import Record
from paddlelike.storage.names import relative_path

__all__ = ["Arrays", "Combined", "Contents", "Directory", "Held", "Reading", "Unreadable", "Want"]

Array = np.ndarray[Any, Any]
Header = lod_tensor.Header | selected_rows.Header
Value = LoDTensor | SelectedRows

_HEAD: Final = 4096  # bytes read of a file at first: its header, and the whole of a small one
_SMALL: Final = 16 << 20  # a combined file that is read at once, since it may hold thousands of values
_ALIKE: Final = 64 << 10  # bytes; larger arrays are placed one by one
_ROWS_AT: Final = 12  # where the row numbers of a SelectedRows stream begin


class Held(NamedTuple):
    """One value that a source holds."""

    name: str
    header: Header
    value: Value | None = None  # of a small file, which was read with its header
    size: int = 0  # of the file, where it is in one of its own


class Unreadable(NamedTuple):
    """Why a value that a source holds cannot be had."""

    name: str
    what: str
    hint: str | None = None


class Want(NamedTuple):
    """A value to read, or some of its rows."""

    held: Held
    rows: tuple[int, int] | None = None
    target: Array | None = None  # memory that takes the value, if it has its form


class Reading(NamedTuple):
    """What was read: the values in the order of the wants, and what there is to say."""

    values: list[Value]
    bad: list[str]  # files that are not what the manifest says
    mapped: int = 0  # values that are views of their files
    unaligned: int = 0  # of these: to be copied at the first use


class Contents(Protocol):
    """What planning and reading ask of a source."""

    where: str

    def names(self) -> list[str]:
        """The names of all values, in the source's order."""

    def look(self, name: str, kind: VarType) -> Held | Unreadable | None:
        """The header of a value of that kind (SELECTED_ROWS, or a dense one); None: it is not there."""

    def read(self, wants: Sequence[Want], *, lazily: bool = False) -> Reading:
        """The values, in new memory or the targets of the wants; ``lazily``: large ones as views of files."""


class Directory:
    """A directory with one file per variable.

    Parameters
    ----------
    records
        What the manifest says of the files, to compare them with; None: no comparison.
    """

    def __init__(self, location: Location, records: Mapping[str, Record] | None = None) -> None:
        self.where = location.path
        self._location = location
        self._local = isinstance(location, LocalDirectory)
        self._records = records
        self._bad: dict[str, str] = {}
        if not location.exists():
            is_file = self._local and os.path.exists(location.path)
            what = "is a file, not a directory" if is_file else "does not exist"
            raise MissingFileError(
                f"nothing can be loaded: {'' if is_file else 'directory '}{location.path} {what}",
                hint="a combined file needs filename=" if is_file else "check the path",
            )
        self._names = location.list_names()
        self._known = set(self._names)

    def names(self) -> list[str]:
        return self._names

    def look(self, name: str, kind: VarType) -> Held | Unreadable | None:
        try:
            path = relative_path(name)
        except StorageError as error:
            return Unreadable(name, error.message, error.hint)
        if path not in self._known:
            return None
        try:
            data = self._front(path)
            if len(data) > _HEAD or kind == VarType.SELECTED_ROWS:
                with self._location.open_file(path) as file:
                    return Held(path, _read_header(file, kind), None, file.size)
            if self._records is not None:
                self._note(path, of_buffer(path, data, self._records.get(path)))
            try:
                header = lod_tensor.read_header(data)
            except FormatError as error:
                raise FormatError(f"{self._full(path)}: {error.message}", hint=error.hint) from error
            return Held(path, header, _small_value(data, header), len(data))
        except (FormatError, StorageError) as error:
            if self._records is not None:  # a damaged header is not what was saved either
                self._note(path, hash_file(path, self._opener(path), self._records.get(path)))
            return Unreadable(path, error.message, error.hint)

    def _front(self, path: str) -> bytes:
        """A small file whole; of another one more than ``_HEAD`` bytes."""
        if self._local:
            return read_front(self._full(path), _HEAD + 1)
        with self._location.open_file(path) as file:
            return file.read_at(0, _HEAD + 1)

    def _full(self, path: str) -> str:
        return f"{self.where}/{path}"

    def _opener(self, path: str) -> Callable[[], File]:
        return lambda: self._location.open_file(path)

    def _note(self, path: str, problem: str | None) -> None:
        if problem is not None:
            self._bad[path] = problem

    def read(self, wants: Sequence[Want], *, lazily: bool = False) -> Reading:
        arena = Arena(sum(_size(want) for want in wants if want.held.value is None and want.target is None))
        mapper = Mapper([want.held.size for want in wants] if lazily and self._local else [])
        values: list[Value] = []
        jobs: list[Job] = []
        for want in wants:
            held = want.held
            if held.value is not None:
                values.append(_part_of(held.value, want.rows))
                continue
            value: Value | None = mapper.view(self._full(held.name), held.size, held.header, want.rows)
            parts: list[Part] = []
            if value is None:
                value, parts = _allocated(want, arena)
            values.append(value)
            record = None
            if self._records is not None:
                record = self._records.get(held.name)
                problem = misfit(held.name, held.size, record)
                self._note(held.name, problem)
                if problem is not None:
                    continue
            if parts or record is not None:
                jobs.append(Job(held.name, self._opener(held.name), held.size, parts, record))
        for name, problem in read_jobs(jobs):
            self._note(name, problem)
        return Reading(_native(values, jobs), list(self._bad.values()), mapper.mapped, mapper.unaligned)


class Combined:
    """One file, or bytes, that hold many dense values without their names; :meth:`name` gives them.

    Parameters
    ----------
    source
        The bytes, or the name of the file in ``location``.
    record
        What the manifest says of the file, to compare it with if ``verify``.
    only_headers
        Read no more than these, even of a small file.
    """

    def __init__(
        self,
        source: str | bytes,
        location: Location | None = None,
        *,
        verify: bool = False,
        record: Record | None = None,
        only_headers: bool = False,
    ) -> None:
        self._verify = verify
        self._record = record
        self._data: bytes | None = None
        self._names: list[str] = []
        self._numbers: dict[str, int] = {}
        self._location = location
        self._file = ""
        if isinstance(source, bytes):
            self.where, self._data, self.size = "memory", source, len(source)
            self.headers = self._headers(source)
            return
        assert location is not None
        self._file = source
        self.where = os.path.join(location.path, source)
        self._local = isinstance(location, LocalDirectory)
        if self._local and not os.path.isfile(self.where):
            raise MissingFileError(
                f"nothing can be loaded: there is no file {self.where}",
                hint="leave filename out for a directory with one file per variable",
            )
        with self._open() as file:
            self.size = file.size
            if file.size < _SMALL and not only_headers:
                self._data = file.read()
            self.headers = self._headers(file if self._data is None else self._data)

    def _open(self) -> File:
        assert self._location is not None
        return self._location.open_file(self._file)

    def _headers(self, source: File | bytes) -> list[lod_tensor.Header]:
        try:
            return list(combined.read_headers(source))
        except FormatError as error:
            what = f"{self.where} is" if self._file else f"{self.size} bytes in memory are"
            raise LoadError(
                f"{what} no combined file of variables: {error.message}", hint=error.hint
            ) from error

    @property
    def saved_names(self) -> list[str] | None:
        """The names that the manifest has for the values, if it is of this file; else None."""
        variables = None if self._record is None else self._record.facts.get("variables")
        try:
            facts = [(str(name), VarType[dtype], tuple(shape)) for name, dtype, shape in variables or ()]
        except (KeyError, TypeError, ValueError):
            return None
        same = [(header.dtype, header.shape) for header in self.headers] == [fact[1:] for fact in facts]
        return [name for name, _, _ in facts] if facts and same else None

    def name(self, names: Iterable[str]) -> None:
        """Say how the values are called, in their order."""
        self._names = list(names)
        self._numbers = {name: number for number, name in enumerate(self._names)}

    def names(self) -> list[str]:
        return self._names

    def look(self, name: str, kind: VarType) -> Held | Unreadable | None:
        number = self._numbers.get(name)
        if number is None:
            return None
        if kind == VarType.SELECTED_ROWS:
            return Unreadable(name, "a combined file holds dense tensors, the program wants SelectedRows")
        return Held(name, self.headers[number])

    def read(self, wants: Sequence[Want], *, lazily: bool = False) -> Reading:
        if self._data is not None:
            problem = of_buffer(self.where, self._data, self._record) if self._verify else None
            return Reading(_from_buffer(self._data, wants), [] if problem is None else [problem])
        arena = Arena(sum(_size(want) for want in wants if want.target is None))
        mapper = Mapper([self.size] if lazily and self._local else [])
        values: list[Value] = []
        parts: list[Part] = []
        for want in wants:
            value: Value | None = mapper.view(self.where, self.size, want.held.header, want.rows)
            if value is None:
                value, more = _allocated(want, arena)
                parts += more
            values.append(value)
        parts.sort(key=lambda part: part.offset)
        job = Job(self.where, self._open, self.size, parts, self._record if self._verify else None)
        bad = [misfit(self.where, self.size, self._record)] if self._verify else []
        if not any(bad) and (parts or self._verify):
            bad = [problem for _, problem in read_jobs([job])]
        problems = [problem for problem in bad if problem is not None]
        return Reading(_native(values, [job]), problems, mapper.mapped, mapper.unaligned)


class Arrays:
    """Arrays by name, as ``load_program_state`` gives them; or pickled ones, which look the same."""

    def __init__(self, where: str, arrays: Mapping[str, Any]) -> None:
        self.where = where
        self._arrays = arrays

    def names(self) -> list[str]:
        return list(self._arrays)

    def look(self, name: str, kind: VarType) -> Held | Unreadable | None:
        array = self._arrays.get(name)
        if array is None:
            return None
        if kind == VarType.SELECTED_ROWS:
            return Unreadable(name, "an array, the program wants SelectedRows")
        try:
            dtype = convert_dtype(array.dtype)
        except TypeError as error:
            return Unreadable(name, str(error))
        return Held(name, lod_tensor.Header(dtype, tuple(array.shape), (), 0, array.nbytes, 0))

    def read(self, wants: Sequence[Want], *, lazily: bool = False) -> Reading:
        values: list[Value] = []
        for name, rows in ((want.held.name, want.rows) for want in wants):
            array = self._arrays[name]
            whole = array.read() if hasattr(array, "read") else np.asarray(array)
            values.append(LoDTensor(whole if rows is None else whole[slice(*rows)]))
        return Reading(values, [])


def _read_header(file: File, kind: VarType) -> Header:
    return selected_rows.read_header(file) if kind == VarType.SELECTED_ROWS else lod_tensor.read_header(file)


def _small_value(data: bytes, header: lod_tensor.Header) -> LoDTensor:
    """The value of a small file that was read whole."""
    view: Array = np.ndarray(header.shape, TENSOR_DTYPES[header.dtype].numpy, data, header.data_offset)
    return LoDTensor(lod_tensor.native(view.copy()), [list(level) for level in header.lod])


def _size(want: Want) -> int:
    header, rows = want.held.header, want.rows
    if rows is None:
        return header.data_bytes
    return header.data_bytes // max(header.shape[0], 1) * (rows[1] - rows[0])


def _part_of(value: Value, rows: tuple[int, int] | None) -> Value:
    if rows is None or not isinstance(value, LoDTensor):
        return value
    assert value.array is not None
    return LoDTensor(value.array[slice(*rows)])


def _allocated(want: Want, arena: Arena) -> tuple[Value, list[Part]]:
    """A value whose memory is still to be filled, and the parts of the file that fill it."""
    header, rows, target = want.held.header, want.rows, want.target
    dtype = TENSOR_DTYPES[header.dtype].numpy
    if isinstance(header, selected_rows.Header):
        numbers = np.empty(header.row_count, "<i8")
        array = arena.empty(header.shape, dtype)
        parts = [Part(_ROWS_AT, bytes_of(numbers)), Part(header.data_offset, bytes_of(array))]
        return SelectedRows(numbers, header.height, array), [part for part in parts if part.target.nbytes]
    offset, shape = header.data_offset, header.shape
    if rows is not None:
        offset, _ = header.rows(*rows)
        shape = (rows[1] - rows[0], *shape[1:])
    fits = target is not None and target.shape == shape and target.dtype == dtype
    array = target if fits and target is not None else arena.empty(shape, dtype)
    lod = [list(level) for level in header.lod] if rows is None else []
    return LoDTensor(array, lod), [Part(offset, bytes_of(array))] if array.nbytes else []


def _from_buffer(data: bytes, wants: Sequence[Want]) -> list[Value]:
    """Copies of values in a buffer; runs of small ones of the same form in one go."""
    arena = Arena(sum(_size(want) for want in wants))
    order = sorted(range(len(wants)), key=lambda number: wants[number].held.header.data_offset)
    values: list[Value] = []
    for run in _alike([wants[number] for number in order]):
        header = run[0].held.header
        assert isinstance(header, lod_tensor.Header)
        dtype = TENSOR_DTYPES[header.dtype].numpy
        if len(run) > 1:
            stride = run[1].held.header.data_offset - header.data_offset
            raw = np.frombuffer(
                data, np.uint8, stride * (len(run) - 1) + header.data_bytes, header.data_offset
            )
            raw = np.lib.stride_tricks.as_strided(raw, (len(run), header.data_bytes), (stride, 1))
            arrays = arena.empty((len(run), header.data_bytes), np.dtype(np.uint8))
            arrays[...] = raw
            arrays = lod_tensor.native(arrays.view(dtype)).reshape(len(run), *header.shape)
            values += [LoDTensor(array) for array in arrays]
            continue
        rows = run[0].rows
        array: Array = np.ndarray(header.shape, dtype, data, header.data_offset)
        array = array if rows is None else array[slice(*rows)]
        copy = arena.empty(array.shape, dtype)
        copy[...] = array
        lod = [list(level) for level in header.lod] if rows is None else []
        values.append(LoDTensor(lod_tensor.native(copy), lod))
    placed = dict(zip(order, values, strict=True))
    return [placed[number] for number in range(len(wants))]


def _alike(wants: Sequence[Want]) -> Iterator[list[Want]]:
    """Runs of small values of one form, which lie behind one another at equal distances."""
    run: list[Want] = []
    form: tuple[object, ...] | None = None
    stride = last = 0
    for want in wants:
        header = want.held.header
        assert isinstance(header, lod_tensor.Header)
        plain = want.rows is None and not header.lod and header.shape and 0 < header.data_bytes < _ALIKE
        this = (header.dtype, header.shape) if plain else None
        distance = header.data_offset - last
        if run and (this is None or this != form or (len(run) > 1 and distance != stride) or distance < 0):
            yield run
            run = []
        run.append(want)
        form, stride, last = this, distance, header.data_offset
    if run:
        yield run


def _native(values: list[Value], jobs: Sequence[Job]) -> list[Value]:
    """Values whose elements have this machine's order of bytes."""
    if not np.little_endian:
        filled = {id(part.target.obj) for job in jobs for part in job.parts}
        for value in values:
            if value.array is not None and id(value.array.base) in filled:
                lod_tensor.native(value.array)
    return values
