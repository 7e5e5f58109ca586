"""A saved directory as one server sees it: under the server's names, with the server's rows of each file."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from paddlelike.core import LoDTensor, SelectedRows, VarType
from paddlelike.distributed.checkpoint.shards import Shards, find_misfit
from paddlelike.distributed.placement import TABLE_FOLDER, Kind, Slice
from paddlelike.errors import LoadError
from paddlelike.foundation.warn import warn_user
from paddlelike.io.contents.interface import Contents, Held, Positional, Reading, Unreadable, Value, Want
from paddlelike.storage.location import locate
from paddlelike.storage.manifest import Manifest


class View:
    """The contents of a directory for the load of a server's program.

    Every file is compared with the placement (dtype and shape of the whole variable) before any of its rows
    are read. A size that differs from the manifest gives a warning. Only the server's own rows are read.

    Parameters
    ----------
    contents
        The directory.
    slices
        The server's slices that are loaded.
    others
        Variables of the directory that other processes load.
    """

    unnamed = None

    def __init__(self, contents: Contents, slices: Iterable[Slice], others: Iterable[str]) -> None:
        self.where = contents.where
        if contents.unnamed is not None:
            _name_values(contents.unnamed)
        self._contents = contents
        self._slices = {one.name: one for one in slices}
        self._others = set(others) - {one.origin for one in self._slices.values()}
        where = locate(self.where)
        self._manifest: Manifest | None = where.manifest()
        self._shards = Shards(where, contents, self._manifest)

    def names(self) -> list[str]:
        """Return the names of the files that no other process loads."""
        return [
            name
            for name in self._contents.names()
            if name not in self._others and not name.startswith(TABLE_FOLDER + "/")
        ]

    def look(self, name: str, kind: VarType) -> Held | Unreadable | None:
        one = self._slices.get(name)
        if one is None:
            return self._contents.look(name, kind)
        if one.is_selected_rows:
            return self._shards.look(one)
        if one.kind == Kind.GROWING:
            return self._look_growing(one)
        found = self._contents.look(one.origin, VarType.LOD_TENSOR)
        if found is None and one.name != one.origin:
            last = one.first_row + one.rows
            why = f"there is no such file; {one.name} is rows {one.first_row} to {last} of it"
            return Unreadable(one.origin, why, is_missing=True)
        if not isinstance(found, Held):
            return found
        problem = self._problem(one, found)
        if problem is not None:
            return Unreadable(found.name, problem)
        return _slice_rows(found, one) if one.is_slice else found

    def read(self, wants: Sequence[Want], *, lazily: bool = False) -> Reading:
        reading = self._shards.read(wants, lazily=lazily)
        pairs = zip(wants, reading.values, strict=True)
        return reading._replace(values=[self._keep_own(want.held.name, value) for want, value in pairs])

    def _look_growing(self, one: Slice) -> Held | Unreadable | None:
        found = self._contents.look(one.origin, VarType.SELECTED_ROWS)
        misfit = find_misfit(found, one.whole, one.dtype) if isinstance(found, Held) else None
        return misfit or found

    def _keep_own(self, name: str, value: Value) -> Value:
        """Return the rows of a growing table whose ids belong to this server."""
        one = self._slices.get(name)
        if one is None or one.kind != Kind.GROWING:
            return value
        assert isinstance(value, SelectedRows)
        assert value.held_array is not None
        own = value.row_array % one.stride == one.first_row
        return SelectedRows(value.row_array[own], value.height(), value.held_array[own])

    def _problem(self, one: Slice, found: Held) -> str | None:
        """Return why a file does not hold the variable of this slice, or None if it does."""
        header = found.header
        is_scalar = math.prod(header.shape) == math.prod(one.whole) == 1
        if header.dtype != one.dtype or (header.shape != one.whole and not is_scalar):
            return (
                f"file {found.name} holds {header.dtype.name}{list(header.shape)}, the servers' slices are "
                f"cut from {one.dtype.name}{list(one.whole)}"
            )
        if header.lod:
            return f"file {found.name} has {len(header.lod)} LoD levels: it cannot be read in slices"
        self._warn_if_replaced(found)
        return None

    def _warn_if_replaced(self, found: Held) -> None:
        """Warn of a file that differs from the saved one: real Fluid may have saved into the directory."""
        record = None if self._manifest is None else self._manifest.files.get(found.name)
        if record is not None and found.size and record.size != found.size:
            warn_user(
                f"{self.where}/{found.name} has {found.size} bytes, the manifest says {record.size}: it was "
                "written by another program after the save"
            )


def _name_values(contents: Positional) -> None:
    """Name the values of a combined file as the manifest does.

    The server's program has other variables than the saved program, so its names cannot be used.

    Raises
    ------
    LoadError
        There is no manifest.
    """
    names = contents.saved_names
    if names is None:
        raise LoadError(
            f"{contents.where} is a combined file, which stores no names, and it has no manifest",
            hint="save the variables without filename=, a file each, for parameter servers",
        )
    contents.assign_names(names)


def _slice_rows(found: Held, one: Slice) -> Held:
    """Return the rows of a slice as a separate value in the same file, with another offset and shape."""
    header = found.header
    last = one.first_row + one.rows
    offset, size = header.locate_rows(one.first_row, last)
    part = header._replace(shape=one.shape, offset=offset, nbytes=size)
    value = found.value
    if isinstance(value, LoDTensor):
        assert value.held_array is not None
        value = LoDTensor(value.held_array[one.first_row : last].copy())
    return Held(found.name, part, value, found.size)
