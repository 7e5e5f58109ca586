"""Paddle's directory of variables: one stream per variable, in a file of the variable's name.

A file does not say whether it holds a dense variable or SelectedRows, so a reader passes the kind that it
expects, or both are tried. Programs and this package's manifest are not variables, although real Paddle's
loaders read every file they find.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any, Final

import numpy as np

from paddlelike.core import Array, LoDTensor, SelectedRows, VarType
from paddlelike.errors import FormatError
from paddlelike.formats import elements
from paddlelike.formats.base import SNIFF_BYTES, Capabilities, FolderFormat, Value, Values
from paddlelike.formats.entry import Entry
from paddlelike.formats.paddle import lod_tensor, selected_rows
from paddlelike.formats.paddle.recognize import find_dense_part, is_selected_rows
from paddlelike.formats.sources import Buffer, Folder, Readable
from paddlelike.lazy import dataclass

NO_VARIABLES: Final = frozenset({"__model__", "__model__.main_program", "__manifest__"})  # names of files
_SNIFFED: Final = 8  # files that are looked into
_TINY: Final = 512  # bytes of elements that are copied: a view takes as much memory, and more time


@dataclass(frozen=True)
class VariableDirectory(FolderFormat):
    """One file per variable. The file has the name of the variable."""

    name = "directory"
    title = "a directory of Paddle variables"
    holds = Capabilities(lod=True, selected_rows=True, order=False)

    def sniff(self, folder: Folder) -> bool:
        try:
            names = [name for name in folder.list_names() if name not in NO_VARIABLES]
            return any(self._is_variable(folder, name) for name in names[:_SNIFFED])
        except FormatError:
            return False
        except OSError as error:
            if error.errno is not None:  # the system refuses to read it, which says nothing of its format
                raise
            return False

    def entries(self, source: Folder) -> list[Entry]:
        found = []
        for name in source.list_names():
            if name not in NO_VARIABLES:
                with source.open_file(name) as file:
                    found.append(self.read_entry(name, file))
        return found

    def read_entry(self, name: str, file: Readable, kind: VarType | None = None) -> Entry:
        """Return the entry in the file ``name``; ``kind`` is SELECTED_ROWS, LOD_TENSOR, or None for either.

        Raises
        ------
        FormatError
            The file holds no such variable.
        """
        if kind is None:
            try:
                return _dense_entry(name, lod_tensor.read_header(file))
            except FormatError as error:
                try:
                    return _rows_entry(name, selected_rows.read_header(file))
                except FormatError:
                    raise error from None
        if kind == VarType.SELECTED_ROWS:
            return _rows_entry(name, selected_rows.read_header(file))
        plain = lod_tensor.find_plain(file) if type(file) is bytes else None
        if plain is not None:  # true for most of thousands of small files
            dtype, shape, lod, offset, nbytes, surplus = plain
            return Entry(name, dtype, shape, lod, offset, nbytes, name, None, 0, surplus)
        return _dense_entry(name, lod_tensor.read_header(file))

    def read(self, source: Folder, entry: Entry, *, into: Array | None = None) -> Value:
        if entry.height is None:
            return super().read(source, entry, into=into)
        with source.open_file(entry.file) as file:
            return selected_rows.read(file, into=into)

    def write(self, values: Values) -> dict[str, Iterable[Buffer]]:
        self.check(values)
        return {name: encode_value(value) for name, value in sorted(values.items())}

    def _is_variable(self, folder: Folder, name: str) -> bool:
        with folder.open_file(name) as file:
            head = bytes(file.read_at(0, SNIFF_BYTES))
            return find_dense_part(head) is not None or is_selected_rows(head, file)


def encode_value(value: Value | Array) -> list[Buffer]:
    """Return the file of one variable as buffers: the header, and the array's own memory if it is not tiny.

    Raises
    ------
    FormatError
        The value holds no array.
    """
    if isinstance(value, SelectedRows):
        return selected_rows.encode(value)
    array = value if isinstance(value, np.ndarray) else value.held_array
    if array is None or (isinstance(value, LoDTensor) and value._lod):
        return lod_tensor.encode(value)
    dtype = array.dtype
    header = _encode_plain_header(dtype, array.shape)
    if array.nbytes <= _TINY and np.little_endian and dtype.isnative:
        return [header + array.tobytes()]
    return [header, elements.view_elements(array)]


@lru_cache(4096)  # of thousands of variables, most have the type and shape of another one
def _encode_plain_header(dtype: np.dtype[Any], shape: tuple[int, ...]) -> bytes:
    return lod_tensor.encode_header(dtype, shape)


def make_facts(
    name: str, dtype: str, shape: Iterable[int], lod: Sequence[Sequence[int]] = (), height: int | None = None
) -> dict[str, Any]:
    """Return the properties that a manifest records for a variable's file, besides size and checksum.

    Parameters
    ----------
    dtype
        The name of a VarType, such as "FP32".
    height
        The height of SelectedRows. None means a dense tensor.
    """
    kind = "lod_tensor" if height is None else "selected_rows"
    lists = [list(level) for level in lod]
    facts: dict[str, Any] = {
        "variable": name,
        "kind": kind,
        "dtype": dtype,
        "shape": list(shape),
        "lod": lists,
    }
    return facts if height is None else facts | {"height": height}


def _dense_entry(name: str, header: lod_tensor.Header) -> Entry:
    dtype, shape, lod, offset, nbytes, surplus = header
    return Entry(name, dtype, shape, lod, offset, nbytes, name, None, 0, surplus)


def _rows_entry(name: str, header: selected_rows.Header) -> Entry:
    return Entry(
        name,
        header.dtype,
        header.shape,
        offset=header.data_offset,
        nbytes=header.data_bytes,
        file=name,
        height=header.height,
        row_count=header.row_count,
        surplus=header.surplus,
    )
