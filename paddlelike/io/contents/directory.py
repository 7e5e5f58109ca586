"""The values of a directory with one file per variable, for a load."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

import numpy as np

from paddlelike.core import TENSOR_DTYPES, Array, LoDTensor, VarType
from paddlelike.core.memory import Arena
from paddlelike.errors import FormatError, MissingFileError, StorageError
from paddlelike.formats.entry import Entry
from paddlelike.formats.paddle import lod_tensor
from paddlelike.formats.paddle.directory import VariableDirectory
from paddlelike.formats.paddle.recognize import find_dense_part
from paddlelike.foundation.near_names import find_near_names
from paddlelike.io.contents.allocation import allocate, count_bytes, get_offset, to_native
from paddlelike.io.contents.compare import compare_buffer, compare_file, compare_size
from paddlelike.io.contents.interface import Held, Reading, Unreadable, Value, Want
from paddlelike.io.contents.lazy import Mapper
from paddlelike.io.contents.read import Job, Part, read_jobs
from paddlelike.storage.hashing import PIECE, hash_bytes
from paddlelike.storage.local.files import read_front
from paddlelike.storage.location import File, LocalDirectory, Location
from paddlelike.storage.manifest import Record
from paddlelike.storage.names import relative_path

_FORMAT: Final = VariableDirectory()
_HEAD: Final = 4096  # bytes of a file that are read first: its header, or a whole small file

_LONGEST_HEADER: Final = 4096  # bytes before the elements of a dense tensor without LoD; they have about 100


class DirectoryContents:
    """A directory with one file per variable.

    Parameters
    ----------
    records
        The manifest's records of the files, to compare them with, or None for no comparison.
    complete
        Whether a file that cannot be compared with its record counts as bad.
    only
        The files to look for, or None to list the directory and use all files.

    Raises
    ------
    MissingFileError
        There is no such directory.
    """

    unnamed = None

    def __init__(
        self,
        location: Location,
        records: Mapping[str, Record] | None = None,
        *,
        complete: bool = True,
        only: Iterable[str] | None = None,
    ) -> None:
        self.where = location.path
        self._location = location
        self._local = isinstance(location, LocalDirectory)
        self._records = records
        self._complete = complete
        self._bad: dict[str, str] = {}
        if not location.exists():
            is_file = self._local and os.path.exists(location.path)
            what = "is a file, not a directory" if is_file else "does not exist"
            raise MissingFileError(
                f"nothing can be loaded: {'' if is_file else 'directory '}{location.path} {what}",
                hint=self._suggest_path(is_file=is_file),
            )
        self._names = (
            location.list_names() if only is None else sorted(n for n in set(only) if location.has(n))
        )
        self._known = set(self._names)

    def _suggest_path(self, *, is_file: bool) -> str:
        """Return a hint for a path that is a file instead of a directory, or does not exist."""
        folder, name = os.path.split(os.fspath(self.where))
        if is_file:
            from paddlelike.formats.explain import HEAD, explain  # late: for an error

            front = read_front(self.where, HEAD)
            known = explain(front, os.path.getsize(self.where)) if find_dense_part(front) is None else None
            return known or f"a combined file is read by dirname={folder or '.'!r}, filename={name!r}"
        beside = os.listdir(folder or ".") if self._local and os.path.isdir(folder or ".") else []
        near = [one for one in find_near_names(name, beside) if os.path.isdir(os.path.join(folder, one))]
        return f"did you mean {os.path.join(folder, near[0])!r}?" if near else "check the path"

    def names(self) -> list[str]:
        """Return the names of all files, sorted."""
        return self._names

    def look(self, name: str, kind: VarType) -> Held | Unreadable | None:
        """Return the header in the file of that name, or None if there is no such file."""
        try:  # the paths in a manifest were checked when it was read
            path = name if self._records is not None and name in self._records else relative_path(name)
        except StorageError as error:
            return Unreadable(name, error.message, error.hint)
        if path not in self._known:
            return None
        try:
            return self._look(path, kind)
        except (FormatError, StorageError) as error:
            record = self._find_record(path)
            if self._is_compared(record):  # a damaged header counts as a difference, too
                self._note(path, compare_file(path, self._opener(path), record))
            return Unreadable(path, error.message, error.hint)

    def _look(self, path: str, kind: VarType) -> Held:
        data = read_front(f"{self.where}/{path}", _HEAD + 1) if self._local else self._read_front(path)
        if len(data) > _HEAD or kind == VarType.SELECTED_ROWS:
            with self._location.open_file(path) as file:
                return Held(path, _FORMAT.read_entry(path, file, kind), None, file.size)
        if self._records is not None:
            record = self._records.get(path)
            same = record is not None and record.checksum == hash_bytes(data)  # the usual case
            if not same and self._is_compared(record):
                self._note(path, compare_buffer(path, data, record))
        try:
            header = _FORMAT.read_entry(path, data, kind)
        except FormatError as error:
            raise FormatError(f"{self._full(path)}: {error.message}", hint=error.hint) from error
        return Held(path, header, _copy_small(data, header), len(data))

    def _read_front(self, path: str) -> bytes:
        """Return all bytes of a small file, or somewhat more than ``_HEAD`` bytes of a large one."""
        with self._location.open_file(path) as file:
            return file.read_at(0, _HEAD + 1)

    def _full(self, path: str) -> str:
        return f"{self.where}/{path}"

    def _opener(self, path: str) -> Callable[[], File]:
        return lambda: self._location.open_file(path)

    def _find_record(self, path: str) -> Record | None:
        return None if self._records is None else self._records.get(path)

    def _is_compared(self, record: Record | None) -> bool:
        """Return whether a file must match a record, also if a complete manifest lacks the record."""
        if record is None or record.checksum is None:
            return self._records is not None and self._complete
        return True

    def _record_to_compare(self, want: Want) -> Record | None:
        """Return the record to compare a value with while it is read, or None without a comparison. Rows of a
        large file are compared by pieces, if the record has their checksums.
        """
        held = want.held
        record = self._find_record(held.name)
        if not self._is_compared(record):
            return None
        problem = compare_size(held.name, held.size, record)
        self._note(held.name, problem)
        if problem is not None or record is None:
            return None
        by_pieces = bool(record.pieces) or held.size <= PIECE
        return record if by_pieces or self._complete or not _is_part(want) else None

    def _note(self, path: str, problem: str | None) -> None:
        if problem is not None:
            self._bad[path] = problem

    def read(self, wants: Sequence[Want], *, lazily: bool = False) -> Reading:
        """Read values, several files at once.

        Raises
        ------
        FormatError, StorageError
            A file cannot be read, or was replaced after its header was read.
        """
        unread = [want for want in wants if want.held.value is None and want.target is None]
        arena = Arena(sum(count_bytes(want) for want in unread))
        mapper = Mapper([want.held.size for want in wants] if lazily and self._local else [])
        values: list[Value] = []
        jobs: list[Job] = []
        for want in wants:
            held = want.held
            if held.value is not None:
                values.append(_select_rows(held.value, want.rows))
                continue
            value: Value | None = mapper.view(self._full(held.name), held.size, held.header, want.rows)
            parts: list[Part] = []
            if value is None:
                value, parts = allocate(want, arena)
            values.append(value)
            record = self._record_to_compare(want)
            if parts or record is not None:
                opener, partial = self._opener(held.name), _is_part(want)
                if self._complete and record is not None and not record.pieces:
                    partial = False
                jobs.append(Job(held.name, opener, held.size, parts, record, partial))
        for name, problem in read_jobs(jobs):
            self._note(name, problem)
        return Reading(to_native(values, jobs), list(self._bad.values()), mapper.mapped, mapper.unaligned)


def _is_part(want: Want) -> bool:
    """Return whether a want covers only some rows of its file, by its rows or by the header of a slice."""
    header, size = want.held.header, want.held.size
    if want.rows is not None or header.lod or header.height is not None or header.offset is None:
        return want.rows is not None
    return header.offset > _LONGEST_HEADER or header.offset + header.nbytes + header.surplus < size


def _copy_small(data: bytes, header: Entry) -> LoDTensor:
    """Return the value of a small file that was read whole."""
    view: Array = np.ndarray(header.shape, TENSOR_DTYPES[header.dtype].numpy, data, get_offset(header))
    lod = [list(level) for level in header.lod] if header.lod else None
    return LoDTensor(lod_tensor.to_native(view.copy()), lod)


def _select_rows(value: Value, rows: tuple[int, int] | None) -> Value:
    if rows is None or not isinstance(value, LoDTensor):
        return value
    assert value.held_array is not None
    return LoDTensor(value.held_array[slice(*rows)])
