"""A server's part of a save: it writes its rows into files that trainer 0 has created."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Final

from paddlelike.core import LoDTensor, Scope, SelectedRows
from paddlelike.distributed.placement import Slice
from paddlelike.errors import FormatError, NotInitializedError, SaveError
from paddlelike.formats import elements
from paddlelike.formats.paddle import lod_tensor, selected_rows
from paddlelike.foundation.locks import close_at_end, close_files, open_file
from paddlelike.storage.interfaces import Buffer
from paddlelike.storage.local.files import File
from paddlelike.storage.names import relative_path
from paddlelike.storage.ranges import RangeHasher, RangeSums

_CHUNK: Final = 1 << 20  # bytes that are hashed, then written while they are in the cache


def write_rows(scope: Scope, slices: Iterable[Slice], directory: str, names: Iterable[str]) -> dict[str, Any]:
    """Write the rows of ``slices`` into the files ``names`` of a directory, at their offsets.

    A server never creates a file. It writes only into the existing file of a variable whose rows it has,
    or into an empty file for its shard. Otherwise any process that may request a save could make it write
    anywhere.

    Returns
    -------
    ``{"sums": {slice: the checksums of the range of the file that was written}}``, see
    :class:`paddlelike.storage.ranges.RangeSums`.

    Raises
    ------
    SaveError
        A file is missing, or belongs to another variable.
    NotInitializedError
        A variable has no value.
    """
    wanted = set(names)
    sums: dict[str, dict[str, Any]] = {}
    for one in slices:
        if one.file_name in wanted:
            path = str(Path(directory, relative_path(one.file_name)))
            write_one = _write_shard if one.is_selected_rows else _write_slice
            sums[one.name] = write_one(scope, one, path).to_json()
    return {"sums": sums}


def _write_slice(scope: Scope, one: Slice, path: str) -> RangeSums:
    value = _value(scope, one)
    if not isinstance(value, LoDTensor) or value.held_array is None or value.held_array.nbytes != one.nbytes:
        raise SaveError(
            f"the server at {one.endpoint} cannot save {one.name!r}: expected "
            f"{one.dtype.name}{list(one.shape)}, its scope holds {value!r:.80}"
        )
    try:
        with File(path) as file:
            header = lod_tensor.read_header(file)
            offset, _ = header.locate_rows(one.first_row, one.first_row + one.rows)
    except (FormatError, OSError) as error:
        raise _not_found(one, error) from error
    if header.dtype != one.dtype or header.shape != one.whole or header.surplus or header.lod:
        raise SaveError(
            f"the server at {one.endpoint} does not write into {path}: it is not the file of {one.origin!r}: "
            f"expected {one.dtype.name}{list(one.whole)}, it holds {header.dtype.name}{list(header.shape)}"
        )
    return _put(one, path, offset, [elements.view_elements(value.held_array)])


def _write_shard(scope: Scope, one: Slice, path: str) -> RangeSums:
    value = _value(scope, one)
    if not isinstance(value, SelectedRows) or value.held_array is None:
        raise SaveError(f"the server at {one.endpoint} cannot save {one.name!r}: it is not a table")
    try:
        with File(path) as file:
            size = file.size
    except OSError as error:
        raise _not_found(one, error) from error
    if size:
        raise SaveError(
            f"the server at {one.endpoint} does not write into {path}: it is not empty, so it is not the "
            "file that trainer 0 created"
        )
    return _put(one, path, 0, selected_rows.encode(value, dtype=one.dtype))


def _value(scope: Scope, one: Slice) -> object:
    holder = scope.find_var(one.name)
    if holder is None or holder.value is None:
        raise NotInitializedError(f"{one.name!r} cannot be saved by {one.endpoint}: it has no value")
    return holder.value


def _put(one: Slice, path: str, offset: int, buffers: Sequence[Buffer]) -> RangeSums:
    """Write buffers from an offset on; return the checksums of the written bytes."""
    hasher = RangeHasher(offset, sum(memoryview(buffer).nbytes for buffer in buffers))
    try:
        files: list[int] = []
        with close_at_end(files):
            open_file(files, path, os.O_WRONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0))
            for buffer in buffers:
                data = memoryview(buffer).cast("B")
                for at in range(0, len(data), _CHUNK):
                    piece = data[at : at + _CHUNK]
                    hasher.update(piece)
                    while piece:
                        count = os.pwrite(files[0], piece, offset)
                        piece, offset = piece[count:], offset + count
            close_files(files)
    except OSError as error:
        raise SaveError(f"the server at {one.endpoint} cannot write {path}: {error.strerror}") from error
    return hasher.sums()


def _not_found(one: Slice, error: Exception) -> SaveError:
    return SaveError(
        f"the server at {one.endpoint} does not find the file that trainer 0 created: {error}",
        hint="servers save by themselves only into a directory that all processes see; else save without "
        "by_servers=",
    )
