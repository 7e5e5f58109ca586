"""Variables that lie on servers in slices, brought together into one file each while it is written.

Either everything comes to trainer 0, which holds no more of it than one piece at a time; or, where all
processes see the same directory, trainer 0 writes the beginning of each large file and every server writes
its own rows at their place in it. The files are the same.
"""

from __future__ import annotations

import itertools
import math
import os
import threading
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from paddlelike.core.dtypes import VarType, numpy_dtype
from paddlelike.distributed.checkpoint.servers import Servers
from paddlelike.distributed.client.receivers import Sink
from paddlelike.distributed.placement import Placement, Slice
from paddlelike.errors import SaveError
from paddlelike.formats import lod_tensor, selected_rows, tensor_desc
from paddlelike.io.elsewhere import Extra
from paddlelike.io.report import Moved
from paddlelike.storage import hashing
from paddlelike.storage.local.files import File
from paddlelike.storage.local.writing import Buffer, Shared
from paddlelike.storage.options import SaveOptions

__all__ = ["How", "extras_of"]

Array = np.ndarray[Any, Any]

_SMALL: Final = 64 << 10  # bytes; below it, variables are brought together in one call
_BATCH: Final = 4 << 20  # bytes of one such call
_MOST: Final = 2000  # variables of one such call, whose numbers go into its header


def _nothing() -> None:
    pass


@dataclass(frozen=True)
class How:
    """How files are brought together.

    Attributes
    ----------
    checksum
        For the manifest; of files that servers write it is always the crc32, which can be put together.
    by_servers
        Servers write their rows of large files themselves.
    local
        The files lie on this machine's file systems; else no position of them can be written.
    joined
        Tables that are sharded by id become one file, as predicting needs them; else one for each server.
    after
        Called whenever values have come.
    """

    checksum: hashing.Algorithm | None = SaveOptions.checksum
    by_servers: bool = False
    local: bool = True
    joined: bool = False
    after: Callable[[], None] = _nothing


def extras_of(servers: Servers, placement: Placement, origins: Iterable[str], how: How) -> list[Extra]:
    """The files of variables that lie on servers, to be filled while they are written."""
    extras: list[Extra] = []
    small: list[Slice] = []
    for origin in origins:
        slices = _covering(placement, origin)
        if slices[0].is_selected_rows and how.joined:
            extras.append(_joined(servers, slices, how))
        elif slices[0].is_selected_rows:
            extras += [_shard(servers, one, how) for one in slices]
        elif sum(one.nbytes for one in slices) < _SMALL:
            small += slices
        else:
            extras.append(_large(servers, slices, how))
    for batch in _batches(small):
        fetched = _Fetched(servers, batch, how)
        for _, group in itertools.groupby(batch, lambda one: one.origin):
            own = list(group)
            extras.append(_extra(own[0], _Small(fetched, own)))
    return extras


def _covering(placement: Placement, origin: str) -> list[Slice]:
    """The slices that make up a variable, by rows; of what is whole on several servers the first one."""
    slices = placement.of(origin)
    if not slices[0].is_slice:
        return slices[:1]
    if slices[0].stride > 1:
        return slices
    rows = 0
    for one in slices:
        if one.first_row != rows:
            raise SaveError(f"rows {rows} to {one.first_row} of {origin!r} lie on no server")
        rows += one.rows
    if rows != one.whole[0]:
        raise SaveError(f"rows {rows} to {one.whole[0]} of {origin!r} lie on no server")
    return slices


def _extra(one: Slice, buffers: Iterable[Buffer]) -> Extra:
    facts = {
        "variable": one.origin,
        "kind": "lod_tensor",
        "dtype": VarType(one.dtype).name,
        "shape": list(one.whole),
        "lod": [],
    }
    dtype = numpy_dtype(one.dtype)
    moved = Moved(one.whole, dtype.name, math.prod(one.whole) * dtype.itemsize)
    return Extra(one.origin, buffers, facts, moved)


def _front(one: Slice) -> bytes:
    return lod_tensor.encode_header(one.dtype, one.whole)


# Small ones: in memory, many in one call


def _batches(slices: Sequence[Slice]) -> Iterator[list[Slice]]:
    """Slices of whole variables, about ``_BATCH`` bytes at a time."""
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


class _Fetched:
    """Slices that are fetched when the first of them is needed, and forgotten after the last."""

    def __init__(self, servers: Servers, slices: Sequence[Slice], how: How) -> None:
        self._servers = servers
        self._slices = slices
        self._how = how
        self._arrays: dict[tuple[str, str], Array] = {}
        self._lock = threading.Lock()
        self._is_fetched = False

    def take(self, one: Slice) -> Array:
        """The values of a slice, once."""
        with self._lock:
            if not self._is_fetched:
                wanted = [(slice_.endpoint, slice_.name) for slice_ in self._slices]
                self._arrays = dict(zip(wanted, self._servers.pull(wanted), strict=True))
                self._is_fetched = True
                self._how.after()
            return self._arrays.pop((one.endpoint, one.name))


class _Small:
    """The file of a small variable."""

    def __init__(self, fetched: _Fetched, slices: Sequence[Slice]) -> None:
        self._fetched = fetched
        self._slices = slices

    def __iter__(self) -> Iterator[Buffer]:
        yield _front(self._slices[0])
        for one in self._slices:
            yield tensor_desc.elements(self._fetched.take(one))


# Large ones: piece by piece


def _large(servers: Servers, slices: Sequence[Slice], how: How) -> Extra:
    one = slices[0]
    if not how.local:
        return _extra(one, _Whole(servers, slices))
    front = _front(one)
    size = len(front) + math.prod(one.whole) * numpy_dtype(one.dtype).itemsize
    fill = _written(servers, slices, front, how) if how.by_servers else _streamed(servers, slices, front, how)
    return _extra(one, Shared(front, size, fill))


class _Whole:
    """The file of a large variable where its positions cannot be written: one slice after the other."""

    def __init__(self, servers: Servers, slices: Sequence[Slice]) -> None:
        self._servers = servers
        self._slices = slices

    def __iter__(self) -> Iterator[Buffer]:
        yield _front(self._slices[0])
        for one in self._slices:
            yield tensor_desc.elements(self._servers.pull([(one.endpoint, one.name)])[0])


def _streamed(
    servers: Servers, slices: Sequence[Slice], front: bytes, how: How
) -> Callable[[str], str | None]:
    def fill(path: str) -> str | None:
        sums = _Sums(how.checksum, front)
        with _Positions(path) as file:
            at = len(front)
            for one in slices:
                servers.stream((one.endpoint, one.name), _sink(file, sums, at, one.nbytes))
                sums.settle()
                at += one.nbytes
        how.after()
        return sums.text()

    return fill


def _sink(file: _Positions, sums: _Sums, start: int, size: int) -> Callable[[], Sink]:
    """Sinks for ``size`` bytes that go into a file from ``start`` on."""

    def take(offset: int, data: memoryview) -> None:
        sums.take(offset, data)
        file.write(start + offset, data)

    return lambda: Sink(size, take)


class _Positions:
    """A file that is written at positions."""

    def __init__(self, path: str) -> None:
        self._fd = os.open(path, os.O_WRONLY | getattr(os, "O_CLOEXEC", 0))

    def __enter__(self) -> _Positions:
        return self

    def __exit__(self, *error: object) -> None:
        os.close(self._fd)

    def write(self, offset: int, data: memoryview) -> None:
        """All of ``data`` from ``offset`` on."""
        while data:
            count = os.pwrite(self._fd, data, offset)
            data, offset = data[count:], offset + count


class _Sums:
    """A checksum of bytes of which some may come again from the start of a slice."""

    def __init__(self, algorithm: str | None, front: bytes) -> None:
        self._algorithm = algorithm or "crc32"
        self._is_wanted = algorithm is not None
        self._settled = hashing.hasher(self._algorithm)
        self._settled.update(front)
        self._made = self._settled

    def take(self, offset: int, data: memoryview) -> None:
        if offset == 0:
            self._made = self._settled.copy()
        if self._is_wanted:
            self._made.update(data)

    def settle(self) -> None:
        """What was taken since the last call stays."""
        self._settled = self._made

    def text(self) -> str | None:
        return f"{self._algorithm}:{self._settled.hexdigest()}" if self._is_wanted else None


def _written(
    servers: Servers, slices: Sequence[Slice], front: bytes, how: How
) -> Callable[[str], str | None]:
    def fill(path: str) -> str | None:
        name = slices[0].origin
        said = servers.save(path.removesuffix(name), [name])
        sums = [(zlib.crc32(front), len(front))]
        sums += [(_crc(said, one), one.nbytes) for one in slices]
        how.after()
        return None if how.checksum is None else f"crc32:{hashing.joined_crc32(sums):08x}"

    return fill


def _crc(said: Mapping[str, Mapping[str, Any]], one: Slice) -> int:
    """What the server of a slice told of the bytes that it wrote."""
    found = said[one.endpoint].get("crc32", {}).get(one.name)
    if not isinstance(found, int):
        raise SaveError(f"{one.endpoint} did not write its rows of {one.origin!r}")
    return found


# Shards of tables


def _shard(servers: Servers, one: Slice, how: How) -> Extra:
    """The file of one server's shard: the ids it has met, then all places for rows."""
    name = one.file_name
    dtype = numpy_dtype(one.dtype)
    facts = {
        "variable": name,
        "kind": "selected_rows",
        "dtype": VarType(one.dtype).name,
        "shape": list(one.shape),
        "lod": [],
        "height": one.shape[0],
    }
    buffers: Iterable[Buffer] = _WholeShard(servers, one)
    if how.local:
        buffers = Shared(b"", None, _shard_fill(servers, one, how))
    return Extra(name, buffers, facts, Moved(one.shape, dtype.name, one.nbytes))


def _shard_fill(servers: Servers, one: Slice, how: How) -> Callable[[str], str | None]:
    def fill(path: str) -> str | None:
        if how.by_servers:
            name = one.file_name
            found = servers.save(path.removesuffix(name), [name])[one.endpoint].get("crc32", {}).get(one.name)
            if not isinstance(found, int):
                raise SaveError(f"{one.endpoint} did not write its rows of {one.origin!r}")
            return None if how.checksum is None else f"crc32:{found:08x}"
        front = _shard_front(servers, one)
        sums = _Sums(how.checksum, front)
        with _Positions(path) as file:
            file.write(0, memoryview(front))
            servers.stream((one.endpoint, one.name), _sink(file, sums, len(front), one.nbytes))
        sums.settle()
        how.after()
        return sums.text()

    return fill


def _shard_front(servers: Servers, one: Slice) -> bytes:
    """The ids, asked for before the rows: training only adds rows, so those of the ids are there then."""
    return selected_rows.encode_header(_ids(servers, one), one.shape[0], one.dtype, one.shape)


def _ids(servers: Servers, one: Slice) -> Array:
    """The rows that a shard has met."""
    ids = servers.row_ids((one.endpoint, one.name))
    if len(ids) > one.rows or np.any(ids % one.stride != one.first_row) or np.any(ids < 0):
        raise SaveError(f"{one.endpoint} holds {len(ids)} rows of {one.origin!r} that are not its own")
    return ids


class _WholeShard:
    """A shard where the positions of its file cannot be written."""

    def __init__(self, servers: Servers, one: Slice) -> None:
        self._servers = servers
        self._one = one

    def __iter__(self) -> Iterator[Buffer]:
        yield _shard_front(self._servers, self._one)
        yield _shard_bytes(self._servers, self._one).data


def _shard_bytes(servers: Servers, one: Slice) -> Array:
    """All rows of a shard, as bytes."""
    found = np.empty(one.nbytes, np.uint8)

    def take(offset: int, data: memoryview) -> None:
        found[offset : offset + len(data)] = data

    servers.stream((one.endpoint, one.name), lambda: Sink(one.nbytes, take))
    return found


def _joined(servers: Servers, slices: Sequence[Slice], how: How) -> Extra:
    """The file of a table put together from its shards; rows that nobody has met are zero."""
    one = slices[0]
    front = _front(one)
    width = math.prod(one.whole[1:]) * numpy_dtype(one.dtype).itemsize
    if not how.local:
        raise SaveError(f"table {one.origin!r} lies in shards: save it into a local directory first")

    def fill(path: str) -> str | None:
        # The rows stay in the page cache, not in this process; a shard at a time is in memory.
        rows = np.memmap(path, np.uint8, "r+", len(front), (one.whole[0], width))
        for shard in slices:
            ids = _ids(servers, shard)
            rows[ids] = _shard_bytes(servers, shard).reshape(shard.rows, width)[: len(ids)]
        rows.flush()
        del rows
        how.after()
        if how.checksum is None:
            return None
        with File(path) as file:
            return hashing.of_file(file, how.checksum)

    return _extra(one, Shared(front, len(front) + one.whole[0] * width, fill))
