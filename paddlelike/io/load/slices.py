"""Some rows of one saved variable, read without the others."""

from __future__ import annotations

import os
from collections.abc import Iterable

from paddlelike.core.memory import Arena
from paddlelike.core.tensor import Array
from paddlelike.errors import LoadError, StorageError
from paddlelike.formats import lod_tensor
from paddlelike.framework.graph.program import Program
from paddlelike.framework.graph.variable import Variable
from paddlelike.io.load.contents import Combined
from paddlelike.io.load.load import names_of
from paddlelike.io.load.match import near_names
from paddlelike.io.load.read import Job, Part, bytes_of, read_jobs
from paddlelike.io.save import asynchronous
from paddlelike.io.verify import record_of
from paddlelike.storage.location import Location, locate

__all__ = ["load_slice"]


def load_slice(
    dirname: str | os.PathLike[str],
    name: str,
    rows: tuple[int, int],
    *,
    filename: str | None = None,
    names: Iterable[Variable | str] | Program | None = None,
) -> Array:
    """The rows ``rows[0]`` to ``rows[1]`` (not included) of a saved variable, as a new array.

    Only the file's header (one read of 4 kB at most) and the bytes of these rows are read; a large slice in
    several ranges at once. No program and no executor are needed.

    Parameters
    ----------
    filename
        The combined file that holds the variable; None: it has a file of its own.
    names
        The names of what the combined file holds, or the program it was saved from; not needed where this
        package saved it, as the manifest has them.

    Raises
    ------
    LoadError
        There is no such variable, it is no dense tensor, or it has not so many rows.

    >>> import tempfile
    >>> import numpy as np
    >>> from paddlelike.storage.local.transaction import write_all
    >>> table = np.arange(10, dtype="float32").reshape(5, 2)
    >>> directory = tempfile.mkdtemp()
    >>> write_all(directory, {"emb": lod_tensor.encode(table)})
    >>> load_slice(directory, "emb", (1, 3)).tolist()
    [[2.0, 3.0], [4.0, 5.0]]
    """
    start, stop = _checked(rows)
    where = locate(dirname)
    asynchronous.finish()
    if filename is None:
        file_name, header, size = _own_file(where, name)
    else:
        file_name, header, size = _in_combined(where, name, filename, names)
    if header.lod:
        raise LoadError(
            f"{name!r} in {where.path} has {len(header.lod)} LoD levels: it cannot be read in slices"
        )
    height = header.shape[0] if header.shape else 0
    if not 0 <= start <= stop <= height:
        raise LoadError(
            f"rows {start} to {stop} of {name!r} in {where.path}: it has {height} rows "
            f"({header.dtype.name}{list(header.shape)})",
            hint=f"0 <= first <= last <= {height}",
        )
    offset, nbytes = header.rows(start, stop)
    array = Arena(nbytes).empty((stop - start, *header.shape[1:]), lod_tensor.element_type(header))
    if nbytes:
        job = Job(file_name, lambda: where.open_file(file_name), size, [Part(offset, bytes_of(array))])
        read_jobs([job])
    return lod_tensor.native(array)


def _checked(rows: tuple[int, int]) -> tuple[int, int]:
    try:
        start, stop = (int(row.__index__()) for row in rows)
    except (AttributeError, TypeError, ValueError) as error:
        raise TypeError(f"rows is the first row and the one after the last, not {rows!r}") from error
    return start, stop


def _own_file(where: Location, name: str) -> tuple[str, lod_tensor.Header, int]:
    where.recover()  # a save that was interrupted there is finished now
    try:
        with where.open_file(name) as file:
            return name, lod_tensor.read_header(file), file.size
    except StorageError as error:
        near = near_names(name, where.list_names()) if where.exists() else ""
        raise LoadError(f"{name!r} cannot be read: {error.message}{near}", hint=error.hint) from error


def _in_combined(
    where: Location, name: str, filename: str, names: Iterable[Variable | str] | Program | None
) -> tuple[str, lod_tensor.Header, int]:
    where.recover()
    contents = Combined(filename, where, record=record_of(where, filename, needed=False), only_headers=True)
    given = names_of(names)
    known = contents.saved_names if given is None else sorted(given)
    if known is None:
        raise LoadError(
            f"{contents.where} is a combined file, which stores no names",
            hint="pass names=, the variables it holds or the program it was saved from",
        )
    if len(known) != len(contents.headers):
        raise LoadError(f"{contents.where} holds {len(contents.headers)} variables, names= has {len(known)}")
    if name not in known:
        raise LoadError(f"{contents.where} does not hold {name!r}{near_names(name, known)}")
    return filename, contents.headers[known.index(name)], contents.size
