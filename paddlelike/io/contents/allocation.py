"""Memory for the values of a load, and the parts of files that fill it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np

from paddlelike.core import TENSOR_DTYPES, Array, LoDTensor, SelectedRows
from paddlelike.core.memory import Arena
from paddlelike.core.views import view_strided
from paddlelike.formats.entry import Entry
from paddlelike.formats.paddle import lod_tensor, selected_rows
from paddlelike.io.contents.interface import Value, Want
from paddlelike.io.contents.read import Job, Part, view_bytes

_SMALL: Final = 64 << 10  # bytes; larger arrays are copied one by one


def count_bytes(want: Want) -> int:
    """Return the size of the requested elements."""
    header, rows = want.held.header, want.rows
    if rows is None:
        return header.nbytes
    return header.nbytes // max(header.shape[0], 1) * (rows[1] - rows[0])


def allocate(want: Want, arena: Arena) -> tuple[Value, list[Part]]:
    """Return a value whose memory is still to be filled, and the parts of its file that fill it."""
    header, rows, target = want.held.header, want.rows, want.target
    dtype = TENSOR_DTYPES[header.dtype].numpy
    if header.height is not None:
        ids = np.empty(header.row_count, "<i8")
        array = arena.empty(header.shape, dtype)
        parts = [Part(selected_rows.IDS_OFFSET, view_bytes(ids)), Part(get_offset(header), view_bytes(array))]
        return SelectedRows(ids, header.height, array), [part for part in parts if part.target.nbytes]
    offset, shape = get_offset(header), header.shape
    if rows is not None:
        offset, _ = header.locate_rows(*rows)
        shape = (rows[1] - rows[0], *shape[1:])
    fits = target is not None and target.shape == shape and target.dtype == dtype
    array = target if fits and target is not None else arena.empty(shape, dtype)
    lod = [list(level) for level in header.lod] if rows is None else []
    return LoDTensor(array, lod), [Part(offset, view_bytes(array))] if array.nbytes else []


def copy_from(data: bytes, wants: Sequence[Want]) -> list[Value]:
    """Copy values out of a file in memory; consecutive small values of one type and shape are copied at
    once.
    """
    arena = Arena(sum(count_bytes(want) for want in wants))
    order = sorted(range(len(wants)), key=lambda index: get_offset(wants[index].held.header))
    values: list[Value] = []
    for run in _group_runs([wants[index] for index in order]):
        values += _copy_run(data, run, arena) if len(run) > 1 else [_copy_one(data, run[0], arena)]
    placed = dict(zip(order, values, strict=True))
    return [placed[index] for index in range(len(wants))]


def get_offset(entry: Entry) -> int:
    """Return the offset of the elements of an entry that is not encoded."""
    assert entry.offset is not None
    return entry.offset


def to_native(values: list[Value], jobs: Sequence[Job]) -> list[Value]:
    """Return the values; those filled by ``jobs`` are converted to this machine's byte order."""
    if not np.little_endian:
        filled = {id(part.target.obj) for job in jobs for part in job.parts}
        for value in values:
            if value.held_array is not None and id(value.held_array.base) in filled:
                lod_tensor.to_native(value.held_array)
    return values


def _copy_one(data: bytes, want: Want, arena: Arena) -> Value:
    header, rows = want.held.header, want.rows
    dtype = TENSOR_DTYPES[header.dtype].numpy
    array: Array = np.ndarray(header.shape, dtype, data, get_offset(header))
    array = array if rows is None else array[slice(*rows)]
    copy = arena.empty(array.shape, dtype)
    copy[...] = array
    lod = [list(level) for level in header.lod] if rows is None else []
    return LoDTensor(lod_tensor.to_native(copy), lod)


def _copy_run(data: bytes, run: Sequence[Want], arena: Arena) -> list[Value]:
    header = run[0].held.header
    dtype = TENSOR_DTYPES[header.dtype].numpy
    stride = get_offset(run[1].held.header) - get_offset(header)
    size = stride * (len(run) - 1) + header.nbytes
    raw = np.frombuffer(data, np.uint8, size, get_offset(header))
    raw = view_strided(raw, (len(run), header.nbytes), (stride, 1))
    arrays = arena.empty((len(run), header.nbytes), np.dtype(np.uint8))
    arrays[...] = raw
    arrays = lod_tensor.to_native(arrays.view(dtype)).reshape(len(run), *header.shape)
    return [LoDTensor(array) for array in arrays]


def _group_runs(wants: Sequence[Want]) -> Iterator[list[Want]]:
    """Group small values of one type and shape that follow each other at equal distances."""
    run: list[Want] = []
    form: tuple[object, ...] | None = None
    stride = last = 0
    for want in wants:
        header = want.held.header
        plain = want.rows is None and not header.lod and header.shape and 0 < header.nbytes < _SMALL
        this = (header.dtype, header.shape) if plain else None
        offset = get_offset(header)
        distance = offset - last
        if run and (this is None or this != form or (len(run) > 1 and distance != stride) or distance < 0):
            yield run
            run = []
        run.append(want)
        form, stride, last = this, distance, offset
    if run:
        yield run
