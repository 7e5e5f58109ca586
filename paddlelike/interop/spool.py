"""Values of any size in constant memory, mapped from the source or from a temporary file.

Elements with the same bytes in a local file as in memory are mapped. Others (compressed, pickled, strided,
remote) are read one variable at a time into a temporary file, which is mapped. Pages that have been written
to the target are released, so that a conversion never holds more than one variable.

A mapping keeps a file open, and a process may have few open files (usually 1,024). So a file is mapped once
for all of its variables, the temporary file in large regions; beyond 256 files, the others are copied.
"""

from __future__ import annotations

import mmap
import os
import tempfile
from collections.abc import Iterable, Iterator
from typing import IO, TYPE_CHECKING, Any, Final, NamedTuple, Self

import numpy as np

from paddlelike.core import Array, LoDTensor, SelectedRows, numpy_dtype
from paddlelike.core.dtypes import widen_bfloat16
from paddlelike.errors import FormatError, SaveError, StorageError
from paddlelike.formats.base import FileFormat, FolderFormat, Value
from paddlelike.formats.entry import Entry
from paddlelike.formats.sources import Buffer
from paddlelike.storage.names import relative_path
from paddlelike.storage.problems import explain

if TYPE_CHECKING:
    from paddlelike.core import DtypeLike

_PIECE: Final = 8 << 20
_PAGE: Final = mmap.PAGESIZE
_GRAIN: Final = mmap.ALLOCATIONGRANULARITY
_REGION: Final = 1 << 28  # bytes of the temporary file that are mapped at once; sparse until written
_MOST_FILES: Final = 256


class _Mapping(NamedTuple):
    """The memory pages that contain an array."""

    begin: int  # the address
    end: int
    pages: mmap.mmap


class Spool:
    """Yields values of a source without keeping them; its temporary file is closed at the end of the
    ``with``.
    """

    def __init__(self) -> None:
        self._file: IO[bytes] | None = None
        self._mappings: list[_Mapping] = []
        self._mapped: dict[str, Array] = {}  # path: the bytes
        self._room: Array = np.empty(0, np.uint8)  # what is left of the last region of the temporary file
        self._end = 0  # bytes written to it

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._file is not None:
            self._file.close()

    def value(self, source_format: FileFormat | FolderFormat, source: Any, entry: Entry) -> Value:
        """Return a value of a source, mapped.

        Raises FormatError when it is damaged.
        """
        path = _local_path(source, entry)
        if path is not None and entry.offset is not None and entry.nbytes and entry.height is None:
            flat = self._map_file(path)
            if flat is not None:
                held = flat[entry.offset : entry.offset + entry.nbytes]
                if len(held) < entry.nbytes:
                    raise FormatError(f"{entry.name!r:.80}: {path} became shorter while it was read")
                array = held.view(numpy_dtype(entry.dtype)).reshape(entry.shape)
                return LoDTensor(array, [list(level) for level in entry.lod])
        return self.store(source_format.read(source, entry))

    def convert(self, value: Value, dtype: DtypeLike | None) -> Value:
        """Return a floating-point value with another element type; None leaves it unchanged."""
        array = value.held_array
        assert array is not None
        is_bfloat16 = array.dtype == np.uint16
        if dtype is None or not (array.dtype.kind == "f" or is_bfloat16):
            return value
        wanted = numpy_dtype(dtype)
        if array.dtype == wanted:
            return value
        if wanted.kind != "f":
            raise FormatError(
                f"dtype={dtype!r}: floating-point elements are converted to float16, float32 or float64"
            )
        numbers = widen_bfloat16(array) if is_bfloat16 else array
        return self.store(_with_array(value, np.asarray(numbers, wanted)))

    def release(self, buffers: Iterable[Buffer]) -> Iterator[Buffer]:
        """Yield buffers in pieces; release the pages of a piece when the next is requested.

        An empty buffer means that all values before it have been copied; their pages are released too.
        """
        for buffer in buffers:
            if not len(buffer):
                self._give_all_back()
                continue
            view = memoryview(buffer).cast("B")
            for at in range(0, len(view), _PIECE):
                piece = view[at : at + _PIECE]
                yield piece
                self._give_back(piece)

    def store(self, value: Value) -> Value:
        """Return the value with its elements in the temporary file."""
        array = value.held_array
        assert array is not None
        if array.nbytes < _PAGE:
            return value
        try:
            if self._file is None:
                self._file = tempfile.TemporaryFile()  # noqa: SIM115  (closed by __exit__)
            taken = -(-array.nbytes // _PAGE) * _PAGE
            if taken > len(self._room):
                self._end = -(-(self._end + len(self._room)) // _GRAIN) * _GRAIN
                size = max(taken, _REGION)
                self._file.truncate(self._end + size)
                self._room = self._map(self._file, self._end, size)
            self._file.seek(self._end)
            self._file.write(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)
            self._file.flush()
        except OSError as error:
            raise explain(SaveError, "the temporary file ($TMPDIR) cannot be written", error) from error
        held, self._room, self._end = self._room[: array.nbytes], self._room[taken:], self._end + taken
        return _with_array(value, held.view(array.dtype).reshape(array.shape))

    def _map_file(self, path: str) -> Array | None:
        """Return the mapped bytes of a file; None if too many files are mapped."""
        if path not in self._mapped:
            if len(self._mapped) >= _MOST_FILES:
                return None
            try:
                with open(path, "rb") as file:
                    self._mapped[path] = self._map(file, 0, 0)
            except OSError as error:
                raise explain(StorageError, f"{path} cannot be read", error) from error
        return self._mapped[path]

    def _map(self, file: IO[bytes], offset: int, size: int) -> Array:
        pages = mmap.mmap(file.fileno(), size, access=mmap.ACCESS_READ, offset=offset)
        flat = np.frombuffer(pages, np.uint8)
        self._mappings.append(_Mapping(flat.ctypes.data, flat.ctypes.data + len(flat), pages))
        return flat

    def _give_all_back(self) -> None:
        for mapping in self._mappings if hasattr(mmap, "MADV_DONTNEED") else ():
            mapping.pages.madvise(mmap.MADV_DONTNEED)

    def _give_back(self, piece: memoryview) -> None:
        if not hasattr(mmap, "MADV_DONTNEED") or not len(piece):
            return
        address = np.frombuffer(piece, np.uint8).ctypes.data
        for mapping in self._mappings:
            if mapping.begin <= address < mapping.end:
                first = (address - mapping.begin) // _PAGE * _PAGE
                last = (address + len(piece) - mapping.begin) // _PAGE * _PAGE
                if last > first:
                    mapping.pages.madvise(mmap.MADV_DONTNEED, first, last - first)
                return


def _local_path(source: object, entry: Entry) -> str | None:
    """Return the path of the local file that holds an entry, or None for other sources."""
    path = getattr(source, "path", None)
    if not isinstance(path, str):
        return None
    if entry.file:
        path = os.path.join(path, relative_path(entry.file))
    return path if os.path.isfile(path) else None


def _with_array(value: Value, array: Array) -> Value:
    if isinstance(value, SelectedRows):
        return SelectedRows(value.rows(), value.height(), array)
    return LoDTensor(array, value.lod())
