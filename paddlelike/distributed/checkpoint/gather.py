"""Gather variables whose slices are on servers into one file each, while the file is written.

Where all processes see the same directory, trainer 0 writes the header of each large file, and every server
writes its own rows at their offset. Otherwise trainer 0 pulls everything, one piece at a time. The files are
the same.

:mod:`.streams` gathers large variables, :mod:`.tables` tables that are sharded by id.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

import numpy as np

from paddlelike.distributed.checkpoint.servers import Servers
from paddlelike.distributed.checkpoint.streams import Gathering, gather_large, make_extra, make_header
from paddlelike.distributed.checkpoint.tables import gather_growing, gather_shard, join_shards
from paddlelike.distributed.placement import Kind, Placement, Slice
from paddlelike.errors import SaveError
from paddlelike.formats import elements
from paddlelike.foundation.locks import Lock
from paddlelike.io.partition import GatheredFile
from paddlelike.storage.interfaces import Buffer

__all__ = ["Gathering", "gather_files"]

Array = np.ndarray[Any, Any]

_SMALL: Final = 64 << 10  # bytes; smaller variables are pulled together in one call
_BATCH: Final = 4 << 20  # bytes of one such call
_MOST: Final = 2000  # variables of one such call, whose indexes go into its header


def gather_files(
    servers: Servers, placement: Placement, origins: Iterable[str], how: Gathering
) -> list[GatheredFile]:
    """Return the files of variables on servers; the bytes are pulled from the servers during the write.

    Raises
    ------
    SaveError
        No server has some of the rows of a variable.
    """
    extras: list[GatheredFile] = []
    small: list[Slice] = []
    for origin in origins:
        slices = _cover(placement, origin)
        if slices[0].kind == Kind.GROWING:
            extras.append(gather_growing(servers, slices, how))
        elif slices[0].is_selected_rows and how.joined:
            extras.append(join_shards(servers, slices, how))
        elif slices[0].is_selected_rows:
            extras += [gather_shard(servers, one, how) for one in slices]
        elif sum(one.nbytes for one in slices) < _SMALL:
            small += slices
        else:
            extras.append(gather_large(servers, slices, how))
    for batch in _batches(small):
        fetched = _Batch(servers, batch, how)
        for _, group in itertools.groupby(batch, lambda one: one.origin):
            own = list(group)
            extras.append(make_extra(own[0], _SmallFile(fetched, own)))
    return extras


def _cover(placement: Placement, origin: str) -> list[Slice]:
    """Return the slices of a variable, ordered by rows; of copies on several servers, only the first."""
    slices = placement.of(origin)
    if slices[0].kind == Kind.GROWING:
        return slices
    if not slices[0].is_slice:
        return slices[:1]
    if slices[0].stride > 1:
        return slices
    rows = 0
    for one in [*slices, None]:
        first = slices[0].whole[0] if one is None else one.first_row
        if first != rows:
            raise SaveError(
                f"no server has rows {rows} to {first} of {origin!r}",
                hint="save with the trainer's program as the transpiler made it",
            )
        rows += 0 if one is None else one.rows
    return slices


def _batches(slices: Sequence[Slice]) -> Iterator[list[Slice]]:
    """Return slices of whole variables, about ``_BATCH`` bytes at a time."""
    batch: list[Slice] = []
    size = 0
    for one in slices:
        if (size >= _BATCH or len(batch) >= _MOST) and one.origin != batch[-1].origin:
            yield batch
            batch, size = [], 0
        batch.append(one)
        size += one.nbytes
    if batch:
        yield batch


class _Batch:
    """Slices that are pulled together when the first is needed; each is dropped after its use."""

    def __init__(self, servers: Servers, slices: Sequence[Slice], how: Gathering) -> None:
        self._servers = servers
        self._slices = slices
        self._how = how
        self._arrays: dict[tuple[str, str], Array] = {}
        self._lock = Lock()
        self._is_pulled = False

    def take(self, one: Slice) -> Array:
        """Return the values of a slice, once."""
        with self._lock.hold():
            if not self._is_pulled:
                wanted = [(slice_.endpoint, slice_.name) for slice_ in self._slices]
                self._arrays = dict(zip(wanted, self._servers.pull(wanted), strict=True))
                self._is_pulled = True
                self._how.after()
            return self._arrays.pop((one.endpoint, one.name))


class _SmallFile:
    """The bytes of the file of a small variable."""

    def __init__(self, batch: _Batch, slices: Sequence[Slice]) -> None:
        self._batch = batch
        self._slices = slices

    def __iter__(self) -> Iterator[Buffer]:
        yield make_header(self._slices[0])
        for one in self._slices:
            yield elements.view_elements(self._batch.take(one))
