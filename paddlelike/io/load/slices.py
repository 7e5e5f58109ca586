"""Read some rows of one saved variable without the others."""

from __future__ import annotations

import os
from collections.abc import Iterable

from paddlelike.core import Array, VarType
from paddlelike.errors import LoadError, StorageError
from paddlelike.formats.paddle.directory import VariableDirectory
from paddlelike.foundation.near_names import suggest_names
from paddlelike.framework import Program, Variable
from paddlelike.io import asynchronous
from paddlelike.io.contents.directory import DirectoryContents
from paddlelike.io.contents.file import FileContents
from paddlelike.io.contents.interface import Contents, Held, Want
from paddlelike.io.deltas.contents import has_chains, open_directory
from paddlelike.io.load.request import list_names
from paddlelike.io.load.source import read_stable
from paddlelike.io.verify import Comparison, check_problems, choose_comparison, get_record
from paddlelike.storage.location import Location, locate
from paddlelike.storage.names import relative_path


def load_slice(
    dirname: str | os.PathLike[str],
    name: str,
    rows: tuple[int, int],
    *,
    filename: str | None = None,
    names: Iterable[Variable | str] | Program | None = None,
    verify: bool | None = None,
) -> Array:
    """Read the rows from ``rows[0]`` up to ``rows[1]``, exclusive, of a saved variable into a new array.

    Only the file's header (at most 4 kB) and the bytes of these rows are read; several threads read a large
    slice. A program or an executor is not needed.

    Parameters
    ----------
    dirname
        The directory that was saved.
    name
        The name of the variable.
    rows
        The first row, and the row after the last.
    filename
        The file that holds this variable among others; None if it has a file of its own.
    names
        The names of the variables in a combined file, or the program it was saved from. Not needed where this
        package saved it, because the manifest records them.
    verify
        Whether to compare the pieces of 1 MiB that contain the rows with the manifest. With None, they are
        compared if the manifest has checksums of pieces. With True, a manifest without them is an error.

    Returns
    -------
    numpy.ndarray
        (rows[1] - rows[0], ...), in the dtype of the file; it owns its memory.

    Raises
    ------
    LoadError
        There is no such variable, it is not a dense tensor, it has fewer rows, its bytes differ from the
        saved ones, or it was replaced each time it was read.
    TypeError
        ``rows`` is not a pair of integers.

    >>> import tempfile
    >>> import numpy as np
    >>> from paddlelike.formats.paddle import lod_tensor
    >>> from paddlelike.storage.local.transaction import write_all
    >>> table = np.arange(10, dtype="float32").reshape(5, 2)
    >>> directory = tempfile.mkdtemp()
    >>> write_all(directory, {"emb": lod_tensor.encode(table)})
    >>> load_slice(directory, "emb", (1, 3)).tolist()
    [[2.0, 3.0], [4.0, 5.0]]
    """
    first, last = _check_rows(rows)
    where = locate(dirname)
    asynchronous.wait_for_pending()

    def read() -> Array:
        comparison = choose_comparison(where, filename, verify=verify, lazy=False)
        contents: Contents
        if filename is None:
            if has_chains(where, [name]):
                contents = open_directory(where, comparison.records, complete=comparison.complete)
                held = _find_held(contents, name)
            else:
                held = _find_file(where, name)
                contents = DirectoryContents(
                    where, comparison.records, complete=comparison.complete, only=[held.name]
                )
        else:
            contents = _open_file(where, filename, names, comparison)
            held = _find_in_file(contents, name)
        _check_extent(held, name, where, first, last)
        reading = contents.read([Want(held, (first, last))])
        check_problems(where, comparison, reading.bad, shown=contents.where, count=len(reading.bad) + 1)
        array = reading.values[0].held_array
        assert array is not None
        return array

    return read_stable(where, read)


def _check_extent(held: Held, name: str, where: Location, first: int, last: int) -> None:
    """Raise LoadError unless a variable has rows and these rows are among them."""
    header = held.header
    if header.lod:
        raise LoadError(
            f"{name!r} in {where.path} has {len(header.lod)} LoD levels: it cannot be read in slices",
            hint="fluid.io.load_vars reads it whole, with its LoD",
        )
    height = header.shape[0] if header.shape else 0
    if not 0 <= first <= last <= height:
        raise LoadError(
            f"rows {first} to {last} of {name!r} in {where.path}: it has {height} rows "
            f"({header.dtype.name}{list(header.shape)})",
            hint=f"choose 0 <= first <= last <= {height}",
        )


def _check_rows(rows: tuple[int, int]) -> tuple[int, int]:
    try:
        start, stop = (int(row.__index__()) for row in rows)
    except (AttributeError, TypeError, ValueError) as error:
        raise TypeError(f"rows must be (first row, row after the last), not {rows!r}") from error
    return start, stop


def _find_held(contents: Contents, name: str) -> Held:
    """Return the header of a variable in a directory with chains of deltas."""
    found = contents.look(name, VarType.LOD_TENSOR)
    if isinstance(found, Held):
        return found
    if found is None:
        what, hint = f"there is no such file{suggest_names(name, contents.names(), lead='; ')}", None
    else:
        what, hint = found.what, found.hint
    raise LoadError(f"{name!r} of {contents.where} cannot be read: {what}", hint=hint)


def _find_file(where: Location, name: str) -> Held:
    """Return the header in a variable's own file."""
    try:
        with where.open_file(name) as file:
            path = relative_path(name)
            return Held(path, VariableDirectory().read_entry(path, file, VarType.LOD_TENSOR), None, file.size)
    except StorageError as error:
        near = suggest_names(name, where.list_names(), lead="; ") if where.exists() else ""
        raise LoadError(f"{name!r} cannot be read: {error.message}{near}", hint=error.hint) from error


def _open_file(
    where: Location, filename: str, names: Iterable[Variable | str] | Program | None, comparison: Comparison
) -> FileContents:
    """Return the file that holds several variables, under their names."""
    contents = FileContents(
        filename,
        where,
        verify=comparison.complete or comparison.covers([filename]),
        record=get_record(where, filename, needed=False),
        only_headers=True,
    )
    if contents.unnamed is None:
        return contents
    given = list_names(names)
    known = contents.saved_names if given is None else sorted(given)
    if known is None:
        raise LoadError(
            f"{contents.where} is a combined file, which stores no names",
            hint="pass names=, the variables it holds or the program it was saved from",
        )
    if len(known) != len(contents.headers):
        raise LoadError(
            f"{contents.where} holds {len(contents.headers)} variables, names= has {len(known)}",
            hint="pass the variables of one save, all of them",
        )
    contents.assign_names(known)
    return contents


def _find_in_file(contents: Contents, name: str) -> Held:
    found = contents.look(name, VarType.LOD_TENSOR)
    if not isinstance(found, Held):
        near = suggest_names(name, contents.names(), lead="; ")
        raise LoadError(f"{contents.where} does not hold {name!r}{near}")
    return found
