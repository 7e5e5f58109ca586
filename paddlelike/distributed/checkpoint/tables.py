"""The files of tables that are sharded by id: one for each server, or joined into one for prediction."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

import numpy as np

from paddlelike.core import Array, VarType, numpy_dtype
from paddlelike.distributed.checkpoint.servers import Servers
from paddlelike.distributed.checkpoint.streams import (
    Fill,
    Gathering,
    OffsetFile,
    StreamSum,
    join_answers,
    make_extra,
    make_header,
    stream_sink,
)
from paddlelike.distributed.client.receivers import Pieces, Sink
from paddlelike.distributed.placement import Slice
from paddlelike.errors import SaveError
from paddlelike.formats.paddle import selected_rows
from paddlelike.formats.paddle.directory import make_facts
from paddlelike.io.partition import GatheredFile
from paddlelike.io.report import Moved
from paddlelike.lazy import dataclass
from paddlelike.ops.kernels.growing_rows import ANY_ID
from paddlelike.storage import hashing
from paddlelike.storage.interfaces import Buffer
from paddlelike.storage.local.files import File
from paddlelike.storage.local.writing import Shared

if TYPE_CHECKING:
    from paddlelike.distributed.wire import Receiver


_MOST: Final = 1 << 40  # bytes of one server's rows


def gather_shard(servers: Servers, one: Slice, how: Gathering) -> GatheredFile:
    """Return the file of one server's shard: the ids that it has seen, then all its rows, used or not."""
    facts = make_facts(one.file_name, VarType(one.dtype).name, one.shape, height=one.shape[0])
    facts["shards"] = one.stride
    shard = _SequentialShard(servers, one, how)
    buffers = Shared(b"", None, _fill_shard(servers, one, how)) if how.local else shard
    moved = Moved(one.shape, numpy_dtype(one.dtype).name, one.nbytes)
    return GatheredFile(one.file_name, buffers, facts, moved, functools.partial(b"".join, shard))


def join_shards(servers: Servers, slices: Sequence[Slice], how: Gathering) -> GatheredFile:
    """Return the file of a table joined from its shards; rows of ids unknown to all servers are zero.

    Raises
    ------
    SaveError
        The file is not on this machine's file systems.
    """
    one = slices[0]
    header = make_header(one)
    width = math.prod(one.whole[1:]) * numpy_dtype(one.dtype).itemsize
    if not how.local:
        raise SaveError(
            f"table {one.origin!r} is in {len(slices)} shards, which cannot be joined in remote storage",
            hint="save it into a local directory first",
        )

    def fill(path: str) -> hashing.Checksum | None:
        # The rows stay in the page cache, not in this process; one shard at a time is in memory.
        rows = np.memmap(path, np.uint8, "r+", len(header), (one.whole[0], width))
        for shard in slices:
            ids = _pull_ids(servers, shard)
            rows[ids] = _pull_rows(servers, shard).reshape(shard.rows, width)[: len(ids)]
        rows.flush()
        del rows
        how.after()
        if how.checksum is None:
            return None
        with File(path) as file:
            return hashing.hash_file(file, how.checksum)

    return make_extra(one, Shared(header, len(header) + one.whole[0] * width, fill))


def gather_growing(servers: Servers, slices: Sequence[Slice], how: Gathering) -> GatheredFile:
    """Return one file for a growing table, its counts or its state, as a single process writes it."""
    one = slices[0]
    ids = [servers.row_ids((part.endpoint, part.name)) for part in slices]
    shape = (sum(map(len, ids)), *one.whole[1:])
    dtype = numpy_dtype(one.dtype)
    facts = make_facts(one.origin, VarType(one.dtype).name, shape, height=ANY_ID)
    moved = Moved(shape, dtype.name, math.prod(shape) * dtype.itemsize)
    file = _GrowingFile(servers, slices, ids, shape, how)
    return GatheredFile(one.origin, file, facts, moved, functools.partial(b"".join, file))


@dataclass
class _GrowingFile:
    """The bytes of a growing table: the ids of every server, then their rows, one server at a time."""

    servers: Servers
    slices: Sequence[Slice]
    ids: Sequence[Array]
    shape: tuple[int, ...]
    how: Gathering

    def __iter__(self) -> Iterator[Buffer]:
        one, ids = self.slices[0], np.concatenate(self.ids)
        yield selected_rows.encode_header(ids, ANY_ID, one.dtype, self.shape)
        width = math.prod(self.shape[1:]) * numpy_dtype(one.dtype).itemsize
        for part, own in zip(self.slices, self.ids, strict=True):
            pieces: list[Pieces] = []

            def receiver(pieces: list[Pieces] = pieces) -> Receiver:
                pieces.append(Pieces(_MOST))
                return pieces[-1]

            self.servers.stream((part.endpoint, part.name), receiver)
            data = memoryview(pieces[-1].join_pieces())
            if len(data) < len(own) * width:
                raise SaveError(
                    f"the server at {part.endpoint} forgot rows of {part.origin!r} while they were saved",
                    hint="call shrink and clear between saves, with all trainers waiting",
                )
            yield data[: len(own) * width]  # rows added meanwhile are at the end
        self.how.after()


def _fill_shard(servers: Servers, one: Slice, how: Gathering) -> Fill:
    def fill(path: str) -> hashing.Checksum | None:
        if how.by_servers:
            answers = servers.save(path.removesuffix(one.file_name), [one.file_name])
            checksum = join_answers(path, b"", answers, [one])
            return None if how.checksum is None else checksum
        header = _pull_header(servers, one)
        total = StreamSum(how.checksum, header)
        with OffsetFile(path) as file:
            file.write(0, memoryview(header))
            servers.stream((one.endpoint, one.name), stream_sink(file, total, len(header), one.nbytes))
        total.settle()
        how.after()
        return total.finish()

    return fill


@dataclass
class _SequentialShard:
    """The bytes of a shard, for files that cannot be written at offsets."""

    servers: Servers
    one: Slice
    how: Gathering

    def __iter__(self) -> Iterator[Buffer]:
        yield _pull_header(self.servers, self.one)
        yield _pull_rows(self.servers, self.one).data
        self.how.after()


def _pull_header(servers: Servers, one: Slice) -> bytes:
    """Return the header with the ids. They are pulled before the rows: training only adds rows."""
    return selected_rows.encode_header(_pull_ids(servers, one), one.shape[0], one.dtype, one.shape)


def _pull_ids(servers: Servers, one: Slice) -> Array:
    """Return the ids in a shard. Raises SaveError if some belong to another server."""
    ids = servers.row_ids((one.endpoint, one.name))
    if len(ids) > one.rows or np.any(ids % one.stride != one.first_row) or np.any(ids < 0):
        raise SaveError(
            f"the server at {one.endpoint} holds {len(ids)} rows of {one.origin!r}; expected at most "
            f"{one.rows}, with ids that are {one.first_row} modulo {one.stride}"
        )
    return ids


def _pull_rows(servers: Servers, one: Slice) -> Array:
    """Return all rows of a shard, as bytes."""
    found = np.empty(one.nbytes, np.uint8)

    def take(offset: int, data: memoryview) -> None:
        found[offset : offset + len(data)] = data

    servers.stream((one.endpoint, one.name), lambda: Sink(one.nbytes, take))
    return found
