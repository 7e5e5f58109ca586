"""Values of any size in constant memory: mapped from the source where they lie, or from a temporary file.

Elements that lie in a local file as they do in memory are mapped. Others (compressed, pickled, strided,
remote) are read one variable at a time into a temporary file, which is mapped. Pages that have been written
to the target are given back, so that a conversion never holds more than one variable.
"""

from __future__ import annotations

import mmap
import os
import tempfile
from collections.abc import Iterable, Iterator
from typing import IO, Any, Final, NamedTuple, Self

import numpy as np

from paddlelike.core.dtypes import numpy_dtype
from paddlelike.core.tensor import Array, LoDTensor, SelectedRows
from paddlelike.formats.base import FileFormat, FolderFormat, Value
from paddlelike.formats.entry import Entry
from paddlelike.formats.sources import Buffer
from paddlelike.storage.names import relative_path

__all__ = ["Spool"]

_PIECE: Final = 8 << 20
_PAGE: Final = mmap.PAGESIZE


class _Mapping(NamedTuple):
    """Pages that an array lies in."""

    begin: int  # the address
    end: int
    pages: mmap.mmap


class Spool:
    """Gives values of a source without holding them; closes its temporary file at the end of the ``with``."""

    def __init__(self) -> None:
        self._file: IO[bytes] | None = None
        self._mappings: list[_Mapping] = []

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
            with open(path, "rb") as file:
                array = self._map(file, entry.offset, numpy_dtype(entry.dtype), entry.shape)
            return LoDTensor(array, [list(level) for level in entry.lod])
        return self.store(source_format.read(source, entry))

    def convert(self, value: Value, dtype: np.dtype[Any]) -> Value:
        """Return a value with elements of another type."""
        assert value.held_array is not None
        return self.store(_with_array(value, np.asarray(value.held_array, dtype)))

    def release(self, buffers: Iterable[Buffer]) -> Iterator[Buffer]:
        """Yield buffers in pieces, and give the pages of each back when the next is asked for.

        An empty buffer says that all values before it have been copied: their pages are given back too.
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
        if self._file is None:
            self._file = tempfile.TemporaryFile()  # noqa: SIM115  (closed by __exit__)
        offset = self._file.seek(0, os.SEEK_END)
        self._file.write(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)
        self._file.flush()
        return _with_array(value, self._map(self._file, offset, array.dtype, array.shape))

    def _map(self, file: IO[bytes], offset: int, dtype: np.dtype[Any], shape: tuple[int, ...]) -> Array:
        count = int(np.prod(shape, dtype=object)) * dtype.itemsize
        skipped = offset % mmap.ALLOCATIONGRANULARITY
        pages = mmap.mmap(file.fileno(), count + skipped, access=mmap.ACCESS_READ, offset=offset - skipped)
        flat = np.frombuffer(pages, np.uint8)
        address = flat.ctypes.data
        self._mappings.append(_Mapping(address, address + len(flat), pages))
        return flat[skipped:].view(dtype).reshape(shape)

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
    """Return the path of the local file that holds an entry, or None."""
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
